"""Models of PyTorch as people write them, and of transformers and torchvision. STEPS has for each name a module, its arguments and how it is
trained; a model without the latter is traced for inference."""

import math

import numpy as np
import torch
import torchvision
import transformers as tf
from torch import nn
from torch.nn import functional as F

from torch_models import UNet

VOCABULARY = 8192
ids = torch.zeros(4, 256, dtype=torch.int64)
adamw = {"loss": "cross_entropy", "optimizer": "adamw", "lr": 3e-4}


class Attention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.c_attn, self.c_proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.register_buffer("mask", torch.tril(torch.ones(256, 256)).view(1, 1, 256, 256))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (y.view(b, t, self.heads, d // self.heads).transpose(1, 2) for y in self.c_attn(x).split(d, 2))
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf"))
        att = F.softmax(att, dim=-1)
        y = att @ v
        return self.c_proj(y.transpose(1, 2).contiguous().view(b, t, d))


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.ln_1, self.attn, self.ln_2 = nn.LayerNorm(d), Attention(d, heads), nn.LayerNorm(d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class NanoGPT(nn.Module):
    def __init__(self, d=256, heads=8, layers=2):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(VOCABULARY, d), nn.Embedding(256, d)
        self.h = nn.ModuleList(Block(d, heads) for _ in range(layers))
        self.ln_f, self.lm_head = nn.LayerNorm(d), nn.Linear(d, VOCABULARY, bias=False)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1], device=ids.device))
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


class Positions(nn.Module):
    """A vision transformer in bfloat16 whose table of positions comes from NumPy."""

    def __init__(self, d=192):
        super().__init__()
        self.patches = nn.Conv2d(3, d, 16, 16)
        angles = np.outer(np.arange(196), 1 / 10000 ** (np.arange(0, d, 2) / d))
        self.places = torch.from_numpy(np.concatenate([np.sin(angles), np.cos(angles)], 1)).float()
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(d, 3, 4 * d, batch_first=True, norm_first=True, dropout=0) for _ in range(2))
        self.head = nn.Linear(d, 1000)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2) + self.places
        for block in self.blocks:
            x = block(x.to(torch.bfloat16))
        return self.head(x.mean(1))


class Logits(nn.Module):
    def __init__(self, kind, head="ForCausalLM", **config):
        super().__init__()
        made = getattr(tf, kind + "Config")(vocab_size=VOCABULARY, hidden_size=256, num_hidden_layers=2, num_attention_heads=8, **config)
        made._experts_implementation = "batched_mm"
        self.model = getattr(tf, kind + head)(made)

    def forward(self, ids):
        return self.model(input_ids=ids, use_cache=False).logits


def decoder(kind, **config):
    return lambda: (Logits(kind, intermediate_size=704, **config).eval(), (ids,), adamw)


images = torch.zeros(4, 3, 224, 224)
STEPS = {
    "nanogpt": lambda: (NanoGPT(), (ids,), adamw),
    "llama": decoder("Llama", num_key_value_heads=2),
    "llama_eager": decoder("Llama", num_key_value_heads=2, attn_implementation="eager"),
    "mixtral": lambda: (Logits("Mixtral", intermediate_size=704, num_key_value_heads=2).eval(), (ids[:1],)),
    "neox": decoder("GPTNeoX"),
    "vit": lambda: (Positions().to(torch.bfloat16).eval(), (images.to(torch.bfloat16),)),
    "resnet": lambda: (torchvision.models.resnet18().eval(), (images,), {"loss": "cross_entropy", "optimizer": "momentum", "lr": 0.1}),
    "unet": lambda: (UNet(), (images[..., :64, :64],), {"loss": "mse", "optimizer": "adam", "lr": 1e-3}),
}
