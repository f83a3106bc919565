"""`python -m dmir trace TARGET`: finds what the command line names, and traces it."""

from __future__ import annotations

import argparse
import importlib
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ._errors import Error, TraceError, own_line, tracebacks
from ._shapes import shape
from ._trace import Trace, trace

_USAGE = """\
TARGET is MODULE:NAME or FILE.py:NAME, where NAME is a function of JAX, a torch.nn.Module or a class of modules; with () after
it, what the function or class returns, for example model.py:GPT.small() (of PyTorch on the device "meta").

Arguments to trace with are those of the decorator @dmir.trace_with, else --shapes, else --args, a function that returns a
tuple of them. The trace goes to .dmir/traces of the workspace. What fails is one line, which names yours; with DMIR_TRACEBACK=1 in the
environment its traceback is above it. Exit status: 0 traced, 2 not.
"""


def main(argv: Sequence[str]) -> int:
    """Runs the command with the arguments that follow `trace`; returns the exit status."""
    parser = argparse.ArgumentParser(
        "python -m dmir trace",
        description="Trace a function, so that dmir shows what its lines cost.",
        epilog=_USAGE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("target", metavar="TARGET", help="what to trace")
    parser.add_argument("--name", help="what the trace is called (default: the module and the name)")
    arguments = parser.add_mutually_exclusive_group()
    arguments.add_argument("--shapes", nargs="+", metavar="SHAPE", help="arguments, such as f32[8,64] i32[8]")
    arguments.add_argument("--args", metavar="MODULE:NAME", help="a function that returns a tuple of arguments")
    parser.add_argument("--loss", help="of a training step: mse, cross_entropy; of PyTorch what dmir import --train knows")
    parser.add_argument("--optimizer", help="of a training step: sgd, adam, adamw, …")
    parser.add_argument("--lr", type=float, help="the learning rate of the optimizer")
    parser.add_argument("--train", type=_pairs, metavar="KEY=VALUE,...", help="of PyTorch, other keys of dmir import --train")
    parser.add_argument("--gradient", choices=["jax", "dmir"], help="of JAX: who differentiates the loss of a training step (default: jax)")
    parser.add_argument("--state", type=int, default=0, metavar="N", help="of a step of JAX: how many of its first arguments are state")
    options = parser.parse_args(argv)
    try:
        made = _trace(options, [sys.executable, "-m", "dmir", "trace", *argv])
    except Error as e:
        cause = e.__cause__
        if tracebacks() and cause is not None and not isinstance(cause, Error) and (frames := _frames(cause)):
            traceback.print_exception(cause, limit=-frames)
        print(f"dmir: error: {e}", file=sys.stderr)
        return 2
    shown = Path(made.path)
    print(shown.relative_to(Path.cwd()) if shown.is_relative_to(Path.cwd()) else shown)
    return 0


def _pairs(text: str) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in text.split(",")]
    if not all(key and equals for key, equals, _ in pairs):
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE,…")
    return {key: value for key, _, value in pairs}


def _trace(options: argparse.Namespace, command: list[str]) -> Trace:
    f, name = resolve(options.target)
    args: tuple = ()
    if options.shapes:
        args = tuple(shape(text) for text in options.shapes)
    elif options.args:
        make, _ = resolve(options.args)
        args = _call(make, options.args)
        args = args if isinstance(args, tuple) else (args,)
    elif getattr(f, "dmir_example", None) is None:
        raise TraceError(
            f"{options.target} states no arguments to trace it with; decorate it with @dmir.trace_with(…), or give --shapes or --args"
        )
    return trace(
        f,
        *args,
        name=options.name or name,
        loss=options.loss,
        optimizer=options.optimizer,
        lr=options.lr,
        training=options.train,
        gradient=options.gradient,
        state=options.state,
        command=command,
    )


def resolve(target: str) -> tuple[Any, str | None]:
    """The object that MODULE:NAME or FILE.py:NAME names, and what a trace of it is called where the object does not tell."""
    place, colon, name = target.rpartition(":")
    called = name.endswith("()")
    path = name[:-2] if called else name
    if not colon or not place or not all(part.isidentifier() for part in path.split(".")):
        raise TraceError(f"{target!r} is not MODULE:NAME, such as package.model:step or model.py:step")
    found = _module(place)
    module = found.__name__
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise TraceError(f"{place} has no {path}") from None
    example = getattr(found, "dmir_example", None)
    if called:
        found = _call(found, target)
        if example is not None and getattr(found, "dmir_example", None) is None:
            found.dmir_example = example  # what a decorated function returns has its arguments
    return found, f"{module}.{path}"


def _module(place: str) -> Any:
    """Imports a module by its name, or by the path of its file, with the current folder on sys.path."""
    if place.endswith(".py"):
        path = Path(place)
        if not path.is_file():
            raise TraceError(f"{place}: no such file")
        sys.path.insert(0, str(path.parent.resolve()))
        place = path.stem
    elif str(Path.cwd()) not in sys.path and "" not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as e:
        if e.name and (place == e.name or place.startswith(e.name + ".")):
            raise TraceError(f"there is no module {place}; run this in the folder that it is imported from") from None
        raise TraceError(f"{place} cannot be imported: {e}") from e
    except (Exception, SystemExit) as e:
        first = (str(e).strip() or "no message").splitlines()[0]
        raise TraceError(f"{place} failed while it was imported: {type(e).__name__}: {first}{own_line(e)}") from e


def _call(f: Any, target: str) -> Any:
    """Calls what makes a model or arguments; modules of PyTorch come to be on the device "meta"."""
    import contextlib

    torch = sys.modules.get("torch")
    try:
        with torch.device("meta") if torch else contextlib.nullcontext():
            return f()
    except Exception as e:
        first = (str(e).strip() or "no message").splitlines()[0]
        raise TraceError(f"{target} failed: {type(e).__name__}: {first}{own_line(e)}") from e


def _frames(e: BaseException) -> int:
    """The number of frames at the end of e's traceback that are neither this package's nor the importer's."""
    package = str(Path(__file__).parent)
    frames = traceback.extract_tb(e.__traceback__)
    first = 0
    while first < len(frames) and (frames[first].filename.startswith(package) or "importlib" in frames[first].filename):
        first += 1
    return len(frames) - first
