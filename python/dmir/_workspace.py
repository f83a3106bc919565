"""The workspace of a person: its root, which files are theirs, and writing to it."""

from __future__ import annotations

import hashlib
import linecache
import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

_ROOTS = ("dmir.toml", "pyproject.toml", ".git")
_LIBRARIES = ("site-packages", "dist-packages")


def root() -> Path:
    """The nearest folder from the current one up with a dmir.toml, pyproject.toml or .git; else the current one."""
    here = Path.cwd()
    return next((d for d in (here, *here.parents) if any((d / name).exists() for name in _ROOTS)), here)


def sources(names: Iterable[str], workspace: Path) -> list[dict[str, str]]:
    """What a trace holds of the files, as its locations name them, that are the person's own: cells of notebooks,
    and files under the workspace that are no library's."""
    found = []
    for name in dict.fromkeys(names):
        cell = _cell(name)
        if cell is not None:
            path, text = cell, "".join(linecache.getlines(name))
        else:
            own = _own(name, workspace)
            if own is None:
                continue
            path, text = own
        if text:
            found.append({"path": path, "name": name, "sha256": hashlib.sha256(text.encode()).hexdigest(), "text": text})
    return found


def _own(name: str, workspace: Path) -> tuple[str, str] | None:
    """The path in the workspace and the text of a file of the person's own; None for any other."""
    try:
        path = Path(name).resolve(strict=True)
        inside = path.relative_to(workspace.resolve())
    except (OSError, ValueError, RuntimeError):
        return None
    if not path.is_file() or _library(inside, workspace):
        return None
    try:
        return inside.as_posix(), path.read_bytes().decode()
    except (OSError, UnicodeDecodeError):
        return None


def _library(inside: Path, workspace: Path) -> bool:
    parts = inside.parts
    if any(p in _LIBRARIES for p in parts) or any(a == "lib" and b.startswith("python3") for a, b in zip(parts, parts[1:])):
        return True
    return any((workspace / parent / "pyvenv.cfg").exists() for parent in inside.parents if parent != Path("."))


def _cell(name: str) -> str | None:
    """What a cell of a notebook is called, of which the interpreter knows only the text; None for other files."""
    if not (name.startswith("<ipython-input-") or os.path.basename(os.path.dirname(name)).startswith("ipykernel_")):
        return None
    shell = _shell()
    number = getattr(getattr(shell, "compile", None), "_filename_map", {}).get(name) if shell else None
    return f"In[{number}]" if number else os.path.basename(name).strip("<>")


def _shell() -> object | None:
    """The interactive shell of IPython, where this process is one."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython else None


def write(path: Path, data: bytes) -> None:
    """Writes a file in full or not at all; folders are created."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=".new-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as f:
            f.write(data)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
