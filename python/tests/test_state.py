"""Weights that `dmir run` wrote, back in models."""

import unittest

import dmir
from dmir import _binary
from support import TORCH_MODEL, Case, needs

STEP = """
    func.func @train(%params.w: tensor<4x2xf32> {dm.init = 1.0}, %params.0.b: tensor<2xbf16> {dm.init = 2.0}, %count: tensor<i32> {dm.init = 0.0})
        -> (tensor<4x2xf32> {dm.state = "params.w"}, tensor<2xbf16> {dm.state = "params.0.b"}, tensor<i32> {dm.state = "count"}) {
      %half = dm.constant 0.5 : tensor<f32>
      %w = dm.mul %params.w, %half : (tensor<4x2xf32>, tensor<f32>) -> tensor<4x2xf32>
      %b = dm.add %params.0.b, %params.0.b : tensor<2xbf16>
      %one = dm.constant 1 : tensor<i32>
      %n = dm.add %count, %one : tensor<i32>
      return %w, %b, %n : tensor<4x2xf32>, tensor<2xbf16>, tensor<i32>
    }
"""


@needs("numpy")
class State(Case):
    def checkpoint(self, steps):
        self.write("step.dmir", STEP)
        _binary.run("run", "--device", "reference", "--steps", str(steps), "--every", "1", "--checkpoint", "ck", "step.dmir")

    @needs("jax")
    def test_tree(self):
        import jax
        import jax.numpy as jnp

        self.checkpoint(3)
        params = {"w": jax.ShapeDtypeStruct((4, 2), "float32"), "0": {"b": jnp.zeros(2, jnp.bfloat16)}}
        for source, factor in {"ck": 3, "ck/step-00000003.npz": 3, "ck/step-00000001.npz": 1}.items():
            with self.subTest(source):
                got = dmir.load_state(params, source, prefix="params")
                self.assertEqual(got["w"].tolist(), [[0.5**factor] * 2] * 4)
                self.assertEqual((got["0"]["b"].tolist(), got["0"]["b"].dtype), ([2.0 * 2**factor] * 2, jnp.bfloat16))
        for what, target, source, want in [
            ("another model", {"v": params["w"]}, "ck", r"step-00000003.npz has no array params.v; it has count, params.0.b, params.w"),
            ("another shape", {"w": jnp.zeros((2, 4))}, "ck", r"params.w has the shape \(4, 2\), in the model \(2, 4\)"),
            ("a missing file", params, "none.npz", "none.npz: no such file"),
            ("a folder without arrays", params, ".", "has no checkpoint"),
            ("another file", params, "step.dmir", "step.dmir is no checkpoint of dmir"),
        ]:
            with self.subTest(what), self.assertRaisesRegex(dmir.StateError, want):
                dmir.load_state(target, source, prefix="params")

    @needs("jax")
    def test_results_of_a_run(self):
        import jax

        self.write("step.dmir", STEP)
        _binary.run("run", "--device", "reference", "--output", "out", "step.dmir")
        (self.root / "out").joinpath("w.npy").write_bytes(next((self.root / "out").glob("*w*.npy")).read_bytes())
        self.assertEqual(dmir.load_state({"w": jax.ShapeDtypeStruct((4, 2), "float32")}, "out")["w"].shape, (4, 2))

    def test_names(self):
        from dmir._state import value_name

        for path, name in {
            "params['w'][0]": "params.w.0",
            "['h']['0']": "h.0",
            "[0].weight": "v0.weight",
            "[3]": "3",
            ".a_b['c-d']": "a_b.c.d",
        }.items():
            self.assertEqual(value_name(path), name)

    @needs("torch")
    def test_module(self):
        import numpy as np
        import torch

        with self.module("net", TORCH_MODEL) as net:
            trained = net.Model()
            arrays = {n: t.numpy() + 1 for n, t in trained.state_dict().items() if n != "embed.weight"}  # one array of those that are tied
            np.savez("state.npz", **arrays)
            module = net.Model()
            state = dmir.load_state(module, "state.npz")
            for name, tensor in state.items():
                self.assertTrue(torch.equal(tensor, trained.state_dict()[name] + 1), name)
            self.assertIs(module.head.weight, module.embed.weight)
            del arrays["h.1.up.bias"]
            np.savez("less.npz", **arrays)
            with self.assertRaisesRegex(dmir.StateError, "less.npz has no array h.1.up.bias"):
                dmir.load_state(module, "less.npz")


if __name__ == "__main__":
    unittest.main()
