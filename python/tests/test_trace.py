"""Traces of JAX functions: what is written, whose files it names, and what is said where one cannot be made."""

import hashlib
import json
import linecache
import sys

import dmir
from dmir import _workspace
from support import JAX_MODEL, Case, needs


class Shapes(Case):
    def test_shapes(self):
        for text, want in {
            "f32[8,64]": ("float32", (8, 64)),
            " bf16 [ 2 ] ": ("bfloat16", (2,)),
            "i1[]": ("bool", ()),
            "int64[3]": ("int64", (3,)),
        }.items():
            with self.subTest(text):
                self.assertEqual(dmir.shape(text), dmir.Shape(*want))
        for text in "8,64", "f32", "f33[8]", "f32[-1]", "f32[8", "f32[n]":
            with self.subTest(text), self.assertRaisesRegex(dmir.TraceError, "is not a shape; write"):
                dmir.shape(text)


class Workspace(Case):
    def test_whose_a_file_is(self):
        own = [self.write("model.py", "x = 1\n"), self.write("pkg/lib/layers.py", "y = 2\n")]
        others = [
            self.write("site-packages/flax/core.py", "z\n"),
            self.write("env/lib/python3.12/json.py", "z\n"),
            self.write("tools/venv/thing.py", "z\n"),
            self.root.parent / "cache.py",
            self.root / "gone.py",
        ]
        self.write("tools/venv/pyvenv.cfg", "")
        (self.root.parent / "cache.py").write_text("z\n")
        (self.root / "link.py").symlink_to(self.root.parent / "cache.py")
        names = [str(f) for f in [*own, *others, self.root / "link.py"]]
        found = _workspace.sources(names, self.root)
        self.assertEqual([f["path"] for f in found], ["model.py", "pkg/lib/layers.py"])
        self.assertEqual([f["name"] for f in found], [str(f) for f in own])
        self.assertEqual(found[0]["sha256"], hashlib.sha256(b"x = 1\n").hexdigest())

    def test_cells_of_notebooks_are_the_persons_own(self):
        names = "/tmp/ipykernel_123/456.py", "<ipython-input-3-abc>"
        for name in names:
            linecache.cache[name] = (4, None, ["a = 1\n", "b = 2\n"], name)
            self.addCleanup(linecache.cache.pop, name, None)
        found = _workspace.sources([*names, "<string>"], self.root)
        self.assertEqual([(f["path"], f["text"]) for f in found], [("456.py", "a = 1\nb = 2\n"), ("ipython-input-3-abc", "a = 1\nb = 2\n")])

    def test_root(self):
        (self.root / "a/b").mkdir(parents=True)
        import os

        os.chdir("a/b")
        self.assertEqual(_workspace.root(), self.root)
        self.write("a/dmir.toml", "")
        self.assertEqual(_workspace.root(), self.root / "a")


@needs("jax")
class Jax(Case):
    def test_trace(self):
        with self.module("model", JAX_MODEL) as model:
            made = dmir.trace(model.step)
        self.assertEqual((made.name, made.path), ("model.step", self.root / ".dmir/traces/model.step.json"))
        data = json.loads(made.path.read_text())
        self.assertEqual(data["dmir_trace"], 1)
        self.assertEqual(data["program"], "model.step.mlir")
        self.assertRegex(data["framework"], r"^jax \d")
        self.assertNotIn("command", data)
        self.assertIn("model.py", [f["path"] for f in data["files"]])
        text = made.program.read_text()
        for line in 7, 8, 12, 15, 23:  # the mean, the division, the product, the loss, the update
            self.assertIn(f'{self.root}/model.py":{line}:', text)
        self.assertIn("transpose(jvp(", text)
        self.assertEqual((self.root / ".dmir/.gitignore").read_text().splitlines()[-1], "*")
        self.assertEqual(sorted(p.name for p in made.path.parent.iterdir()), ["model.step.json", "model.step.mlir"])
        self.assertEqual(dmir.Trace.load(made.path).program, made.program)

    def test_configuration_is_as_before(self):
        import jax

        jax.config.update("jax_traceback_in_locations_limit", 1)
        self.addCleanup(jax.config.update, "jax_traceback_in_locations_limit", 100)
        with self.module("model", JAX_MODEL) as model:
            text = dmir.trace(model.step).program.read_text()
        self.assertIn("callsite", text)
        self.assertEqual(jax.config.jax_traceback_in_locations_limit, 1)

    def test_arguments(self):
        import jax
        import jax.numpy as jnp

        x = jax.ShapeDtypeStruct((4, 4), "float32")

        def plain(x, scale, *, act=None):
            y = x * scale
            return {"y": act(y) if act else y, "unused": None, "name": "plain"}

        powers = jax.jit(lambda x, n: x**n, static_argnums=1)
        updated = jax.jit(lambda x: x + 1, donate_argnums=0)
        for what, call, want in [
            ("keyword arguments and functions", lambda: dmir.trace(plain, x, 2.0, act=jnp.tanh), "stablehlo.tanh"),
            ("static arguments of a jitted function", lambda: dmir.trace(powers, x, 3), "stablehlo.multiply"),
            ("static arguments by number", lambda: dmir.trace(lambda x, n: x**n, x, 3, static_argnums=1), "stablehlo.multiply"),
            ("static arguments by name", lambda: dmir.trace(lambda x, n: x**n, x, n=3, static_argnames="n"), "stablehlo.multiply"),
            ("donated arguments", lambda: dmir.trace(updated, x), "tf.aliasing_output"),
            ("names of leaves", lambda: dmir.trace(lambda params: params["w"] + 1, {"w": x}), "params['w']"),
        ]:
            with self.subTest(what):
                self.assertIn(want, call().program.read_text())

    def test_training_step(self):
        import jax

        with self.module("model", JAX_MODEL) as model:
            for loss, optimizer, inputs in [
                ("mse", "sgd", 3),
                (lambda out, y: ((out - y) ** 4).sum(), "adamw", 6),
                ("mse", __import__("optax").sgd(0.1, momentum=0.9), 4),
            ]:
                with self.subTest(optimizer=optimizer):
                    made = dmir.trace(model.layer, *model.shapes(), loss=loss, optimizer=optimizer, lr=0.1, name="train")
                    signature = next(line for line in made.program.read_text().splitlines() if "@main" in line)
                    self.assertEqual(signature.count("%arg"), inputs)
                    self.assertIn("tf.aliasing_output", signature)
            step, init = dmir._step.train_step(model.layer, "mse", "sgd", 0.5)
            params, x, y = jax.tree.map(
                lambda s: jax.random.normal(jax.random.key(0), getattr(s, "shape", None) or s.sizes),
                model.shapes(),
                is_leaf=lambda s: isinstance(s, dmir.Shape),
            )
            new, _, value = step(params, init(params), x, y)
            want = params["w"] - 0.5 * jax.grad(model.loss)(params, x, y)["w"]
            self.assertLess(abs(new["w"] - want).max(), 1e-6)
            self.assertAlmostEqual(float(value), float(model.loss(params, x, y)), places=5)

    def test_what_cannot_be_traced(self):
        x = dmir.shape("f32[4]")

        def wrong(x):
            return x.nope

        for what, call, want in [
            ("a function that fails", lambda: dmir.trace(wrong, x), r"wrong failed while it was traced: AttributeError: .*nope"),
            ("no function", lambda: dmir.trace(3, x), "int is no function and no torch.nn.Module"),
            ("a bad name", lambda: dmir.trace(abs, x, name="../x"), "'../x' cannot name a trace"),
            ("a loss alone", lambda: dmir.trace(abs, x, x, x, loss="mse"), "needs both loss= and optimizer="),
            ("an unknown loss", lambda: dmir.trace(abs, x, x, x, loss="l3", optimizer="sgd"), "there is no loss 'l3'"),
            ("an unknown optimizer", lambda: dmir.trace(abs, x, x, x, loss="mse", optimizer="best"), "no optimizer 'best'|Optax"),
            ("a step without a target", lambda: dmir.trace(abs, x, x, loss="mse", optimizer="sgd"), "the target of the loss as arguments"),
        ]:
            with self.subTest(what), self.assertRaisesRegex(dmir.TraceError, want) as raised:
                call()
            self.assertNotIn("\n", str(raised.exception))
        self.write("no.json", "{}")
        self.write("new.json", '{"dmir_trace": 99}')
        for name, want in {"no.json": "is no trace of dmir", "new.json": "of a newer dmir", "gone.json": "No such file"}.items():
            with self.subTest(name), self.assertRaisesRegex(dmir.TraceError, want):
                dmir.Trace.load(name)
        self.assertFalse((self.root / ".dmir").exists())

    @needs("equinox")
    def test_equinox(self):
        import equinox as eqx
        import jax

        mlp = eqx.nn.MLP(4, 2, 8, 1, activation=jax.nn.relu, key=jax.random.key(0))
        for f in lambda m, x: m(x), eqx.filter_jit(lambda m, x: m(x)):
            self.assertIn("stablehlo.maximum", dmir.trace(f, mlp, dmir.shape("f32[4]"), name="mlp").program.read_text())


if __name__ == "__main__":
    sys.exit(__import__("unittest").main())
