"""Cost by line, module or function, as the binary computes it."""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import _binary
from ._errors import Error
from ._trace import Trace, temporary

_OPEN = re.compile(r"--bind (\S+)=…")
_VIEWS = ("line", "module", "function", "scope")


class Cost:
    """What the lines, modules or functions of a program cost.

    total: the figures of the entry function: time_ns, flop, read_bytes, written_bytes, sent_bytes.
    rows: a dictionary for each line, module or function, the heaviest first: the same figures, which add up to total
        exactly, where it is (file, line, function, text; path, class), share (of the time), phases (forward, backward,
        update), held_bytes (at the peak of memory) and others.
    functions: all functions of the program, each with name, total and rows.
    target, by, level: the machine; what the rows are of; "written" or "planned".
    """

    def __init__(self, trace: Trace | None, program: Path, arguments: list[str]) -> None:
        self._trace, self._program, self._arguments = trace, program, arguments
        text = _binary.run(*arguments, "--output-format", "json", program)
        try:
            data = json.loads(text)
            if data["dmir_json"] != 1:
                raise ValueError(data["dmir_json"])
            self.target: str = data["target"]
            self.by: str = data["by"]
            self.level: str = data["level"]
            self.functions: list[dict[str, Any]] = data["functions"]
            entry = next((f for f in self.functions if f["name"] == "main"), self.functions[0])
            self.total: dict[str, int] = entry["total"]
            self.rows: list[dict[str, Any]] = entry["rows"]
        except (ValueError, KeyError, IndexError, TypeError) as e:
            raise Error(
                f"{_binary.find()} ({_binary.version()}) answers in a form that this package does not know; install the package and the binary of one version"
            ) from e

    def to_pandas(self) -> Any:
        """The rows as a pandas.DataFrame; the figures of phases are columns such as forward.time_ns."""
        try:
            import pandas
        except ImportError:
            raise Error("to_pandas needs pandas, which is not installed (pip install pandas)") from None
        flat = []
        for row in self.rows:
            phases = {f"{phase}.{k}": v for phase, figures in row.get("phases", {}).items() for k, v in figures.items()}
            flat.append({k: v for k, v in row.items() if k != "phases"} | phases)
        empty = {k: type(v)() for row in flat for k, v in row.items()}  # 0, "" or False for what a row does not have
        return pandas.DataFrame([empty | row for row in flat], columns=list(empty))

    def __str__(self) -> str:
        return _binary.run(*self._arguments, "--output-format", "text", self._program).rstrip("\n")

    def __repr__(self) -> str:
        return f"<dmir.Cost of {self._program.stem} by {self.by} on {self.target}: {self.total['time_ns']} ns, {len(self.rows)} rows>"

    def to_html(self) -> str:
        """The annotated source, with heat, modules and the peak of memory by line: a self-contained page."""
        return _binary.run(*self._arguments, "--output-format", "html", self._program)

    def _repr_html_(self) -> str:
        program = self._trace.program if self._trace else self._program
        given = [a for a in self._arguments if a.startswith(("--target=", "--bind="))]
        parts = [_frame(self.to_html(), 540)]
        for kind, title in ("roofline", "Roofline"), ("memory", "Memory"):
            page = _binary.run("report", "--kind", kind, *given, "-o", "-", program)
            parts.append(f"<details><summary>{title}</summary>{_frame(page, 480)}</details>")
        return "\n".join(parts)


def _frame(page: str, height: int) -> str:
    """A page inside another, which its scripts cannot reach."""
    return f'<iframe sandbox="allow-scripts" srcdoc="{html.escape(page)}" style="width: 100%; height: {height}px; border: 0; resize: vertical; overflow: auto"></iframe>'


def cost(
    f: Any,
    *args: Any,
    target: str | None = None,
    by: str = "line",
    planned: bool = False,
    top: int | None = None,
    bind: Mapping[str, int] | None = None,
    **options: Any,
) -> Cost:
    """What each line, module, function or name scope of f costs on a machine, without running it.

    Args:
        f: what dmir.trace takes, with its arguments and options; or a Trace; or the path of a trace's .json or of a program.
        target: the machine, such as "h100", "local" or torch.cuda.get_device_name(); by default that of dmir.toml, else h200.
        by: "line", "module", "function" or "scope" (of JAX the name stack).
        planned: whether the figures are those of the program as it is compiled, not as it is written.
        top: the number of rows, the heaviest; by default all.
        bind: the sizes that a program leaves open, such as {"trips": 20} of a while loop whose number of iterations is not known.
    """
    if by not in _VIEWS:
        raise Error(f"by={by!r} is not one of {', '.join(_VIEWS)}")
    if isinstance(f, (str, os.PathLike)):
        program = Path(f)
        trace = Trace.load(program) if program.suffix == ".json" else None
    elif isinstance(f, Trace):
        trace, program = f, f.path
    else:
        _binary.find()  # before the trace, which takes longer
        if target:
            _binary.run("cost", f"--target={target}", "-", input="func.func @f() {\n  return\n}\n")
        trace = temporary(f, *args, **options)
        program = trace.path
    arguments = ["cost", f"--by={by}"]
    if target:
        arguments.append(f"--target={target}")
    if planned:
        arguments.append("--planned")
    if top is not None:
        arguments.append(f"--top={top}")
    arguments += [f"--bind={name}={size}" for name, size in (bind or {}).items()]
    try:
        return Cost(trace, program, arguments)
    except Error as e:
        text = _OPEN.sub(lambda m: "bind={" + ", ".join(f'"{name}": …' for name in m[1].split("=…,")) + "}", str(e))
        if not isinstance(f, (str, os.PathLike, Trace)):
            text = text.replace(f"{program.parent}{os.sep}", "")  # a folder that the person does not know
        raise type(e)(text) from None
