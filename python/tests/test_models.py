"""Models as people write them: nearly all of what they cost lies on their lines, and the lines cost what the program costs."""

import importlib
import json
import os
import shutil
import sys
import time
import unittest
from pathlib import Path

import dmir
from support import Case, needs

FOLDER = Path(__file__).parent / "models"


# With DMIR_TABLE=1 the tests print a row for each model, of which they then plan all.
TABLE = os.environ.get("DMIR_TABLE")


class Models(Case):
    @needs("jax")
    def test_plain_jax(self):
        self.follow("plain")

    @needs("jax", "equinox", "optax")
    def test_equinox(self):
        self.follow("modules")

    @needs("jax", "flax", "optax")
    def test_flax(self):
        self.follow("jax_models", only=() if TABLE else ("gpt_step", "cnn_step"))

    @needs("torch", "onnx", "onnxscript")
    def test_torch(self):
        self.follow("layers")
        self.follow("layers", loss=True, optimizer="adamw")

    @needs("torch", "onnx", "onnxscript", "transformers")
    def test_transformers(self):
        self.follow("pretrained", library="transformers/models")

    def follow(self, module, library="", only=(), loss=None, **options):
        """Traces each model of a module, a file of the workspace, whose lines count, and those of the library's models."""
        file = next(f for f in (FOLDER / f"{module}.py", FOLDER.parents[2] / f"scripts/models/{module}.py") if f.exists())
        shutil.copy(file, self.root)
        sys.path.insert(0, str(self.root))
        self.addCleanup(sys.path.remove, str(self.root))
        self.addCleanup(sys.modules.pop, module, None)
        for name, make in importlib.import_module(module).MODELS.items():
            if only and name not in only:
                continue
            with self.subTest(module=module, model=name):
                f, args = make()
                if loss:
                    options["loss"] = "mse" if name == "U-Net" else "cross_entropy"
                start = time.perf_counter()
                trace = dmir.trace(f, *args, name="model", **options)
                seconds = time.perf_counter() - start
                written = [f"{seconds:.1f} s"]
                for planned in (False, True) if TABLE or name == "nanoGPT" else (False,):
                    cost = trace.cost(planned=planned)
                    for fields in ("time_ns",), ("read_bytes", "written_bytes"):
                        parts = [(sum(row[field] for field in fields), row.get("file", "")) for row in cost.rows]
                        total = sum(cost.total[field] for field in fields)
                        self.assertEqual(sum(n for n, _ in parts), total)
                        share = sum(n for n, where in parts if where == f"{module}.py" or library and library in where) / total
                        written.append(f"{100 * share:.1f} %")
                        if not loss:  # which, as the optimizer, dmir adds: they come from no line
                            self.assertGreaterEqual(share, 0.95, f"planned: {planned}, {fields}")
                if TABLE:
                    print("|", module, "|", name, "|", " | ".join(written), "|", flush=True)
                self.assertEqual(dmir.cost(self.without_locations(trace)).total, trace.cost().total)

    def without_locations(self, trace):
        """A trace of the same program, as an export without locations has it."""
        plain = trace.program.with_stem("plain")
        if plain.suffix == ".onnx":
            import onnx

            model = onnx.load(trace.program)
            for node in model.graph.node:
                del node.metadata_props[:]
            plain.write_bytes(model.SerializeToString())
        else:
            from jax.interpreters import mlir
            from jaxlib.mlir import ir

            with mlir.make_ir_context():
                plain.write_text(str(ir.Module.parse(trace.program.read_text())))
        data = json.loads(trace.path.read_text())
        plain.with_suffix(".json").write_text(json.dumps({**data, "program": plain.name}))
        return plain.with_suffix(".json")


if __name__ == "__main__":
    unittest.main()
