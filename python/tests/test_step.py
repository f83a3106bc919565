"""Training steps of JAX: dmir trains them as JAX does, and the weights go back."""

import csv
import json
import shutil
import unittest

import dmir
from dmir import _binary, _step
from support import Case, needs

STEPS = 20


def models():
    """Models as people write them: a function of parameters and inputs, the parameters, random inputs of each step, targets."""
    import equinox as eqx
    import flax.linen as nn
    import jax
    import jax.numpy as jnp
    import numpy as np

    random, key = np.random.default_rng(0), jax.random.key(0)

    def floats(*sizes):
        return random.normal(size=(STEPS, *sizes)).astype(np.float32)

    def labels(classes, *sizes):
        return random.integers(0, classes, (STEPS, *sizes)).astype(np.int32)

    def plain(params, x):
        h = jnp.tanh(x @ params["w"] + params["b"])
        return h @ params["layers"][0]["v"]

    class Block(nn.Module):
        @nn.compact
        def __call__(self, ids):
            x = nn.Embed(32, 16)(ids)
            x += nn.MultiHeadDotProductAttention(2, use_bias=False)(nn.LayerNorm()(x), mask=nn.make_causal_mask(ids))
            x += nn.Dense(16)(nn.gelu(nn.Dense(32)(nn.LayerNorm()(x))))
            return nn.Dense(32)(x)

    block, ids = Block(), labels(32, 4, 8)
    mlp = eqx.nn.MLP(8, 5, 32, 2, activation=jax.nn.gelu, key=key)
    params = {"w": 0.3 * jax.random.normal(key, (8, 16)), "b": jnp.zeros(16), "layers": [{"v": 0.3 * jax.random.normal(key, (16, 4))}]}
    return {
        "plain": (plain, params, floats(8, 8), floats(8, 4), "mse"),
        "flax": (block.apply, block.init(key, ids[0]), ids, labels(32, 4, 8), "cross_entropy"),
        "equinox": (lambda mlp, x: jax.vmap(mlp)(x), mlp, floats(8, 8), labels(5, 8), "cross_entropy"),
    }


@needs("jax", "numpy", "optax")
class Steps(Case):
    def run_steps(self, program, *inputs, device="reference"):
        """The losses of the steps, whose state goes to a new folder ck."""
        shutil.rmtree("ck", ignore_errors=True)
        given = [word for text in inputs for word in ("--input", text)]
        _binary.run("run", "--device", device, "--steps", str(STEPS), *given, "--checkpoint", "ck", "--log", "log.csv", program)
        with open("log.csv", newline="") as f:
            return [float(row["loss"]) for row in csv.DictReader(f)]

    @needs("flax", "equinox")
    def test_trained_as_jax_does(self):
        import equinox as eqx
        import jax
        import numpy as np
        import optax

        adamw = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(optax.cosine_decay_schedule(1e-2, STEPS), eps=1e-6))
        made = models()
        for name, optimizer, lr in [("plain", "sgd", 0.1), ("plain", "adam", 1e-2), ("flax", adamw, None), ("equinox", "adamw", 1e-2)]:
            with self.subTest(name, optimizer=optimizer):
                f, params, x, y, loss = made[name]
                np.save("x.npy", x)
                np.save("y.npy", y)
                trace = dmir.trace(f, params, x[0], y[0], loss=loss, optimizer=optimizer, lr=lr, name=name)
                names = {"plain": "x", "flax": "input0", "equinox": "x"}
                losses = self.run_steps(trace.program, f"{names[name]}=x.npy", "target=y.npy")
                arrays, rest = eqx.partition(params, eqx.is_inexact_array)
                step, init = _step.train_step(lambda p, x, f=f, rest=rest: f(eqx.combine(p, rest), x), loss, optimizer, lr)
                step, state, want = jax.jit(step), init(arrays), []
                for each in zip(x, y):
                    arrays, state, value = step(arrays, state, *each)
                    want.append(float(value))
                np.testing.assert_allclose(losses, want, 1e-5)
                got = dmir.load_state(params, "ck", prefix="params")
                self.assertEqual(jax.tree.structure(got), jax.tree.structure(params))
                for have, each in zip(jax.tree.leaves(eqx.filter(got, eqx.is_inexact_array)), jax.tree.leaves(arrays), strict=True):
                    np.testing.assert_allclose(have, each, 0, 1e-4 * float(abs(each).max()))

    def test_gradient_of_dmir(self):
        """dmir differentiates the loss: losses and parameters are those of JAX's steps, also where the layers of a loop are the stages of
        a pipeline."""
        import jax
        import jax.numpy as jnp
        import numpy as np

        def model(params, x, scale):
            def layer(h, w):
                return h + jnp.tanh(h @ w["a"]) @ w["b"], None

            return jax.lax.scan(layer, x @ params["in"], params["layers"])[0] @ params["out"] * scale

        random = np.random.default_rng(0)
        x, y = random.normal(size=(STEPS, 8, 6)).astype(np.float32), random.integers(0, 5, (STEPS, 8)).astype(np.int32)
        sizes = {"in": (6, 8), "layers": {"a": (4, 8, 8), "b": (4, 8, 8)}, "out": (8, 5)}
        params = jax.tree.map(lambda s: jnp.asarray(random.normal(size=s) * 0.3, "float32"), sizes, is_leaf=lambda s: type(s) is tuple)
        scale = np.ones(STEPS, np.float32)
        np.save("x.npy", x)
        np.save("y.npy", y)
        np.save("scale.npy", scale)
        inputs = "x=x.npy", "target=y.npy", "scale=scale.npy"
        for optimizer in "sgd", "adam", "adamw":
            with self.subTest(optimizer):
                made = dmir.trace(
                    model, params, x[0], scale[0], y[0], loss="cross_entropy", optimizer=optimizer, lr=1e-2, gradient="dmir", name=optimizer
                )
                step, init = _step.train_step(model, "cross_entropy", optimizer, 1e-2)
                step, now, state, want = jax.jit(step), params, init(params), []
                for each in zip(x, scale, y):
                    now, state, value = step(now, state, *each)
                    want.append(float(value))
                np.testing.assert_allclose(self.run_steps(made.path, *inputs), want, 1e-4)
                got = dmir.load_state(params, "ck", prefix="params")
                for have, each in zip(jax.tree.leaves(got), jax.tree.leaves(now), strict=True):
                    np.testing.assert_allclose(have, each, 0, 1e-3 * float(abs(each).max()))
        _binary.run("import", "-o", "step.dmir", made.path)
        plan = "plan", "--devices", "2", "--target", "dgx-h100", "--pipe", "2", "--microbatches", "2"
        _binary.run(*plan, "-o", "piped.dmir", "step.dmir")
        with open("piped.dmir") as f:
            self.assertIn("dm.stages = 2", f.read())
        np.testing.assert_allclose(self.run_steps("piped.dmir", *inputs), want, 1e-4)

    def test_what_gradient_of_dmir_refuses(self):
        import jax.numpy as jnp

        params, x = {"w": jnp.ones((4, 2))}, dmir.shape("f32[3,4]")
        for want, options in [
            ("give sgd, adam or adamw", {"optimizer": "lamb", "gradient": "dmir"}),
            ("did you mean 'adamw'", {"optimizer": "adamW", "gradient": "dmir"}),
            ('neither "jax" nor "dmir"', {"optimizer": "sgd", "gradient": "torch"}),
            ('gradient="dmir" is of a training step', {"loss": None, "gradient": "dmir"}),
            ("training= is for PyTorch and gradient=", {"optimizer": "sgd", "training": {"momentum": 0.9}}),
        ]:
            with self.subTest(want), self.assertRaisesRegex(dmir.TraceError, want):
                dmir.trace(lambda p, x: x @ p["w"], params, x, dmir.shape("f32[3,2]"), **{"loss": "mse"} | options)

    def test_a_persons_own_step(self):
        """Arguments that are state begin with the arrays that they are, and need not be used."""
        import jax
        import jax.numpy as jnp
        import numpy as np

        def step(params, count, x):
            value, grads = jax.value_and_grad(lambda p: jnp.sum((x * p["w"].astype("float32")) ** 2))(params)
            new = {"w": (params["w"] - 0.1 * grads["w"]).astype(params["w"].dtype), "unused": jnp.ones(2)}
            return new, count + 1, {"loss": value, "norm": jnp.sqrt(value)}

        params = {"w": jnp.array([1.0, 2.0, 3.0], jnp.bfloat16), "unused": jnp.zeros(2)}
        np.save("x.npy", np.full((STEPS, 3), 0.5, np.float32))
        for what, f, count in [("plain", step, 3), ("jitted", jax.jit(step, donate_argnums=(0, 1)), jnp.array(3))]:
            with self.subTest(what):
                trace = dmir.trace(f, params, count, dmir.shape("f32[3]"), state=2, name="own")
                _binary.run("import", "-o", "own.dmir", trace.path)
                for program in trace.program, "own.dmir":
                    _binary.run("run", "--device", "reference", "--steps", "2", "--input", "x=x.npy", "--output", "out", program)
                    got = dmir.load_state({"params": params, "count": jnp.array(0)}, "out")
                    want, number = params, count
                    for _ in range(2):
                        want, number, _ = step(want, number, jnp.full(3, 0.5))
                    self.assertEqual(got["params"]["w"].tolist(), want["w"].tolist())
                    self.assertEqual((got["params"]["unused"].tolist(), int(got["count"])), ([1, 1], 5))

    def test_what_a_step_begins_with(self):
        import jax
        import jax.numpy as jnp
        import numpy as np
        import optax

        def model(params, x):
            return x @ params["w"]

        x, y, w = dmir.shape("f32[8,64]"), dmir.shape("f32[8,32]"), jnp.ones((64, 32))
        shapes = {"w": jax.ShapeDtypeStruct((64, 32), "float32")}
        for what, params, optimizer, texts, arrays in [
            ("arrays", {"w": w}, "adam", [], {"params.w": 1, "state.0.count": 0, "state.0.mu.w": 0, "state.0.nu.w": 0}),
            ("shapes", shapes, "adam", ["dm.init = 0.000000e+00"] * 3, None),
            ("another number", shapes, optax.rmsprop(0.1, initial_scale=2.0), ["dm.init = 2.000000e+00"], None),
        ]:
            with self.subTest(what):
                made = dmir.trace(model, params, x, y, loss="mse", optimizer=optimizer, name="it")
                text = made.program.read_text()
                self.assertEqual(text.count("dm.init"), len(texts or arrays))
                for each in texts:
                    self.assertIn(each, text)
                file = self.root / ".dmir/traces/it.weights.npz"
                self.assertEqual(file.exists(), arrays is not None)
                if arrays:
                    with np.load(file) as have:
                        self.assertEqual({name: array.mean() for name, array in have.items()}, arrays)
        whole = dmir.cost(model, {"w": w}, x, y, loss="mse", optimizer="adam")
        self.assertEqual(whole.total, dmir.cost(model, shapes, x, y, loss="mse", optimizer="adam").total)
        self.assertNotIn("dm.file", dmir.trace(model, {"w": w}, x, y, loss="mse", optimizer="adam", save_weights=False).program.read_text())

    def test_errors(self):
        import jax.numpy as jnp

        w, x = {"w": jnp.ones((2, 2))}, dmir.shape("f32[2,2]")
        for what, f, options, want in [
            (
                "another shape",
                lambda p, x: {"w": x[:1]},
                {"state": 1},
                r"argument 0: \['w'\] is float32\[1, 2\], in the argument float32\[2, 2\]",
            ),
            ("another tree", lambda p, x: ({"v": x}, x), {"state": 1}, r"\['w'\] is missing, in the argument float32"),
            ("too few results", lambda p, x: w, {"state": 2}, "result 1 is not the next value of argument 1: it is missing"),
            ("too many", lambda p, x: w, {"state": 3}, "state=3 is not a number of the 2 arguments"),
            ("a model and a step", lambda p, x: w, {"state": 1, "loss": "mse", "optimizer": "sgd"}, "make a step of a model"),
        ]:
            with self.subTest(what), self.assertRaisesRegex(dmir.TraceError, want):
                dmir.trace(f, w, x, name="it", **options)
        self.assertFalse((self.root / ".dmir").exists())

    def test_command(self):
        self.write(
            "step.py",
            """
            import dmir

            @dmir.trace_with("f32[4]", "f32[4]", state=1)
            def step(w, x):
                return w - x, (w * x).sum()

            def plain(w, x):
                return w - x
            """,
        )
        for arguments in ["step:step"], ["step:plain", "--shapes", "f32[4]", "f32[4]", "--state", "1"]:
            with self.subTest(arguments):
                status, out, err = self.python("-m", "dmir", "trace", *arguments)
                self.assertEqual((status, err), (0, ""))
                program = json.loads((self.root / out.strip()).read_text())["program"]
                self.assertIn("dm.state = 0 : i64", (self.root / ".dmir/traces" / program).read_text())


if __name__ == "__main__":
    unittest.main()
