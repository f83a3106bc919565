"""The binary: where it is, and running it."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ._errors import BinaryError, Error

_NAME = "dmir.exe" if sys.platform == "win32" else "dmir"
# How the binary says that it lacks what this package asks it for.
_TOO_OLD = ("unknown flag", "unexpected argument")


def find() -> str:
    """The path of the binary: $DMIR, else the one that the wheel installed with this package, else the one on PATH, else the one that
    `go install` made, since Go's folder of programs is not on every PATH."""
    named = os.environ.get("DMIR")
    if named:
        path = shutil.which(named)
        if path is None:
            raise BinaryError(f"the environment variable DMIR names no program: {named}")
        return path
    path = _beside() or shutil.which("dmir") or shutil.which(_of_go())
    if path is None:
        raise BinaryError(
            f"there is no dmir binary beside this package, on PATH or at {_of_go()}; install the package's wheel, run go install . in a clone, "
            "or set the environment variable DMIR to its path"
        )
    return path


def _of_go() -> str:
    """Where `go install` puts the binary, unless `go env -w` says otherwise."""
    workspace = os.environ.get("GOPATH", "").split(os.pathsep)[0] or os.path.join(os.path.expanduser("~"), "go")
    return os.path.join(os.environ.get("GOBIN") or os.path.join(workspace, "bin"), _NAME)


@functools.cache
def _beside() -> str | None:
    """The binary that the wheel with this package installed, if it did."""
    try:
        files = importlib.metadata.files("dmir") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    package = Path(__file__).resolve()
    if not any(Path(f.locate()).resolve() == package for f in files):
        return None  # the metadata are of another copy
    for f in files:
        if f.name == _NAME and ".." in f.parts:
            return shutil.which(os.path.normpath(f.locate()))
    return None


def run(*args: str | os.PathLike[str], input: str | None = None, statuses: Sequence[int] = (0,), error: type[Error] = Error) -> str:
    """Runs the binary and returns what it prints to stdout.

    Raises error, with what it prints to stderr, where its exit status is not one of statuses.
    """
    binary = find()
    try:
        done = subprocess.run(
            [binary, *(os.fspath(a) for a in args)], input=input, capture_output=True, text=True, encoding="utf-8", errors="replace"
        )
    except OSError as e:
        raise BinaryError(f"{binary} cannot be started: {e.strerror}") from e
    if done.returncode in statuses:
        return done.stdout
    text = done.stderr.strip()
    if any(sign in text for sign in _TOO_OLD):
        first = text.splitlines()[0].removeprefix("dmir: error: ")
        raise BinaryError(f"{binary} ({version()}) is too old for this package: {first}")
    raise error(text or f"{binary} exited with status {done.returncode}")


def version() -> str:
    """What `dmir version` prints, for example "dmir 0.1.0 go1.26.8 linux/amd64"."""
    return subprocess.run([find(), "version"], capture_output=True, text=True).stdout.strip() or "of unknown version"
