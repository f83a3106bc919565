"""Writes the models with which cli/train_test.go holds training to PyTorch where PyTorch is not installed.

usage: train_fixture.py FOLDER        (FOLDER: cli/testdata/train)

For each of two small models NAME: NAME.onnx, as torch.onnx.export(dynamo=True, optimize=False) writes it but for where its
nodes come from; NAME.x.npy and NAME.y.npy, the inputs and the labels of all steps; NAME.npz, the state after the last;
NAME.json, what --train says, the losses of the steps, the shapes of the state, and the version of PyTorch.
"""

import json
import pathlib
import sys

import numpy as np
import onnx
import torch
from torch import nn
from torch.nn import functional as F

STEPS = 6


class Words(nn.Module):
    """A bag of words with tied weights."""

    def __init__(self):
        super().__init__()
        self.embed, self.norm, self.head = nn.Embedding(11, 6), nn.LayerNorm(6), nn.Linear(6, 11, bias=False)
        self.head.weight = self.embed.weight
        self.register_buffer("scale", torch.tensor([0.5, 1, 2, 1, 0.5, 1]), persistent=False)

    def forward(self, ids):
        x = self.embed(ids) * self.scale
        return self.head(F.gelu(self.norm(x.cumsum(1))))


def images():
    return nn.Sequential(nn.Conv2d(1, 3, 3, bias=False), nn.BatchNorm2d(3, momentum=0.2), nn.ReLU(), nn.Flatten(), nn.Linear(48, 4))


def export(at, model, x):
    torch.onnx.export(model, (x,), at, dynamo=True, optimize=False, verbose=False)
    m = onnx.load(at)
    for node in m.graph.node:
        del node.metadata_props[:]
    onnx.save(m, at)
    at.with_suffix(".onnx.data").unlink()


def write(folder, name, model, xs, ys, train, optimizer):
    model.train()
    export(folder / f"{name}.onnx", model, xs[0])
    step, losses = optimizer(model.parameters()), []
    for x, y in zip(xs, ys):
        step.zero_grad()
        loss = F.cross_entropy(model(x).flatten(0, -2), y.flatten())
        loss.backward()
        step.step()
        losses.append(loss.item())
    state = {k: v.numpy() for k, v in model.state_dict().items() if v.is_floating_point()}
    np.save(folder / f"{name}.x.npy", xs.numpy())
    np.save(folder / f"{name}.y.npy", ys.numpy())
    np.savez(folder / f"{name}.npz", **state)
    about = {"torch": torch.__version__, "train": train, "losses": losses, "state": {k: v.shape for k, v in state.items()}}
    (folder / f"{name}.json").write_text(json.dumps(about, indent=1) + "\n")


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    write(
        *(folder, "images", images(), torch.randn(STEPS, 5, 1, 6, 6), torch.randint(4, (STEPS, 5))),
        "loss=cross_entropy,optimizer=sgd,lr=0.05,momentum=0.9,nesterov=true,weight_decay=0.01",
        lambda p: torch.optim.SGD(p, 0.05, 0.9, weight_decay=0.01, nesterov=True),
    )
    labels = torch.randint(11, (STEPS, 3, 5))
    labels[:, 0, 0] = -100
    write(
        *(folder, "words", Words(), torch.randint(11, (STEPS, 3, 5)), labels),
        "loss=cross_entropy,optimizer=adamw,lr=0.01,beta2=0.99",
        lambda p: torch.optim.AdamW(p, 0.01, (0.9, 0.99)),
    )


main()
