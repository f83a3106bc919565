"""Trains models with PyTorch and with dmir and compares losses and weights: a table in Markdown.

usage: train.py FOLDER DMIR [NAME...]

Each model is exported as a person would, made a training step by `dmir import --train`, and trained by `dmir run --steps` on
the data that PyTorch has, from the same weights. PyTorch trains it a second time in f64: how far its own losses and weights
are from those is what rounding to f32 does, and dmir may be as far from PyTorch's in f32, times LIMIT, or a share of FLOOR.
Exit status 1 if a model cannot be trained or is farther.
"""

import copy
import json
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import torch
import torchvision
import transformers as tf
from torch import nn
from torch.nn import functional as F

from torch_models import Mix, UNet

STEPS = 20
LIMIT = 10
FLOOR = 1e-5


class Attention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.c_attn, self.c_proj = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (y.view(b, t, self.heads, d // self.heads).transpose(1, 2) for y in self.c_attn(x).split(d, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(b, t, d))


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.ln_1, self.attn, self.ln_2 = nn.LayerNorm(d, bias=False), Attention(d, heads), nn.LayerNorm(d, bias=False)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class NanoGPT(nn.Module):
    """The weights of the embedding are those of the last layer."""

    def __init__(self, vocabulary=97, length=32, d=48, layers=2, heads=4):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, d), nn.Embedding(length, d)
        self.h = nn.ModuleList(Block(d, heads) for _ in range(layers))
        self.ln_f, self.lm_head = nn.LayerNorm(d), nn.Linear(d, vocabulary, bias=False)
        nn.init.normal_(self.lm_head.weight, std=0.02)
        self.wte.weight = self.lm_head.weight

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


class Logits(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids):
        return self.model(input_ids=ids, use_cache=False).logits


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.lstm, self.tags = nn.Embedding(50, 24), nn.LSTM(24, 32, batch_first=True), nn.Linear(32, 9)

    def forward(self, ids):
        return self.tags(self.lstm(self.embed(ids))[0])


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 48, 8, 8)
        self.layers = nn.ModuleList(Mix(48, 16) for _ in range(2))
        self.head = nn.Linear(48, 10)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean(1))


class Experts(nn.Module):
    """A layer of four experts, of which a place takes the best two, and a guess of each of twelve properties."""

    def __init__(self, d=32, experts=4):
        super().__init__()
        self.router = nn.Linear(d, experts, bias=False)
        self.up = nn.Parameter(torch.randn(experts, d, 64) / d**0.5)
        self.down = nn.Parameter(torch.randn(experts, 64, d) / 8)
        self.head = nn.Linear(d, 12)

    def forward(self, x):
        best, which = self.router(x).softmax(-1).topk(2, -1)
        share = torch.zeros_like(x[..., :4]).scatter(-1, which, best / best.sum(-1, keepdim=True))
        hidden = F.silu(torch.einsum("bd,edh->ebh", x, self.up))
        return self.head(x + torch.einsum("ebh,ehd,be->bd", hidden, self.down, share))


def cnn():
    layers = []
    for a, b in (3, 16), (16, 32):
        layers += [nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(32 * 8 * 8, 10))


def autoencoder():
    return nn.Sequential(
        *(nn.Conv2d(1, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8, momentum=0.2), nn.ReLU(), nn.Conv2d(8, 16, 3, 2, 1), nn.Tanh()),
        *(nn.ConvTranspose2d(16, 8, 2, 2), nn.LeakyReLU(0.1), nn.ConvTranspose2d(8, 1, 2, 2), nn.Sigmoid()),
    )


def llama():
    config = tf.LlamaConfig(
        vocab_size=128, hidden_size=48, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2
    )
    return Logits(tf.LlamaForCausalLM(config))


def images(channels=3, size=32):
    return lambda: torch.randn(STEPS, 8, channels, size, size)


def tokens(length, vocabulary):
    return lambda: torch.randint(vocabulary, (STEPS, 4, length))


def classes(n, *shape):
    return lambda: torch.randint(n, (STEPS, *shape))


# The model, its inputs and its targets of all steps, what --train says, whether it is exported in training mode.
MODELS = {
    "mlp": (
        lambda: nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 10)),
        *(lambda: torch.randn(STEPS, 16, 32), classes(10, 16)),
        *("loss=cross_entropy,optimizer=sgd,lr=0.1", False),
    ),
    "cnn": (
        *(cnn, images(), classes(10, 8)),
        *("loss=cross_entropy,optimizer=sgd,lr=0.002,momentum=0.9,nesterov=true,weight_decay=0.0005", True),
    ),
    "resnet": (
        lambda: torchvision.models.ResNet(torchvision.models.resnet.BasicBlock, [1, 1, 1, 1], num_classes=10),
        *(images(size=64), classes(10, 8), "loss=cross_entropy,optimizer=momentum,lr=0.0001,weight_decay=0.0001", False),
    ),
    "vit": (
        lambda: torchvision.models.VisionTransformer(32, 8, 2, 4, 48, 96, num_classes=10),
        *(images(), classes(10, 8), "loss=cross_entropy,label_smoothing=0.1,optimizer=adamw,lr=0.001,eps=1e-6", False),
    ),
    "nanogpt": (
        *(NanoGPT, tokens(32, 97), classes(97, 4, 32)),
        *("loss=cross_entropy,optimizer=adamw,lr=0.001,beta2=0.95,weight_decay=0.1,decay=matrices", True),
    ),
    "llama": (
        *(llama, tokens(24, 128), lambda: torch.where(torch.rand(STEPS, 4, 24) < 0.2, -100, torch.randint(128, (STEPS, 4, 24)))),
        *("loss=cross_entropy,optimizer=adamw,lr=0.0003", False),
    ),
    "unet": (
        *(lambda: UNet((16, 32, 64)), images(size=16), images(size=16)),
        *("loss=mse,optimizer=adam,lr=0.001", True),
    ),
    "lstm": (
        *(Tagger, tokens(12, 50), classes(9, 4, 12)),
        *("loss=cross_entropy,optimizer=adam,lr=0.01", False),
    ),
    "autoencoder": (
        *(autoencoder, images(1, 16), lambda: torch.rand(STEPS, 8, 1, 16, 16)),
        *("loss=mse,reduction=sum,optimizer=adam,lr=0.001,weight_decay=0.01", False),
    ),
    "mixer": (
        *(Mixer, images(), classes(10, 8)),
        *("loss=cross_entropy,optimizer=adamw,lr=0.001,eps=1e-6", False),
    ),
    "experts": (
        *(Experts, lambda: torch.randn(STEPS, 16, 32), lambda: (torch.rand(STEPS, 16, 12) < 0.3).float()),
        *("loss=bce_with_logits,optimizer=sgd,lr=0.2", False),
    ),
}


def loss_of(spec):
    """The loss of an output and a target, in PyTorch's words."""
    if spec["loss"] == "mse":
        return lambda x, y: F.mse_loss(x, y.to(x.dtype), reduction=spec.get("reduction", "mean"))
    if spec["loss"] == "bce_with_logits":
        return lambda x, y: F.binary_cross_entropy_with_logits(x, y.to(x.dtype))
    smoothing = float(spec.get("label_smoothing", 0))
    return lambda x, y: F.cross_entropy(x.flatten(0, -2), y.flatten(), label_smoothing=smoothing)


def optimizer_of(spec, model):
    options = {name: float(spec[name]) for name in ("lr", "weight_decay", "momentum", "eps") if name in spec}
    parameters = list(model.parameters())
    if spec.get("decay") == "matrices":
        some = [p for p in parameters if p.dim() < 2]
        parameters = [{"params": [p for p in parameters if p.dim() > 1]}, {"params": some, "weight_decay": 0.0}]
    if spec["optimizer"] in ("sgd", "momentum"):
        if spec["optimizer"] == "momentum":
            options.setdefault("momentum", 0.9)
        return torch.optim.SGD(parameters, nesterov=spec.get("nesterov") == "true", **options)
    kind = torch.optim.AdamW if spec["optimizer"] == "adamw" else torch.optim.Adam
    return kind(parameters, betas=(float(spec.get("beta1", 0.9)), float(spec.get("beta2", 0.999))), **options)


def trained(model, spec, xs, ys):
    """The losses of the steps, and the state after the last."""
    model.train()
    loss_function, optimizer, losses = loss_of(spec), optimizer_of(spec, model), []
    for x, y in zip(xs, ys):
        optimizer.zero_grad()
        loss = loss_function(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return np.array(losses), {k: v.detach().double().numpy() for k, v in model.state_dict().items()}


def farthest(a, b):
    """The largest difference of two values of one name, as a share of the largest element."""
    return max((float(np.abs(a[k] - b[k]).max() / max(np.abs(b[k]).max(), 1e-3)), k) for k in b if k in a and b[k].size)


def dmir(binary, *arguments):
    done = subprocess.run([binary, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"dmir {' '.join(map(str, arguments))}\n{done.stderr}")
    return done.stdout


def check(folder, binary, name):
    make, inputs, targets, train, mode = MODELS[name]
    spec = dict(word.split("=") for word in train.split(","))
    torch.manual_seed(0)
    model, xs, ys = make(), inputs(), targets()
    at = folder / name
    shutil.rmtree(at, ignore_errors=True)
    at.mkdir(parents=True)
    model.train(mode)
    torch.onnx.export(model, (xs[0],), at / "model.onnx", dynamo=True, optimize=False, verbose=False)
    np.save(at / "x.npy", xs.numpy())
    np.save(at / "y.npy", ys.numpy())
    exact, exact_state = trained(copy.deepcopy(model).double(), spec, xs.double() if xs.is_floating_point() else xs, ys)
    start = {k: v.double().numpy().copy() for k, v in model.state_dict().items()}
    losses, state = trained(model, spec, xs, ys)

    dmir(binary, "import", "--train", train, "-o", at / "step.dmir", at / "model.onnx")
    text = (at / "step.dmir").read_text()
    x = text[text.index("(") :].split("%")[1].split(":")[0]
    target = "targets" if spec["loss"] in ("mse", "bce_with_logits") else "labels"
    given = [f"--input={x}={at / 'x.npy'}", f"--input={target}={at / 'y.npy'}", "--steps", STEPS]
    row = {"model": name, "--train": f"`{train}`", "parameters": sum(p.numel() for p in model.parameters())}
    failed = []
    for device in "reference", "cpu":
        report = json.loads(dmir(binary, "run", "--device", device, *given, "--output", at / device, "--output-format", "json", at / "step.dmir"))
        got = np.array([step["values"]["loss"] for step in report["history"]])
        have = {f.stem: np.load(f).astype(np.float64) for f in (at / device).glob("*.npy")}
        loss_far = float(np.abs(got / losses - 1).max())
        far, where = farthest(have, state)
        allowed = max(FLOOR, LIMIT * float(np.abs(losses / exact - 1).max())), max(FLOOR, LIMIT * farthest(state, exact_state)[0])
        if loss_far > allowed[0] or far > allowed[1]:
            failed.append(f"{name} on {device}: losses differ by {loss_far:.1e}, {where} by {far:.1e}; allowed are {allowed}")
        row[f"loss, {device}"], row[f"weights, {device}"] = f"{loss_far:.0e}", f"{far:.0e}"
    # Each value of the model's state goes back by its name, but for other names of a tensor, and counts of batches.
    pointers = {k: v.data_ptr() for k, v in model.state_dict().items()}
    missing = [k for k in state if k not in have and not k.endswith("num_batches_tracked") and not any(pointers[k] == pointers[j] for j in have if j in pointers)]
    if missing:
        failed.append(f"{name}: no value for {missing}")
    if all(np.array_equal(start[k], have[k]) for k in start if k in have):
        failed.append(f"{name}: no weight has changed")
    row["loss, f64"] = f"{float(np.abs(losses / exact - 1).max()):.0e}"
    row["weights, f64"] = f"{farthest(state, exact_state)[0]:.0e}"
    row["loss, first → last"] = f"{losses[0]:.4g} → {losses[-1]:.4g}"
    return row, failed


def main():
    folder, binary = pathlib.Path(sys.argv[1]), sys.argv[2]
    rows, failed = [], []
    for name in sys.argv[3:] or MODELS:
        row, why = check(folder, binary, name)
        rows, failed = rows + [row], failed + why
        print(row, *why, sep="\n", file=sys.stderr, flush=True)
    print("| " + " | ".join(rows[0]) + " |")
    print("|" + "|".join("---" if k in ("model", "--train") else "--:" for k in rows[0]) + "|")
    for row in rows:
        print("| " + " | ".join(map(str, row.values())) + " |")
    sys.exit(bool(failed))


main()
