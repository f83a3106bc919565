"""`python -m dmir`."""

import json
import os
import sys
import unittest

import dmir
from dmir import _binary
from support import JAX_MODEL, Case, needs

FAILING = """
    import dmir

    def inner(x):
        return x.nope

    @dmir.trace_with("f32[4]")
    def fails(x):
        return inner(x)

    def plain(x):
        return x + 1

    def arguments():
        return dmir.shape("f32[4]"), 2

    def made():
        return plain

    def broken():
        raise RuntimeError("no data here")
"""


@needs("jax")
class Command(Case):
    def test_trace(self):
        self.write("model.py", JAX_MODEL)
        status, out, err = self.python("-m", "dmir", "trace", "model:step", "--name", "it")
        self.assertEqual((status, out, err), (0, ".dmir/traces/it.json\n", ""))
        data = json.loads((self.root / ".dmir/traces/it.json").read_text())
        self.assertEqual(data["command"], [os.path.normpath(sys.executable), "-m", "dmir", "trace", "model:step", "--name", "it"])
        self.assertEqual([f["path"] for f in data["files"]], ["model.py"])
        (self.root / "sub").mkdir()
        os.chdir("sub")
        self.assertEqual(self.python("-m", "dmir", "trace", "../model.py:step")[0], 0)
        data = json.loads((self.root / ".dmir/traces/model.step.json").read_text())
        self.assertEqual(data["directory"], "sub")
        self.assertEqual([f["path"] for f in data["files"]], ["model.py"])

    def test_targets_and_errors(self):
        self.write("f.py", FAILING)
        self.write("syntax.py", "def f(:\n")
        self.write("exits.py", "import sys\nsys.exit(3)\n")
        self.write("needs.py", "import nothing_of_this_name\n")
        for arguments, status, want in [
            (["f:plain", "--shapes", "f32[2,2]"], 0, ""),
            (["f.py:made()", "--shapes", "f32[2,2]"], 0, ""),
            (["f:fails"], 2, "dmir: error: fails failed while it was traced: AttributeError"),
            (["f:plain"], 2, "f:plain states no arguments to trace it with"),
            (["f:plain", "--args", "f:arguments"], 2, "plain failed while it was traced: TypeError"),
            (["f:plain", "--args", "f:broken"], 2, "f:broken failed: RuntimeError: no data here"),
            (["f:plain", "--shapes", "8"], 2, "'8' is not a shape"),
            (["f:none"], 2, "f has no none"),
            (["f"], 2, "'f' is not MODULE:NAME"),
            (["f:a b"], 2, "is not MODULE:NAME"),
            (["none:f"], 2, "there is no module none"),
            (["none.py:f"], 2, "none.py: no such file"),
            (["needs:f"], 2, "needs cannot be imported: No module named 'nothing_of_this_name'"),
            (["syntax:f"], 2, "syntax failed while it was imported: SyntaxError"),
            (["exits:f"], 2, "exits failed while it was imported: SystemExit"),
        ]:
            with self.subTest(arguments=arguments):
                got, _, err = self.python("-m", "dmir", "trace", *arguments)
                self.assertEqual(got, status, err)
                last = err.strip().splitlines()[-1:] or [""]
                self.assertIn(want, last[0])
                self.assertEqual(len(err.splitlines()), 1 if status else 0)

    def test_traceback_is_the_persons(self):
        self.write("f.py", FAILING)
        _, _, err = self.python("-m", "dmir", "trace", "f:fails")
        self.assertRegex(err, r"^dmir: error: fails failed .* \(f.py:5, in inner: return x.nope\)\n$")
        os.environ["DMIR_TRACEBACK"] = "1"
        _, _, err = self.python("-m", "dmir", "trace", "f:fails")
        self.assertNotIn("dmir/_", err)  # this package's frames are left out
        lines = err.splitlines()
        self.assertEqual(lines[0], "Traceback (most recent call last):")
        self.assertIn("in inner", err)
        self.assertIn("return x.nope", err)


class Binary(Case):
    def test_other_commands_are_the_binarys(self):
        status, out, _ = self.python("-m", "dmir", "version")
        self.assertEqual(status, 0)
        self.assertRegex(out, r"^dmir \S+ ")
        self.assertEqual(self.python("-m", "dmir", "cost", "gone.dmir")[0], 2)

    def test_missing_and_old(self):
        self.write("old", "#!/bin/sh\necho 'dmir: error: unknown flag --by' >&2\nexit 2\n").chmod(0o755)
        self.write("x.mlir", "")
        os.environ.update(GOBIN=str(self.root / "none"))
        for binary, path, want in [
            (str(self.root / "gone"), "", "the environment variable DMIR names no program: .*gone"),
            (str(self.root / "x.mlir"), "", "the environment variable DMIR names no program"),
            ("", str(self.root), r"there is no dmir binary beside this package, on PATH or at .*none.dmir(\.exe)?;"),
            (str(self.root / "old"), os.environ["PATH"], r"old \(.*\) is too old for this package: unknown flag --by"),
        ]:
            with self.subTest(binary=binary, path=path):
                os.environ["DMIR"], os.environ["PATH"] = binary, path
                with self.assertRaisesRegex(dmir.BinaryError, want) as raised:
                    dmir.cost("x.mlir")
                self.assertNotIn("\n", str(raised.exception))

    def test_missing_is_said_before_a_trace(self):
        def traced(x):
            raise AssertionError("it is traced")

        os.environ.update(DMIR=str(self.root / "gone"))
        with self.assertRaises(dmir.BinaryError):
            dmir.cost(traced, dmir.shape("f32[4]"))

    @unittest.skipIf(sys.platform == "win32", "a script is no program there")
    def test_binary_of_go_install(self):
        for variables, folder in [({}, "go/bin"), ({"GOPATH": "one:two"}, "one/bin"), ({"GOPATH": "one", "GOBIN": "three"}, "three")]:
            with self.subTest(folder=folder):
                for name in ("DMIR", "GOBIN", "GOPATH"):
                    os.environ.pop(name, None)
                os.environ.update(
                    {name: os.pathsep.join(str(self.root / part) for part in value.split(":")) for name, value in variables.items()}
                )
                os.environ.update(PATH=str(self.root), HOME=str(self.root))
                made = self.write(f"{folder}/dmir", "#!/bin/sh\n")
                made.chmod(0o755)
                self.assertEqual(_binary.find(), str(made))


if __name__ == "__main__":
    unittest.main()
