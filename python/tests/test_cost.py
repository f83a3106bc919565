"""Cost by line: its figures are those of the program, and its views are safe."""

import json
import unittest

import dmir
from dmir import _binary
from support import JAX_MODEL, Case, needs

FIGURES = "time_ns", "flop", "read_bytes", "written_bytes", "sent_bytes"


@needs("jax")
class Cost(Case):
    def test_rows_add_up_to_the_program(self):
        with self.module("model", JAX_MODEL) as model:
            made = dmir.trace(model.step)
        untraced = json.loads(_binary.run("cost", "--output-format", "json", made.program))
        main = next(f for f in untraced["functions"] if f["name"] == "main")
        for by in "line", "module", "function":
            for planned in False, True:
                with self.subTest(by=by, planned=planned):
                    cost = made.cost(by=by, planned=planned)
                    self.assertEqual((cost.by, cost.level), (by, "planned" if planned else "written"))
                    if by != "module":  # a module's row holds those below it
                        for figure in FIGURES:
                            self.assertEqual(sum(row[figure] for row in cost.rows), cost.total[figure])
                    if not planned:
                        self.assertEqual(cost.total, {figure: main.get(figure, 0) for figure in FIGURES})
        lines = {(row["file"], row["line"]) for row in made.cost().rows}
        self.assertLessEqual({("model.py", 8), ("model.py", 12), ("model.py", 15), ("model.py", 23)}, lines)
        self.assertEqual(len(made.cost(top=2).rows), 2)
        self.assertEqual(made.cost(target="a100-80").target, "a100-80")

    def test_sizes_that_are_open(self):
        """The iterations of a loop are a size that a program leaves open: the error says how to give it."""
        import jax

        def halved(x):
            return jax.lax.while_loop(lambda x: abs(x).sum() > 1, lambda x: x / 2, x)

        with self.assertRaisesRegex(dmir.Error, r'bind=\{"trips": …\}'):
            dmir.cost(halved, "f32[8]")
        few, many = (dmir.cost(halved, "f32[8]", bind={"trips": n}).total["flop"] for n in (2, 20))
        self.assertEqual(few * 10, many)

    def test_of_a_function_writes_no_trace(self):
        with self.module("model", JAX_MODEL) as model:
            cost = dmir.cost(model.step, target="h100")
        self.assertFalse((self.root / ".dmir").exists())
        self.assertIn("@main on H100", str(cost))
        self.assertIn("model.py", str(cost))
        self.assertRegex(repr(cost), r"<dmir.Cost of model.step by line on h100: \d+ ns, \d+ rows>")
        self.assertEqual(dmir.cost(str(cost._trace.path)).total["flop"], cost.total["flop"])

    def test_notebook_view(self):
        with self.module("model", JAX_MODEL.replace("# ", "")) as model:
            text = (self.root / "model.py").read_text()
            (self.root / "model.py").write_text(text.replace("def norm(x):", "def norm(x):  # </iframe><script>alert(1)</script>"))
            view = dmir.cost(model.step)._repr_html_()
        self.assertEqual(view.count("<iframe"), 3)  # lines, roofline, memory
        self.assertEqual(view.count('sandbox="allow-scripts"'), 3)
        self.assertNotIn("<script", view)  # pages are attributes
        self.assertNotIn("</iframe><", view.replace("</iframe></details>", ""))

    @needs("pandas")
    def test_data_frame(self):
        with self.module("model", JAX_MODEL) as model:
            cost = dmir.cost(model.step)
        frame = cost.to_pandas()
        self.assertEqual(len(frame), len(cost.rows))
        for figure in FIGURES:
            self.assertEqual(frame[figure].sum(), cost.total[figure])
        self.assertEqual(frame["backward.flop"].sum(), sum(r["phases"].get("backward", {}).get("flop", 0) for r in cost.rows))

    def test_what_the_binary_reports(self):
        self.write("bad.mlir", "func.func @main(%x: tensor<4xf32>) {\n  bad\n}\n")
        for what, call, want in [
            ("a program with an error", lambda: dmir.cost("bad.mlir"), r"bad.mlir:2:3: error\[DM027\]"),
            ("an unknown machine", lambda: dmir.cost("bad.mlir", target="abacus"), "is not a known machine"),
            ("a misspelt machine", lambda: dmir.cost(len, target="h1000"), "did you mean h100"),
            ("an unknown view", lambda: dmir.cost("bad.mlir", by="day"), "by='day' is not one of line, module, function"),
            ("a missing trace", lambda: dmir.cost("gone.json"), "gone.json: No such file"),
        ]:
            with self.subTest(what), self.assertRaisesRegex(dmir.Error, want):
                call()

    def test_other_answers(self):
        self.write("x.mlir", "")
        self.write("other", "#!/bin/sh\necho '[]'\n").chmod(0o755)
        import os

        os.environ["DMIR"] = str(self.root / "other")
        with self.assertRaisesRegex(dmir.Error, "install the package and the binary of one version"):
            dmir.cost("x.mlir")


if __name__ == "__main__":
    unittest.main()
