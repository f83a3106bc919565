"""The exceptions of the package, and where in a person's code others come from."""

from __future__ import annotations

import difflib
import linecache
import os
import re
import traceback
from collections.abc import Iterable
from pathlib import Path

_FRAME = re.compile(r'File "([^"\n]+)", line (\d+)(?:,? in ([^\n,]+))?')
_LIBRARY = re.compile(r"[/\\](site-packages|dist-packages|lib(64)?[/\\]python\d[\d.]*)[/\\]|^<(?!ipython-input)")


class Error(Exception):
    """What the package reports; its text is one sentence, or the diagnostics of the binary."""


class BinaryError(Error):
    """The binary is missing, cannot be started, or is too old for this package."""


class TraceError(Error):
    """A function cannot be traced: it failed, or no framework takes its arguments."""


class CompileError(Error):
    """A traced program cannot be compiled or run on this machine's processor."""


class StateError(Error):
    """A file holds no weights, or weights of another model."""


def tracebacks() -> bool:
    """Whether errors show the traceback of what failed, with the frameworks' frames."""
    return os.environ.get("DMIR_TRACEBACK", "") not in ("", "0")


def meant(word: str, names: Iterable[str]) -> str:
    """What follows a misspelt name, (did you mean NAME?), or nothing."""
    near = difflib.get_close_matches(word.lower(), list(names), 1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def own_line(e: BaseException | None = None, traceback_text: str = "") -> str:
    """The innermost line of the person's own code in an exception's traceback, or in a traceback's text: " (net.py:12, in
    forward: x @ y)", empty where there is none."""
    frames: list[tuple[str, int, str]] = [(f, int(n), name or "") for f, n, name in _FRAME.findall(traceback_text)]
    while e is not None:
        found = [(f.filename, f.lineno or 0, f.name) for f in traceback.extract_tb(e.__traceback__)]
        frames = [*found, *frames] if any(own_file(f[0]) for f in frames) else found or frames
        e = e.__cause__ or (None if e.__suppress_context__ else e.__context__)
    for file, line, name in reversed(frames):
        if own_file(file):
            text = linecache.getline(file, line).strip()
            shown = os.path.relpath(file) if Path(file).is_relative_to(Path.cwd()) else file
            return f" ({shown}:{line}" + (f", in {name}" if name else "") + (f": {text}" if text else "") + ")"
    return ""


def own_file(file: str) -> bool:
    """Whether a file is neither this package's nor a library's."""
    return not file.startswith(str(Path(__file__).parent)) and not _LIBRARY.search(file)
