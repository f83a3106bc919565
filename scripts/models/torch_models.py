"""Exports models of PyTorch as ONNX, with random weights and inputs and PyTorch's own results.

usage: torch_models.py FOLDER [NAME...]

For each model NAME: NAME.onnx, as torch.onnx.export(dynamo=True) writes it, its weights as inputs; NAME.in/N.npy, its inputs;
NAME.out/N.npy, its results; NAME.json, the FLOP that PyTorch counts and the bytes that Inductor estimates after its own fusion.
"""

import json
import pathlib
import sys

import numpy as np
import torch
import torchvision
import transformers as tf
from torch import nn
from torch.utils.flop_counter import FlopCounterMode


class Only(nn.Module):
    """A model of transformers that returns its one tensor."""

    def __init__(self, model, result):
        super().__init__()
        self.model, self.result = model, result

    def forward(self, x):
        return getattr(self.model(x), self.result)


class Tokens(Only):
    def forward(self, ids):
        return getattr(self.model(input_ids=ids, use_cache=False), self.result)


class Mix(nn.Module):
    def __init__(self, d, places):
        super().__init__()
        self.first, self.second = nn.LayerNorm(d), nn.LayerNorm(d)
        self.places = nn.Sequential(nn.Linear(places, 256), nn.GELU(), nn.Linear(256, places))
        self.channels = nn.Sequential(nn.Linear(d, 2048), nn.GELU(), nn.Linear(2048, d))

    def forward(self, x):
        x = x + self.places(self.first(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.second(x))


class Mixer(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.patches = nn.Conv2d(3, 512, 32, 32)
        self.layers = nn.Sequential(*(Mix(512, 49) for _ in range(layers)), nn.LayerNorm(512))
        self.head = nn.Linear(512, 1000)

    def forward(self, x):
        return self.head(self.layers(self.patches(x).flatten(2).transpose(1, 2)).mean(1))


class UNet(nn.Module):
    def __init__(self, sizes=(32, 64, 128, 256)):
        super().__init__()

        def double(a, b):
            return nn.Sequential(
                *(m for n in (a, b) for m in (nn.Conv2d(n, b, 3, padding=1), nn.GroupNorm(8, b), nn.SiLU()))
            )

        pairs = list(zip(sizes, sizes[1:]))
        self.down = nn.ModuleList(double(a, b) for a, b in [(3, sizes[0]), *pairs])
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in reversed(pairs))
        self.join = nn.ModuleList(double(2 * a, a) for a, _ in reversed(pairs))
        self.last = nn.Conv2d(sizes[0], 3, 1)

    def forward(self, x):
        kept = []
        for level in self.down:
            x = level(nn.functional.avg_pool2d(x, 2) if kept else x)
            kept.append(x)
        kept.pop()
        for up, join in zip(self.up, self.join):
            x = join(torch.cat([up(x), kept.pop()], 1))
        return self.last(x)


def image(size):
    return torch.randn(1, 3, size, size)


def tokens(length, vocabulary):
    return torch.randint(vocabulary, (1, length))


def decoder(kind, **config):
    common = dict(vocab_size=4096, num_hidden_layers=2, num_attention_heads=8, num_key_value_heads=2)
    made = getattr(tf, kind + "Config")(**common, **config)
    made._experts_implementation = "batched_mm"  # the default, one kernel for groups of rows, has no ONNX
    return getattr(tf, kind + "ForCausalLM")(made)


def whisper():
    config = tf.WhisperConfig(d_model=384, encoder_layers=2, encoder_attention_heads=6, encoder_ffn_dim=1536)
    return tf.models.whisper.modeling_whisper.WhisperEncoder(config)


MODELS = {
    "bert": lambda: (Only(tf.BertModel(tf.BertConfig(num_hidden_layers=2)), "last_hidden_state"), tokens(128, 30522)),
    "gpt2": lambda: (Tokens(tf.GPT2LMHeadModel(tf.GPT2Config(n_layer=2)), "logits"), tokens(128, 50257)),
    "llama": lambda: (Tokens(decoder("Llama", hidden_size=512, intermediate_size=1376), "logits"), tokens(128, 4096)),
    "mixtral": lambda: (Tokens(decoder("Mixtral", hidden_size=256, intermediate_size=512), "logits"), tokens(64, 4096)),
    "resnet50": lambda: (torchvision.models.resnet50(), image(224)),
    "vit": lambda: (vit(), image(224)),
    "mixer": lambda: (Mixer(4), image(224)),
    "whisper": lambda: (Only(whisper(), "last_hidden_state"), torch.randn(1, 80, 3000)),
    "unet": lambda: (UNet(), image(64)),
}


def vit():
    model = torchvision.models.VisionTransformer(224, 16, 2, 12, 768, 3072)
    nn.init.normal_(model.heads.head.weight, std=0.02)  # torchvision's are 0, and so were all results
    return model


def inductor(model, x):
    """The bytes that Inductor's generated kernels access, as it estimates them; None if it cannot compile the model."""
    from torch._inductor import config, metrics

    torch._logging.set_logs(inductor_metrics=True)  # only then are they counted
    torch._dynamo.reset()
    metrics.reset()
    try:
        with config.patch(fx_graph_cache=False, force_disable_caches=True):
            torch.compile(model)(x)
    except Exception as e:
        print("inductor:", str(e).splitlines()[0], flush=True)
        return None
    return metrics.num_bytes_accessed or None


def write(folder, name):
    torch.manual_seed(0)
    torch.backends.mha.set_fastpath_enabled(False)  # its FLOP are not counted
    model, x = MODELS[name]()
    model.eval()
    with torch.no_grad():
        with FlopCounterMode(display=False) as counter:
            want = model(x)
        exported = torch.onnx.export(model, (x,), dynamo=True, verbose=False)
        given = [x.numpy(), *weights_to_inputs(exported.model.graph)]
        exported.save(folder / f"{name}.onnx")
        accessed = inductor(model, x)
    for kind, values in ("in", given), ("out", [want.numpy()]):
        into = folder / f"{name}.{kind}"
        into.mkdir(exist_ok=True)
        for i, value in enumerate(values):
            np.save(into / str(i), value)
    count = {"flop": counter.get_total_flops(), "bytes": accessed}
    (folder / f"{name}.json").write_text(json.dumps(count))
    print(name, count, flush=True)


def weights_to_inputs(graph):
    """Makes the weights inputs of the graph, as those of the programs of JAX are, and returns them."""
    for name, value in list(graph.initializers.items()):
        if value.const_value.size > 1024:
            yield value.const_value.numpy()
            del graph.initializers[name]
            value.const_value = None
            graph.inputs.append(value)


if __name__ == "__main__":
    target = pathlib.Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    for each in sys.argv[2:] or MODELS:
        write(target, each)
