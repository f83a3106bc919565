"""Models of torch.nn, as people write them."""

import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, d, heads, causal, groups=None, rotary=False):
        super().__init__()
        self.heads, self.groups, self.causal, self.rotary = heads, groups or heads, causal, rotary
        size = d // heads
        self.q, self.k, self.v = nn.Linear(d, d), nn.Linear(d, self.groups * size), nn.Linear(d, self.groups * size)
        self.out = nn.Linear(d, d)

    def forward(self, x):
        b, t, d = x.shape
        q = self.q(x).view(b, t, self.heads, -1).transpose(1, 2)
        k, v = (f(x).view(b, t, self.groups, -1).transpose(1, 2) for f in (self.k, self.v))
        if self.rotary:
            q, k = rotate(q), rotate(k)
        k, v = (y.repeat_interleave(self.heads // self.groups, 1) for y in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(b, t, d))


def rotate(x):
    t, d = x.shape[-2:]
    angle = torch.outer(torch.arange(t), 10000 ** (-torch.arange(0, d, 2) / d))
    a, b = x.chunk(2, -1)
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)


class Mlp(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.up, self.down, self.drop = nn.Linear(d, 4 * d), nn.Linear(4 * d, d), nn.Dropout(0.1)

    def forward(self, x):
        return self.drop(self.down(F.gelu(self.up(x))))


class SwiGlu(nn.Module):
    def __init__(self, d, hidden=352):
        super().__init__()
        self.gate, self.up = nn.Linear(d, hidden, bias=False), nn.Linear(d, hidden, bias=False)
        self.down = nn.Linear(hidden, d, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Experts(nn.Module):
    def __init__(self, d, count=4):
        super().__init__()
        self.router, self.experts = nn.Linear(d, count, bias=False), nn.ModuleList(SwiGlu(d) for _ in range(count))

    def forward(self, x):
        weights, which = self.router(x).softmax(-1).topk(2)
        weights = weights / weights.sum(-1, keepdim=True)
        share = torch.zeros(*x.shape[:-1], len(self.experts)).scatter(-1, which, weights)
        return sum(expert(x) * share[..., i, None] for i, expert in enumerate(self.experts))


class Block(nn.Module):
    def __init__(self, d, norm, attention, mlp):
        super().__init__()
        self.norm1, self.attention, self.norm2, self.mlp = norm(d), attention, norm(d), mlp

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Decoder(nn.Module):  # nanoGPT, Llama, Mixtral
    def __init__(self, kind, d=128, layers=2, vocabulary=512, length=64):
        super().__init__()
        self.embed, self.head = nn.Embedding(vocabulary, d), nn.Linear(d, vocabulary, bias=False)
        self.positions = nn.Embedding(length, d) if kind == "gpt" else None
        norm, mlp = (nn.LayerNorm if kind == "gpt" else nn.RMSNorm), {"gpt": Mlp, "llama": SwiGlu, "mixtral": Experts}[kind]
        options = {} if kind == "gpt" else {"groups": 2, "rotary": True}
        self.h = nn.ModuleList(Block(d, norm, Attention(d, 4, True, **options), mlp(d)) for _ in range(layers))
        self.norm = norm(d)
        if kind == "gpt":
            self.head.weight = self.embed.weight

    def forward(self, ids):
        x = self.embed(ids)
        if self.positions is not None:
            x = x + self.positions(torch.arange(ids.shape[1]))
        for block in self.h:
            x = block(x)
        return self.head(self.norm(x))


class ViT(nn.Module):
    def __init__(self, d=128, layers=2):
        super().__init__()
        self.patch, self.head, self.norm = nn.Conv2d(3, d, 8, 8), nn.Linear(d, 10), nn.LayerNorm(d)
        self.first, self.positions = nn.Parameter(torch.zeros(1, 1, d)), nn.Parameter(torch.zeros(17, d))
        self.h = nn.Sequential(*(Block(d, nn.LayerNorm, Attention(d, 4, False), Mlp(d)) for _ in range(layers)))

    def forward(self, images):
        x = self.patch(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(len(x), -1, -1), x], 1) + self.positions
        return self.head(self.norm(self.h(x)[:, 0]))


class Residual(nn.Module):
    def __init__(self, before, width, stride):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(before, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.norm2 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        self.skip = nn.Conv2d(before, width, 1, stride) if stride > 1 else nn.Identity()

    def forward(self, x):
        h = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(h)) + self.skip(x))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2))
        self.blocks = nn.Sequential(Residual(16, 16, 1), Residual(16, 32, 2), Residual(32, 64, 2))
        self.pool, self.head = nn.AdaptiveAvgPool2d(1), nn.Linear(64, 10)

    def forward(self, images):
        return self.head(self.pool(self.blocks(self.stem(images))).flatten(1))


class UNet(nn.Module):
    def __init__(self, widths=(16, 32, 64)):
        super().__init__()

        def double(a, b):
            return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.GroupNorm(8, b), nn.SiLU(), nn.Conv2d(b, b, 3, padding=1), nn.SiLU())

        self.down = nn.ModuleList(double(a, b) for a, b in zip((3, *widths), widths))
        back = list(zip(widths[::-1], widths[-2::-1]))
        self.up = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, 2) for a, b in back)
        self.join = nn.ModuleList(double(2 * b, b) for _, b in back)
        self.last = nn.Conv2d(widths[0], 3, 1)

    def forward(self, x):
        kept = []
        for i, block in enumerate(self.down):
            x = block(F.max_pool2d(x, 2) if i else x)
            kept.append(x)
        kept.pop()
        for up, join in zip(self.up, self.join):
            x = join(torch.cat([up(x), kept.pop()], 1))
        return self.last(x)


IDS, IMAGES = torch.zeros(4, 64, dtype=torch.int64, device="meta"), torch.zeros(8, 3, 32, 32, device="meta")
MODELS = {
    "nanoGPT": lambda: (Decoder("gpt"), [IDS]),
    "Llama": lambda: (Decoder("llama"), [IDS]),
    "ViT": lambda: (ViT(), [IMAGES]),
    "ResNet": lambda: (ResNet(), [IMAGES]),
    "U-Net": lambda: (UNet(), [IMAGES]),
    "Mixtral": lambda: (Decoder("mixtral"), [IDS]),
}
