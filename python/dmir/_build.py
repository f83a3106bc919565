"""From a program to a library for this machine's processor, kept in the user's cache."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import stat
import sys
import tempfile
import threading
from pathlib import Path

from . import _binary
from ._errors import CompileError
from ._library import Library

_LOCATION = re.compile(rb"^#loc\d* = .*\n", re.M)
_lock = threading.Lock()
_loaded: dict[str, Library] = {}


def library(program: bytes, suffix: str) -> Library:
    """Compiles a program, StableHLO (".mlir") or ONNX (".onnx"), or finds what was compiled of the same content before.

    Raises CompileError with the diagnostics of the binary.
    """
    key = _key(program, suffix)
    with _lock:
        if key not in _loaded:
            _loaded[key] = Library(_built(key, program, suffix))
        return _loaded[key]


def _key(program: bytes, suffix: str) -> str:
    """The hash of what the library depends on: the program without locations, the binary, and the processor."""
    binary = Path(_binary.find()).resolve()
    info = binary.stat()
    text = _LOCATION.sub(b"", program) if suffix == ".mlir" else program
    parts = [text, suffix.encode(), f"{binary} {info.st_size} {info.st_mtime_ns}".encode(), _processor()]
    return hashlib.sha256(b"\0".join(hashlib.sha256(p).digest() for p in parts)).hexdigest()


def _processor() -> bytes:
    """What tells this processor from others, on which the code might not run."""
    try:
        with open("/proc/cpuinfo", "rb") as f:
            lines = f.read().splitlines()
        return b"\n".join(sorted({line for line in lines if line.startswith((b"flags", b"Features", b"model name"))}))
    except OSError:
        return f"{platform.machine()} {platform.processor()}".encode()


def _built(key: str, program: bytes, suffix: str) -> Path:
    path = _cache() / f"{key}.so"
    if _own(path):
        return path
    with tempfile.TemporaryDirectory(prefix=".new-", dir=path.parent) as folder:
        source, made = Path(folder) / f"program{suffix}", Path(folder) / "program.so"
        source.write_bytes(program)
        _binary.run("compile", "--emit", "so", "-o", made, source, error=CompileError)
        os.replace(made, path)
    return path


def _cache() -> Path:
    """The folder of libraries, which only this user can write to: they are code that runs."""
    named = os.environ.get("DMIR_CACHE")
    if named:
        folder = Path(named)
    elif sys.platform == "darwin":
        folder = Path.home() / "Library/Caches/dmir"
    elif sys.platform == "win32":
        folder = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData/Local") / "dmir"
    else:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dmir"
    folder = folder / "python"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as e:
        raise CompileError(f"the cache folder {folder} cannot be made: {e.strerror}; DMIR_CACHE names another one") from e
    if not _own(folder):
        raise CompileError(f"the cache folder {folder} belongs to another user, or others may write to it; DMIR_CACHE names another one")
    return folder


def _own(path: Path) -> bool:
    """Whether path is there, is this user's and no link, and others cannot write to it."""
    try:
        info = path.lstat()
    except OSError:
        return False
    if stat.S_ISLNK(info.st_mode):
        return False
    return sys.platform == "win32" or info.st_uid == os.getuid() and not info.st_mode & 0o022
