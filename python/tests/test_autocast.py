"""PyTorch's autocast: as on the device that is asked for, with modules and lines."""

import unittest
import warnings

import dmir
from support import Case, needs

MODEL = """
    import torch
    from torch import nn

    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.norm, self.down = nn.Linear(64, 256), nn.LayerNorm(256), nn.Linear(256, 64)

        def forward(self, x):
            h = self.norm(self.up(x))
            with torch.autocast(x.device.type, enabled=False):
                h = h.float() * 2
            h = self.down(h)
            return h.softmax(-1)

    class Net(nn.Module):
        def __init__(self, device, dtype=torch.bfloat16):
            super().__init__()
            self.inner, self.device, self.dtype = Inner(), device, dtype

        def forward(self, x):
            with torch.autocast(self.device, dtype=self.dtype):
                return self.inner(x)

    class Decorated(Inner):
        @torch.autocast("cuda", dtype=torch.bfloat16)
        def forward(self, x):
            return super().forward(x)

    class Scaled(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @torch.amp.custom_bwd(device_type="cuda")
        def backward(ctx, g):
            return g * 2

    class Custom(Net):
        def forward(self, x):
            with torch.autocast("cuda", dtype=torch.bfloat16):
                y = Scaled.apply(self.inner(x))
            return torch.amp.GradScaler("cuda").scale(y.sum())
"""
SHAPE = "f32[32,64]"


@needs("torch", "onnx", "onnxscript")
class Autocast(Case):
    def test_regions(self):
        """The types of products, the layer norm and the softmax, in a region, a decorator, and around the call."""
        import torch

        bf16, f16, f32 = 16, 10, 1  # in ONNX
        with warnings.catch_warnings():
            warnings.simplefilter("default")  # a warning that is ignored leaves no trace
            with self.module("net", MODEL) as net:
                self.assertEqual(self.types(dmir.trace(net.Inner(), SHAPE)), {"Gemm": {f32}, "LayerNormalization": {f32}, "result": {f32}})
                on_cuda = {"Gemm": {bf16}, "LayerNormalization": {f32}, "result": {f32}}
                self.assertEqual(self.types(dmir.trace(net.Net("cuda"), SHAPE)), on_cuda)
                self.assertEqual(self.types(dmir.trace(net.Net("xpu"), SHAPE)), on_cuda)
                self.assertEqual(self.types(dmir.trace(net.Decorated(), SHAPE)), on_cuda)
                self.assertEqual(self.types(dmir.trace(net.Net("cuda", torch.float16), SHAPE)), on_cuda | {"Gemm": {f16}})
                on_cpu = {"Gemm": {bf16}, "LayerNormalization": {bf16}, "result": {bf16}}
                self.assertEqual(self.types(dmir.trace(net.Net("cpu"), SHAPE)), on_cpu)
                with torch.autocast("cuda", dtype=torch.bfloat16):
                    self.assertEqual(self.types(dmir.trace(net.Inner(), SHAPE)), on_cuda)
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    self.assertEqual(self.types(dmir.trace(net.Inner(), SHAPE)), on_cpu)
                    self.assertTrue(torch.is_autocast_enabled("cpu"))
                self.assertFalse(torch.is_autocast_enabled("cpu"))
                if not torch.cuda.is_available():
                    self.assertFalse(torch.autocast("cuda")._enabled)  # the class is as it was

    def test_off(self):
        import torch

        with self.module("net", MODEL) as net, torch.autocast("cuda", dtype=torch.bfloat16, enabled=False):
            self.assertEqual(self.types(dmir.trace(net.Inner(), SHAPE))["Gemm"], {1})

    def types(self, trace):
        """The types of the operands of products and layer norms, and of the result."""
        import onnx

        graph = onnx.shape_inference.infer_shapes(onnx.load(trace.program)).graph
        known = {v.name: v.type.tensor_type.elem_type for v in (*graph.input, *graph.value_info, *graph.output)}
        found = {"result": {known[o.name] for o in graph.output}}
        for node in graph.node:
            if node.op_type in ("Gemm", "MatMul", "LayerNormalization"):
                found.setdefault({"MatMul": "Gemm"}.get(node.op_type, node.op_type), set()).add(known[node.output[0]])
        return found

    def test_modules_and_lines(self):
        with self.module("net", MODEL) as net:
            for options in {}, {"loss": "mse", "optimizer": "sgd"}:
                trace = dmir.trace(net.Net("cuda"), SHAPE, **options)
                paths = {row.get("path") for row in trace.cost(by="module").rows}
                self.assertLessEqual({"inner.up", "inner.norm", "inner.down"}, paths)
                rows = trace.cost().rows
                self.assertLessEqual({11, 13, 14, 15}, {row["line"] for row in rows if row.get("file") == "net.py"})
                self.assertFalse([row for row in rows if "eval_with_key" in row.get("file", "")])
        text = str(trace.cost())
        self.assertIn("is the loss and the optimizer, which dmir adds", text)
        self.assertNotIn("without a line", text)

    def test_custom_functions(self):
        with self.module("net", MODEL) as net:
            self.assertEqual(self.types(dmir.trace(net.Custom("cuda"), SHAPE))["Gemm"], {16})

    def test_table(self):
        """What each device's autocast does to the ops that PyTorch registers for it: few are not float32, and these are known."""
        import torch
        from dmir import _autocast

        for device in "cuda", "cpu":
            for name, want in ("linear", "lower"), ("baddbmm", "lower"), ("mse_loss", "float32"), ("gelu", ""):
                self.assertEqual(_autocast._kind(getattr(torch.ops.aten, name).default, device), want, (device, name))
        for name, cuda, cpu in ("layer_norm", "float32", ""), ("pow", "float32", ""), ("cat", "", "widest"):
            op = getattr(torch.ops.aten, name)
            op = getattr(op, "Tensor_Scalar" if name == "pow" else "default")
            self.assertEqual((_autocast._kind(op, "cuda"), _autocast._kind(op, "cpu")), (cuda, cpu), name)
        self.assertEqual(_autocast._kind(torch.ops.aten.softmax.int, "cuda"), "dtype")
        unknown = _autocast._LOWER - _autocast._registered("cuda") - _autocast._registered("cpu") - _autocast._registered("mps")
        self.assertLessEqual(unknown, {"linalg_vecdot", "_mps_convolution", "mkldnn_rnn_layer"})  # older versions lack some


if __name__ == "__main__":
    unittest.main()
