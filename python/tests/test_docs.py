"""Does what docs/PYTHON.md tells, in its order, in an empty folder: a block with a title is a file to save, a block of Python
runs, one of a notebook in a shell of IPython, and a block of commands shows their output. README.md shows its models in short."""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import unittest
from pathlib import Path

from dmir import _binary
from support import Case, needs

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/PYTHON.md"
BLOCK = re.compile(r'^## ([^\n]*)$|^```(\w*)(?: (notebook|jax|torch|title="(.*?)"))?\n(.*?)^```$', re.M | re.S)


class Page(Case):
    @needs("jax", "numpy", "optax", "IPython")
    def test_jax(self):
        self.follow({"JAX": "jax", "Notebooks": "jax"}, "jax")

    @needs("torch", "onnx", "onnxscript")
    def test_pytorch(self):
        self.follow({"PyTorch": "torch"}, "torch")

    def follow(self, sections, framework):
        """Follows the blocks of the sections, and those that are marked with the framework."""
        namespace, section, done = {}, "", 0
        sys.path.insert(0, str(self.root))
        self.addCleanup(sys.path.remove, str(self.root))
        for title, language, mark, file, body in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
            section = title or section
            if title or section not in sections and mark != framework:
                continue
            done += 1
            with self.subTest(section=section, block=body.splitlines()[0]):
                if file:
                    self.write(file, body)
                    self.addCleanup(sys.modules.pop, Path(file).stem, None)
                elif mark == "notebook":
                    self.cell(body)
                elif language == "python":
                    with contextlib.redirect_stdout(io.StringIO()):
                        exec(compile(body, "<page>", "exec"), namespace)
                elif language == "":
                    self.commands(body)
                else:
                    self.fail(f"a block of {language}")
        self.assertGreater(done, 4)

    @needs("jax")
    def test_readme_jax(self):
        self.short("jax", "from model import *; params, tokens, targets = shapes()", "step, ", "```text\n")

    @needs("torch", "onnx", "onnxscript")
    def test_readme_pytorch(self):
        self.short("torch", "from torchmodel import *; model = Model()", "model, ", None)

    def short(self, framework, before, argument, shown):
        """Runs the block of README.md for the framework on the model of the page, and finds the output that it shows."""
        sys.path.insert(0, str(self.root))
        self.addCleanup(sys.path.remove, str(self.root))
        for _, _, _, file, body in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
            if file:
                self.write(file, body)
                self.addCleanup(sys.modules.pop, Path(file).stem, None)
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        (block,) = re.findall(rf"^```python {framework}\n(.*?)^```$", readme, re.M | re.S)
        self.assertIn(argument, block)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(before + "\n" + block, "<page>", "exec"), {})
        if shown:
            self.shows("README.md", readme.partition(shown)[2].partition("\n```")[0], out.getvalue())

    def cell(self, body):
        from IPython.core.interactiveshell import InteractiveShell

        self.addCleanup(InteractiveShell.clear_instance)
        shell = InteractiveShell.instance()
        with contextlib.redirect_stdout(io.StringIO()):
            shell.run_cell(body).raise_error()

    def commands(self, body):
        for part in ("\n" + body).split("\n$ ")[1:]:
            command, _, want = part.partition("\n")
            words = shlex.split(command)
            words[0] = {"python": sys.executable, "dmir": _binary.find()}[words[0]]
            done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "COLUMNS": ""})
            self.assertEqual(done.returncode, 0, done.stderr)
            self.shows(command, want, done.stdout)

    def shows(self, what, want, text):
        lines = iter(text.splitlines())
        for line in want.rstrip().splitlines():
            if line != "…":
                self.assertTrue(
                    any(line == shown for shown in lines),
                    f"{what}: the page shows\n{line}\nwhich is not, in this order, in\n{text}",
                )


if __name__ == "__main__":
    unittest.main()
