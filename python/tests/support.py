"""What the tests share: workspaces, and modules that a test needs."""

import contextlib
import importlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path


def needs(*modules):
    """Skips a test where a module is not installed, saying what to install. PyTorch, what reads its files and its models are too large
    for the tests to install; other modules are in requirements.txt, and a run with CI=true fails without them."""
    missing = [m for m in modules if importlib.util.find_spec(m) is None]
    torch = {"torch", "onnx", "onnxscript", "transformers"} & set(missing)
    if missing and not torch and os.environ.get("CI") == "true":
        raise ImportError(f"the tests need {', '.join(missing)}: pip install -r python/tests/requirements.txt")
    return unittest.skipIf(missing, f"pip install {' '.join(missing)}")


class Case(unittest.TestCase):
    """A test in a workspace of its own, which is the current folder, with a cache of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name).resolve() / "work"
        self.root.mkdir()
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.root)
        self.write("pyproject.toml", "")
        before = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(before)))
        os.environ["DMIR_CACHE"] = str(self.root.parent / "cache")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    @contextlib.contextmanager
    def module(self, name, text):
        """Imports a module of the workspace with this text."""
        self.write(f"{name}.py", text)
        sys.path.insert(0, str(self.root))
        importlib.invalidate_caches()
        try:
            yield importlib.import_module(name)
        finally:
            sys.path.remove(str(self.root))
            sys.modules.pop(name, None)

    def python(self, *arguments):
        """Runs Python in the workspace; returns the exit status, stdout and stderr."""
        done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr


# A model of JAX and its shapes, as people write one.
JAX_MODEL = """
    import jax
    import jax.numpy as jnp
    import dmir

    def norm(x):
        m = jnp.mean(x, axis=-1, keepdims=True)
        return (x - m) / jnp.sqrt(jnp.var(x, axis=-1, keepdims=True) + 1e-5)

    @jax.jit
    def layer(params, x):
        return jax.nn.gelu(norm(x) @ params["w"])

    def loss(params, x, y):
        return jnp.mean((layer(params, x) - y) ** 2)

    def shapes():
        return {"w": jax.ShapeDtypeStruct((64, 32), "float32")}, dmir.shape("f32[8,64]"), dmir.shape("f32[8,32]")

    @dmir.trace_with(shapes)
    def step(params, x, y):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value
"""

TORCH_MODEL = """
    import torch
    from torch import nn
    import dmir

    class Block(nn.Module):
        def __init__(self, d=16):
            super().__init__()
            self.norm, self.up, self.down = nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
            self.drop = nn.Dropout(0.1)

        def forward(self, x):
            h = torch.nn.functional.gelu(self.up(self.norm(x)))
            return x + self.drop(self.down(h))

    @dmir.trace_with("i64[4,8]", loss="cross_entropy", optimizer="adamw", lr=1e-3)
    class Model(nn.Module):
        def __init__(self, layers=2):
            super().__init__()
            self.embed, self.head = nn.Embedding(32, 16), nn.Linear(16, 32, bias=False)
            self.head.weight = self.embed.weight
            self.h = nn.ModuleList(Block() for _ in range(layers))
            self.register_buffer("scale", torch.full((16,), 2.0), persistent=False)

        def forward(self, ids):
            x = self.embed(ids) * self.scale
            for block in self.h:
                x = block(x)
            return self.head(x)
"""
