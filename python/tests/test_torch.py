"""PyTorch: traces without memory, and dmir as a back end of torch.compile."""

import json
import os
import unittest
import warnings

import dmir
from dmir import _binary
from support import TORCH_MODEL, Case, needs


@needs("torch", "onnx", "onnxscript")
class Traces(Case):
    def test_trace(self):
        import onnx
        import torch

        with self.module("net", TORCH_MODEL) as net:
            made = dmir.trace(net.Model)
            self.assertEqual((made.name, made.program.name), ("net.Model", "net.Model.onnx"))
            data = json.loads(made.path.read_text())
            self.assertEqual(data["train"], {"loss": "cross_entropy", "optimizer": "adamw", "lr": 0.001})
            self.assertEqual([f["path"] for f in data["files"]], ["net.py"])
            model = onnx.load(made.program)
            names = [i.name for i in model.graph.input]
            state = net.Model().state_dict()
            self.assertLessEqual(set(state) - {"embed.weight"}, set(names))  # tied: one input
            self.assertNotIn("embed.weight", names)
            kinds = {i.name: {p.key.rsplit(".", 1)[-1]: p.value for p in i.metadata_props} for i in model.graph.input}
            self.assertEqual(kinds["head.weight"]["kind"], "PARAMETER")
            self.assertEqual(kinds["scale"]["persistent"], "False")
            for node in model.graph.node:
                props = {p.key: p.value for p in node.metadata_props}
                self.assertIn("net.py", props.get("pkg.torch.onnx.stack_trace", ""), node.name)
                self.assertIn("pkg.torch.onnx.name_scopes", props)
            self.assertEqual(sum(n.op_type == "Dropout" for n in model.graph.node), 2)
            real = dmir.trace(net.Model().eval(), torch.zeros(4, 8, dtype=torch.int64), name="real")
            graph = onnx.load(real.program).graph
            self.assertNotIn("scale", [i.name for i in graph.input])  # a buffer with data that is not in the state_dict
            self.assertEqual(sum(n.op_type == "Dropout" for n in graph.node), 0)

    def test_nothing_is_allocated(self):
        import torch
        from torch import nn

        class Large(nn.Module):
            def __init__(self):
                super().__init__()
                self.up, self.down = nn.Linear(1 << 16, 1 << 16), nn.Linear(1 << 16, 1 << 16)  # 34 GB

            def forward(self, x):
                return self.down(torch.relu(self.up(x)))

        self.assertLess(dmir.trace(Large, dmir.shape("f32[1024,65536]"), name="large").program.stat().st_size, 1 << 16)

    def test_results_that_are_no_tensors(self):
        import torch
        from torch import nn

        class Cache:
            def __init__(self, x):
                self.x = x

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.up = nn.Linear(8, 8)

            def forward(self, x):
                return {"y": self.up(x), "cache": Cache(x), "layers": [x + 1]}

        self.assertEqual(len(self.graph(dmir.trace(Model, dmir.shape("f32[2,8]"), name="cached")).output), 2)
        model = Model()
        dmir.trace(model, dmir.shape("f32[2,8]"), name="again")
        self.assertIsInstance(model(torch.zeros(2, 8))["cache"], Cache)

    @needs("transformers")
    def test_decoder_of_transformers(self):
        import transformers

        config = transformers.GPT2Config(n_layer=1, n_embd=32, n_head=2, vocab_size=64)
        model = transformers.GPT2LMHeadModel(config)
        made = dmir.trace(model, dmir.shape("i64[2,16]"), name="gpt2")
        self.assertEqual([[d.dim_value for d in o.type.tensor_type.shape.dim] for o in self.graph(made).output], [[2, 16, 64]])
        self.assertTrue(config.use_cache)

    @needs("transformers")
    def test_experts_of_transformers(self):
        import numpy
        import torch
        import transformers

        sizes = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1, vocab_size=64)
        config = transformers.MixtralConfig(num_local_experts=4, bos_token_id=1, eos_token_id=2, **sizes)
        torch.manual_seed(0)
        model = transformers.MixtralForCausalLM(config).eval()
        tokens = torch.randint(64, (2, 9))
        made = dmir.trace(model, tokens, name="experts")
        self.assertEqual(sum(n.op_type == "GroupedMatmul" for n in self.graph(made).node), 2)
        arguments = []
        for i, given in enumerate(self.graph(made).input):
            numpy.save(f"{i}.npy", model.state_dict()[given.name] if given.name in model.state_dict() else tokens)
            arguments += ["--input", f"{given.name}={i}.npy"]
        _binary.run("run", "--device", "reference", *arguments, "--output", ".", made.program)
        result = numpy.load(f"{self.graph(made).output[0].name}.npy")
        with torch.no_grad():
            numpy.testing.assert_allclose(result, model(tokens).logits, atol=1e-5)

    @needs("transformers")
    def test_view_of_attention(self):
        """A model's view of what attention gives is valid of what the exporter writes in its place, too."""
        import transformers

        config = transformers.SwinConfig(image_size=56, depths=[1, 1], num_heads=[3, 6], embed_dim=48)
        dmir.trace(transformers.SwinModel(config).eval(), dmir.shape("f32[1,3,56,56]"), name="swin")

    def graph(self, trace):
        import onnx

        return onnx.load(trace.program).graph

    def test_cost_by_module(self):
        with self.module("net", TORCH_MODEL) as net:
            made = dmir.trace(net.Model, name="inference")
            made.path.write_text(json.dumps({k: v for k, v in json.loads(made.path.read_text()).items() if k != "train"}))
            rows = dmir.cost(made.path, by="module").rows
            self.assertLessEqual({"h.0.up", "h.1.down", "head"}, {row.get("path") for row in rows})
            lines = {row["line"] for row in dmir.cost(made.path).rows if row["file"] == "net.py"}
            self.assertLessEqual({13, 14, 29}, lines)

    def test_lines_of_functions(self):
        """What a forward calls, and a function that is no module, cost at their own lines."""
        text = """
            import torch
            from torch import nn


            def turned(x, by):
                y = torch.cos(x * by)
                return y.tanh()


            class Model(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.up = nn.Linear(8, 16)

                def forward(self, x):
                    return turned(self.up(x), 2)
            """
        with self.module("net", text) as net:
            made = dmir.cost(dmir.trace(net.Model, dmir.shape("f32[4,8]")).path)
            self.assertEqual({(row["file"], row["line"]) for row in made.rows}, {("net.py", line) for line in (7, 8, 17)})
            made = dmir.cost(net.turned, "f32[4,8]", "f32[8]")
            self.assertEqual({(row["file"], row["line"]) for row in made.rows}, {("net.py", 7), ("net.py", 8)})
            made = dmir.cost(net.turned, "f32[4,8]", "f32[8]", by="function")
            self.assertEqual({row["function"] for row in made.rows}, {"turned"})

    def test_training_step(self):
        """A module is traced, trained by dmir, and gets its weights back: those that PyTorch's own optimizer finds."""
        import numpy as np
        import torch

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.embed, self.head = torch.nn.Embedding(32, 16), torch.nn.Linear(16, 32, bias=False)
                self.head.weight = self.embed.weight
                self.layers = torch.nn.Sequential(torch.nn.Linear(16, 16, bias=False), torch.nn.BatchNorm1d(16), torch.nn.ReLU())
                self.frozen = torch.nn.Linear(16, 16).requires_grad_(False)

            def forward(self, ids):
                return self.head(self.frozen(self.layers(self.embed(ids))))

        torch.manual_seed(0)
        net, random, steps = Net(), np.random.default_rng(0), 5
        x, y = random.integers(0, 32, (steps, 8)), random.integers(0, 32, (steps, 8))
        np.save("x.npy", x)
        np.save("y.npy", y)
        options = {"loss": "cross_entropy", "optimizer": "adamw", "lr": 1e-2, "training": {"weight_decay": 0.1}}
        made = dmir.trace(net, torch.zeros(8, dtype=torch.int64), name="net", **options)
        self.assertEqual(made.train["freeze"], ["frozen.weight", "frozen.bias"])
        with torch.device("meta"):
            without = Net()
        self.assertEqual(dmir.cost(without, dmir.shape("i64[8]"), **options).total, made.cost().total)
        _binary.run("import", "-o", "net.dmir", made.path)
        _binary.run(
            "run",
            "--device",
            "reference",
            "--steps",
            str(steps),
            "--input",
            "ids=x.npy",
            "--input",
            "labels=y.npy",
            "--checkpoint",
            "ck",
            "net.dmir",
        )
        got = Net()
        got.load_state_dict(net.state_dict())
        dmir.load_state(got, "ck")
        optimizer = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], lr=1e-2, weight_decay=0.1)
        for ids, labels in zip(torch.from_numpy(x), torch.from_numpy(y)):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(ids), labels).backward()
            optimizer.step()
        for name, want in net.state_dict().items():
            torch.testing.assert_close(got.state_dict()[name], want, rtol=1e-4, atol=1e-5, msg=name)

    def test_functions_and_errors(self):
        import torch

        def f(x, y):
            return torch.softmax(x @ y, -1)

        made = dmir.trace(f, torch.ones(2, 3), torch.ones(3, 4), name="f")
        self.assertEqual(made.framework.split()[0], "torch")

        class Wrong(torch.nn.Module):
            def forward(self, x):
                return x.nope

        class Dynamic(torch.nn.Module):
            def forward(self, x):
                return x if x.sum() > 0 else -x

        for what, call, want in [
            ("a module that fails", lambda: dmir.trace(Wrong, dmir.shape("f32[2]")), "AttributeError"),
            ("control flow by data", lambda: dmir.trace(Dynamic, dmir.shape("f32[2]")), "failed while it was traced"),
            ("a line of the person's", lambda: dmir.trace(Wrong, "f32[2]"), r"test_torch.py:\d+, in forward: return x.nope\)$"),
            (
                "a remedy for control flow",
                lambda: dmir.trace(Dynamic, "f32[2]"),
                r"torch.where or torch.cond .*test_torch.py:\d+, in forward",
            ),
            ("a text that is no shape", lambda: dmir.trace(Dynamic, "2x3"), "'2x3' is not a shape"),
            ("no arguments", lambda: dmir.trace(Dynamic), "give each argument or its shape"),
            (
                "a loss that is a function",
                lambda: dmir.trace(Dynamic, "f32[2]", loss=f, optimizer="sgd"),
                "loss= is a name, one of cross_entropy, ",
            ),
            ("a loss alone", lambda: dmir.trace(Dynamic, "f32[2]", loss="mse"), "both loss= and optimizer="),
            (
                "a misspelt loss",
                lambda: dmir.trace(Dynamic, "f32[2]", loss="crossentropy", optimizer="sgd"),
                "did you mean 'cross_entropy'",
            ),
            ("a misspelt optimizer", lambda: dmir.trace(Dynamic, "f32[2]", loss="mse", optimizer="adamW2"), "did you mean 'adamw'"),
            (
                "a loss with weights",
                lambda: dmir.trace(Dynamic, "f32[2]", loss=torch.nn.CrossEntropyLoss(torch.ones(2)), optimizer="sgd"),
                "give loss='cross_entropy'",
            ),
        ]:
            with self.subTest(what), self.assertRaisesRegex(dmir.TraceError, want) as raised:
                call()
            self.assertNotIn("\n", str(raised.exception))
            self.assertIsNone(raised.exception.__cause__)
        os.environ["DMIR_TRACEBACK"] = "1"
        with self.assertRaises(dmir.TraceError) as raised:
            dmir.trace(Wrong, "f32[2]")
        self.assertIsInstance(raised.exception.__cause__, AttributeError)

    def test_names_are_those_of_the_binary(self):
        import torch
        from dmir import _torch

        for key, names in ("loss", _torch.LOSSES), ("optimizer", _torch.OPTIMIZERS):
            spec = {"loss": "mse", "optimizer": "sgd"} | {key: "none"}
            with self.assertRaisesRegex(dmir.Error, f"write one of {', '.join(names)}\n"):
                _binary.run("import", "--train", ",".join(f"{k}={v}" for k, v in spec.items()), "x.onnx")
        for given, want in [
            (torch.nn.CrossEntropyLoss(), ("cross_entropy", {})),
            (torch.nn.CrossEntropyLoss, ("cross_entropy", {})),
            (torch.nn.functional.mse_loss, ("mse", {})),
            (
                torch.nn.CrossEntropyLoss(label_smoothing=0.1, reduction="sum"),
                ("cross_entropy", {"label_smoothing": 0.1, "reduction": "sum"}),
            ),
            (torch.nn.BCEWithLogitsLoss(), ("bce_with_logits", {})),
        ]:
            self.assertEqual(_torch.loss(given), want)

    def test_size_that_depends_on_data(self):
        self.write(
            "masked.py", "from torch import nn\n\nclass Masked(nn.Module):\n    def forward(self, x):\n        return x[x > 0].sum()\n"
        )
        with self.module("masked", (self.root / "masked.py").read_text()) as masked:
            with self.assertRaisesRegex(dmir.Error, r"(?s)^masked.Masked.onnx: .*\(masked.py:5 in forward\).*torch.where") as raised:
                dmir.cost(masked.Masked(), "f32[4,8]")
        self.assertNotIn("dmir-trace-", str(raised.exception))


@needs("torch", "onnx", "onnxscript")
@unittest.skipIf(os.name == "nt", "the C interface is not tested on Windows")
class Backend(Case):
    def setUp(self):
        super().setUp()
        import torch

        torch._dynamo.reset()

    def check(self, f, *args, warned=""):
        """Compares f, compiled, with f; the warnings that dmir gives match warned, or there is none."""
        import torch

        compiled = dmir.compile(f)
        with torch.no_grad(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            got = [compiled(*args), compiled(*args)]
            want = f(*args)
        texts = [str(w.message) for w in caught if str(w.message).startswith("dmir: ")]
        self.assertEqual(len(texts), 1 if warned else 0, texts)
        if warned:
            self.assertRegex(texts[0], "^dmir: a graph runs in PyTorch: .*" + warned)
        else:
            for each in got:
                torch.testing.assert_close(each, want)
        return got

    def test_equal_to_eager(self):
        import torch

        with self.module("net", TORCH_MODEL) as net:
            torch.manual_seed(0)
            self.check(net.Model().eval(), torch.randint(0, 32, (4, 8)))
        x = torch.randn(8, 8)
        for what, f, args in [
            ("several results", lambda x: (x + 1, {"y": x.sum(), "n": 3}), (x,)),
            ("an argument as a result", lambda x: (x, x * 2), (x,)),
            ("a view", lambda x: x.relu(), (x.T[::2],)),
            ("numbers", lambda x, n: x * n, (x, 3)),
            ("a float", lambda x, n: x * n, (x, 2.5)),
            ("booleans", lambda x: (x > 0, x.argmax(1)), (x,)),
            ("half precision", lambda x: x + x, (x.bfloat16(),)),
            ("a break of the graph", lambda x: torch.sin(x) + (print("", end="") or 1), (x,)),
        ]:
            with self.subTest(what):
                self.check(f, *args)

    def test_what_torch_onnx_lacks(self):
        """Operators without a translation in torch.onnx, and those of which it loses an argument: each alone in a result."""
        import torch
        from torch.nn import functional

        torch.manual_seed(0)
        x, square, table, part = torch.randn(6, 9), torch.randn(2, 3, 8, 8), torch.randn(20, 5), torch.rand(9)
        labels = torch.tensor([0, 8, 3, 2, 3, 5])
        bags, starts = torch.randint(0, 4, (12,)), torch.tensor([0, 3, 3, 10])
        missing = torch.tensor([[1.0, float("nan"), 2.0], [3.0, 1.0, 2.0]])

        def losses(x, labels, p):
            kinds = ("mean", part), ("mean", None), ("sum", None), ("none", part)
            return [
                functional.cross_entropy(x, t, w, reduction=how, label_smoothing=0.1, ignore_index=ignored)
                for how, w in kinds
                for t, ignored in ((labels, 3), (p, -100))
            ] + [functional.cross_entropy(x[0], labels[1], label_smoothing=0.1), functional.cross_entropy(x, p)]

        def sums(bags, starts, table):
            kinds = ("sum", 1), ("mean", None), ("mean", 1), ("max", None), ("max", 1)
            return [functional.embedding_bag(bags, table, starts, mode=mode, padding_idx=pad) for mode, pad in kinds] + [
                functional.embedding_bag(bags.reshape(4, 3), table, mode="mean"),
                functional.embedding_bag(bags, table, starts, mode="sum", include_last_offset=True, per_sample_weights=table[:12, 0]),
            ]

        def others(x, square, missing):
            return [
                functional.avg_pool2d(square, 3, 2, 1, divisor_override=5),
                functional.avg_pool2d(square[0], (3, 2), ceil_mode=True, count_include_pad=False),
                *(torch.cdist(x, x[:4], p) for p in (0.0, 1.0, 3.0, float("inf"))),
                torch.cdist(x, x[:4] + 1),
                torch.median(x),
                *torch.median(x, 0, keepdim=True),
                torch.median(missing, 1)[0],
            ]

        for f, args in (losses, (x, labels, x.softmax(1))), (sums, (bags, starts, table)), (others, (x, square, missing)):
            with self.subTest(f.__name__):
                torch._dynamo.reset()
                got, want = dmir.compile(f), f(*args)
                with torch.no_grad(), warnings.catch_warnings():
                    warnings.simplefilter("error", RuntimeWarning)
                    torch.testing.assert_close(got(*args), want, equal_nan=True)

    def test_other_shapes_and_numbers(self):
        import torch

        f = dmir.compile(lambda x, n: torch.cos(x) * n)
        for rows, n in (2, 1.5), (3, 1.5), (4, 2.5), (5, 3.5), (2, 1.5):
            x = torch.randn(rows, 4)
            torch.testing.assert_close(f(x, n), torch.cos(x) * n)

    def test_what_runs_in_pytorch(self):
        import torch

        x = torch.randn(4, 4)
        self.check(lambda x: x.add_(1), x.clone(), warned="writes to")
        first, second = self.check(lambda x: torch.nn.functional.dropout(x, 0.5, True), torch.ones(64), warned="random numbers")
        self.assertFalse(torch.equal(first, second))
        linear = torch.nn.Linear(4, 4)
        compiled = dmir.compile(linear)
        with self.assertWarnsRegex(RuntimeWarning, "gradients may be asked of its results"):
            compiled(x).sum().backward()
        self.assertIsNotNone(linear.weight.grad)

    def test_by_name(self):
        import importlib.metadata

        import torch

        if not any(e.name == "dmir" for e in importlib.metadata.entry_points().select(group="torch_dynamo_backends")):
            self.skipTest("the package is not installed (pip install ./python)")
        x = torch.randn(4, 4)
        torch.testing.assert_close(torch.compile(lambda x: x @ x, backend="dmir")(x), x @ x)


if __name__ == "__main__":
    unittest.main()
