"""The cell magic %%dmir, in a shell of IPython."""

import contextlib
import io
import unittest

import dmir
from dmir import _magic
from support import Case, needs

CELL = """\
def inner(x, w):
    return x @ w

def layer(x, w):
    return jax.nn.gelu(inner(x, w))
"""


@needs("IPython", "jax")
class Magic(Case):
    def setUp(self):
        super().setUp()
        from IPython.core.interactiveshell import InteractiveShell

        InteractiveShell.clear_instance()
        self.shell = InteractiveShell.instance()
        self.addCleanup(InteractiveShell.clear_instance)
        self.shell.run_cell("%load_ext dmir\nimport jax\nS = jax.ShapeDtypeStruct\nx = S((8, 16), 'float32')")

    def cell(self, line, text):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            result = self.shell.run_cell_magic("dmir", line, text)
        return result, out.getvalue()

    def test_cells(self):
        for what, line, text, want in [
            ("the last function", "x S((16,4),'float32')", CELL, 2),
            ("arguments by name", "w=S((16,4),'float32') x=x", CELL, 2),
            ("the last expression", "x", "f = lambda x: x * 2\njax.jit(f)", 1),
            ("options", "--target h100 --by function x S((16,4),'float32')", CELL, 2),
        ]:
            with self.subTest(what):
                cost, out = self.cell(line, text)
                self.assertIsInstance(cost, dmir.Cost, out)
                self.assertEqual(sum(row["file"].startswith("ipython-input") or row["file"].startswith("In[") for row in cost.rows), want)
                if cost.by == "line" and text is CELL:
                    self.assertEqual({row["line"] for row in cost.rows}, {2, 5})
                    self.assertIn("return x @ w", str(cost))
                self.assertIn("<iframe", cost._repr_html_())

    def test_errors(self):
        for what, line, text, want in [
            ("a cell that fails", "x", "1 / 0", "ZeroDivisionError"),
            ("a cell with a syntax error", "x", "def f(:", "SyntaxError"),
            ("a function that fails", "x", "def f(x):\n    return x.nope", "dmir: f failed while it was traced: AttributeError"),
            ("an unknown option", "--fast x", "f = 1\nf", "dmir: there is no option --fast; usage: %%dmir"),
            ("an option without a value", "--by", "f = 1\nf", "dmir: --by needs a value"),
            ("an expression with a space", "S((8, 4),'float32')", "f = 1\nf", "is not an expression without spaces"),
            ("nothing to trace", "x", "a = 1", "dmir: the cell defines no function or class"),
            ("None", "x", "None", "dmir: the cell's last expression is None"),
        ]:
            with self.subTest(what):
                result, out = self.cell(line, text)
                self.assertIsNone(result)
                self.assertIn(want, out)


class Lines(unittest.TestCase):
    def test_arguments_are_expressions(self):
        self.assertEqual(
            _magic._options("x y=f(1,2) --planned 'a b'"), ({"planned": True}, [(None, "x"), ("y", "f(1,2)"), (None, "'a b'")])
        )
        for text in "*x", "**x", "x;y", "x=", "f(x", ")(":
            with self.subTest(text), self.assertRaises(dmir.Error):
                _magic._argument(text)


if __name__ == "__main__":
    unittest.main()
