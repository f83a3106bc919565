"""Traces: programs that functions of JAX and PyTorch are, with the lines that each op comes from."""

from __future__ import annotations

import dataclasses
import datetime
import inspect
import json
import os
import re
import shutil
import sys
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, TypeVar

from . import _jax, _step, _torch, _workspace
from ._errors import Error, TraceError, meant, own_line, tracebacks
from ._shapes import read

if TYPE_CHECKING:
    from ._cost import Cost

F = TypeVar("F")
_FORMAT = 1
_WEIGHTS = ".weights.npz"  # behind the name of a trace


@dataclasses.dataclass(eq=False)
class Trace:
    """A trace on disk: path is its .json, program the .mlir or .onnx beside it."""

    name: str
    path: Path
    program: Path
    framework: str
    files: list[dict[str, str]] = dataclasses.field(repr=False)  # the person's own files that locations name
    train: dict[str, Any] | None = None

    def cost(self, **options: Any) -> Cost:
        """What each line, module or function costs: see dmir.cost."""
        from ._cost import cost

        return cost(self, **options)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Trace:
        """The trace whose .json is at path. Raises TraceError where that is none."""
        path = Path(path)
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            if data["dmir_trace"] > _FORMAT:
                raise TraceError(f"{path} is a trace of a newer dmir")
            program = path.parent / os.path.basename(data["program"])
            return cls(data["name"], path, program, data.get("framework", ""), data.get("files", []), data.get("train"))
        except OSError as e:
            raise TraceError(f"{path}: {e.strerror}") from e
        except (ValueError, KeyError, TypeError) as e:
            raise TraceError(f"{path} is no trace of dmir") from e


def trace(
    f: Any,
    *args: Any,
    name: str | None = None,
    loss: Any = None,
    optimizer: Any = None,
    lr: float | None = None,
    training: Mapping[str, Any] | None = None,
    gradient: str | None = None,
    state: int = 0,
    save_weights: bool = True,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    folder: str | os.PathLike[str] | None = None,
    command: Sequence[str] | None = None,
    **kwargs: Any,
) -> Trace:
    """Traces a function of JAX, or a module of PyTorch, for the arguments; shapes are enough.

    Args:
        f: a function of JAX, jitted or not; a torch.nn.Module, on the device "meta" so that nothing is allocated; a class
            of modules; a function of tensors.
        args, kwargs: arrays, jax.ShapeDtypeStruct, tensors, shapes as texts, "f32[8,64]", or trees of them. Without any,
            those that dmir.trace_with stated for f.
        name: what the trace is called; by default the module and the name of f.
        loss, optimizer, lr: makes f a training step. Of JAX, f(params, *inputs) is the model, the last argument the
            target; loss a function of output and target, "mse" or "cross_entropy"; optimizer one of Optax's or a name. Of
            PyTorch, names that `dmir import --train` knows, the loss also a module, such as torch.nn.CrossEntropyLoss();
            parameters that need no gradient stay as they are.
        training: of PyTorch, and with gradient="dmir", other keys of `dmir import --train`, such as {"weight_decay": 0.1}.
        gradient: of JAX, who differentiates the loss of a training step: "jax", which writes the backward pass into the program, or
            "dmir", of which `dmir plan` then chooses what is computed again and cuts the layers of a jax.lax.scan into the
            stages of a pipeline. The optimizer of the latter is "sgd", "adam" or "adamw".
        state: of JAX, how many of the first arguments are state of a step that f is: the first results, each of its argument's
            form, are their next values. `dmir run --steps` goes on with them.
        save_weights: whether the trace of a step has the values that its state begins with, where they are arrays, and of
            PyTorch are not on "meta".
        static_argnums, static_argnames: arguments that are constants, as of jax.jit.
        folder: where to write; by default .dmir/traces of the workspace.
        command: what traces again, for editors.

    Raises TraceError where f cannot be traced; its text names the line. With DMIR_TRACEBACK=1 in the environment the exception
    of f itself is its cause.
    """
    stated = getattr(f, "dmir_example", None)
    if stated is not None:
        if not args and not kwargs:
            args, kwargs = stated.arguments()
        name, loss, optimizer, lr = name or stated.name, loss or stated.loss, optimizer or stated.optimizer, lr or stated.lr
        training, gradient, state = training or stated.training, gradient or stated.gradient, state or stated.state
    args, kwargs = read(args), read(kwargs)
    name = _check_name(name) if name else _default_name(f)
    workspace = _workspace.root()
    train, weights = None, {}
    if _framework(f, args, kwargs) == "torch":
        import torch

        if state:
            raise TraceError("state= is for JAX; of PyTorch, loss= and optimizer= make a step")
        if gradient not in (None, "dmir"):
            raise TraceError(f"gradient={gradient!r}: of PyTorch dmir differentiates")
        train = _train(f, loss, optimizer, lr, training)
        framework, suffix = f"torch {torch.__version__}", ".onnx"
        program = _attempt(_torch.export, f, args, kwargs, train is not None, save_weights)
        files = _torch.files(program)
    else:
        import jax

        if (loss is None) != (optimizer is None):
            raise TraceError("a training step needs both loss= and optimizer=")
        if gradient not in (None, "jax", "dmir"):
            raise TraceError(f'gradient={gradient!r} is neither "jax" nor "dmir"')
        if gradient == "dmir" and loss is None:
            raise TraceError('gradient="dmir" is of a training step, which loss= and optimizer= make')
        if training and gradient != "dmir":
            raise TraceError('training= is for PyTorch and gradient="dmir"; of JAX the optimizer is one of Optax\'s, with its options')
        if loss is not None and state:
            raise TraceError("loss= and optimizer= make a step of a model, state= is of a function that is a step")
        framework, suffix = f"jax {jax.__version__}", ".mlir"
        if gradient == "dmir":
            train = _step.spec(optimizer, lr, training)
        if loss is not None or state:
            text, weights = _attempt(
                _jax_step,
                f,
                args,
                kwargs,
                loss,
                None if train else optimizer,
                lr,
                state,
                name,
                save_weights,
                static_argnums,
                static_argnames,
            )
        else:
            text = _attempt(_jax.lower, f, args, kwargs, static_argnums, static_argnames)
        files, program = _jax.files(text), text.encode()
    return _write(
        Path(folder) if folder else _folder(workspace),
        workspace,
        Trace(name, Path(), Path(name + suffix), framework, _workspace.sources(files, workspace), train),
        program,
        weights,
        command,
    )


def temporary(f: Any, *args: Any, **options: Any) -> Trace:
    """Traces f into a temporary folder, which is removed with the trace."""
    folder = tempfile.mkdtemp(prefix="dmir-trace-")
    try:
        made = trace(f, *args, folder=folder, **{"save_weights": False} | options)
    except BaseException:
        shutil.rmtree(folder)
        raise
    weakref.finalize(made, shutil.rmtree, folder, ignore_errors=True)
    return made


@dataclasses.dataclass(frozen=True)
class Example:
    """What trace_with states of a function."""

    args: tuple
    kwargs: dict[str, Any]
    name: str | None
    loss: Any
    optimizer: Any
    lr: float | None
    training: Mapping[str, Any] | None
    gradient: str | None
    state: int

    def arguments(self) -> tuple[tuple, dict[str, Any]]:
        """The arguments to trace with."""
        args = self.args
        if len(args) == 1 and inspect.isfunction(args[0]):
            made = args[0]()
            args = made if isinstance(made, tuple) else (made,)
        return args, self.kwargs


def trace_with(
    *args: Any,
    name: str | None = None,
    loss: Any = None,
    optimizer: Any = None,
    lr: float | None = None,
    training: Mapping[str, Any] | None = None,
    gradient: str | None = None,
    state: int = 0,
    **kwargs: Any,
) -> Callable[[F], F]:
    """A decorator that states arguments to trace a function or a class of modules with, and changes nothing else.

    Texts are shapes: @dmir.trace_with("f32[8,64]", "i32[8]"). A function without arguments, as the only argument, returns
    the tuple of the arguments when they are needed: @dmir.trace_with(lambda: (jax.eval_shape(init), x)).
    `python -m dmir trace` and dmir.trace without arguments use them; the other arguments are those of dmir.trace.
    """

    def mark(f: F) -> F:
        f.dmir_example = Example(args, kwargs, name, loss, optimizer, lr, training, gradient, state)  # type: ignore[attr-defined]
        return f

    return mark


def _attempt(make: Callable[..., Any], f: Any, *args: Any) -> Any:
    """Calls make(f, …); what fails there is a TraceError that names the person's line. The frameworks' tracebacks, of hundreds of
    lines, are shown where they are asked for."""
    try:
        return make(f, *args)
    except Error as e:
        if tracebacks():
            raise
        raise e.with_traceback(None) from None
    except Exception as e:
        first = (str(e).strip() or "no message").splitlines()[0]
        if type(e).__name__ == "GuardOnDataDependentSymNode" or "data-dependent" in first:
            first = f"what Python does here depends on data, and a trace has none: write it with torch.where or torch.cond ({first})"
        elif isinstance(e, TypeError) and first.startswith("missing a required argument"):
            first += '; give each argument or its shape, such as "f32[8,64]"'
        what = f"{getattr(f, '__qualname__', type(f).__name__)} failed while it was traced"
        raise TraceError(f"{what}: {type(e).__name__}: {first}{own_line(e)}") from (e if tracebacks() else None)


def _framework(f: Any, args: tuple, kwargs: dict[str, Any]) -> str:
    """The framework of a function: by itself, by its arguments, by what its module imports, by what is imported."""
    if _torch.is_module(f):
        return "torch"
    torch, leaves = sys.modules.get("torch"), [*args, *kwargs.values()]
    if torch is not None and any(isinstance(x, torch.Tensor) for x in leaves):
        return "torch"
    jax = sys.modules.get("jax")
    if torch is not None and (
        jax is None or torch in getattr(f, "__globals__", {}).values() and jax not in getattr(f, "__globals__", {}).values()
    ):
        return "torch"
    if not callable(f):
        raise TraceError(f"{type(f).__name__} is no function and no torch.nn.Module")
    try:
        import jax as _  # noqa: F401
    except ImportError:
        raise TraceError("JAX is not installed (pip install jax), and neither the function nor its arguments are of PyTorch") from None
    return "jax"


def _jax_step(
    f: Any,
    args: tuple,
    kwargs: dict[str, Any],
    loss: Any,
    optimizer: Any,
    lr: float | None,
    state: int,
    name: str,
    values: bool,
    *static: Any,
) -> tuple[str, dict[str, Any]]:
    """The text of a step of JAX, made of a model where there is a loss, or of the loss alone where there is no optimizer, and what
    its file of weights has."""
    if loss is None:
        step = _step.Step(f, args, state)
    elif optimizer is None:
        step = _step.loss_of_model(f, args, loss, values)
    else:
        step = _step.of_model(f, args, loss, optimizer, lr, values)
    return _step.lower(step, kwargs, f"{name}{_WEIGHTS}" if values else "", *static)


def _train(f: Any, loss: Any, optimizer: Any, lr: float | None, training: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """What `dmir import --train` completes a model of PyTorch with."""
    if loss is None and optimizer is None:
        if training or lr is not None:
            raise TraceError("lr= and training= are of a training step, which loss= and optimizer= make")
        return None
    if loss is None or optimizer is None:
        raise TraceError('a training step needs both loss= and optimizer=, such as loss="cross_entropy", optimizer="adamw"')
    loss, options = _torch.loss(loss)
    for what, name, names in ("loss", loss, _torch.LOSSES), ("optimizer", optimizer, _torch.OPTIMIZERS):
        if not isinstance(name, str):
            raise TraceError(f"of a PyTorch model {what}= is a name, one of {', '.join(names)}, and no {type(name).__name__}")
        if name not in names:
            raise TraceError(f"there is no {what} {name!r} of a PyTorch model{meant(name, names)}; the names are {', '.join(names)}")
    train = {"loss": loss, "optimizer": optimizer, **({} if lr is None else {"lr": lr}), **options, **(training or {})}
    frozen = [] if isinstance(f, type) else [name for name, p in f.named_parameters() if not p.requires_grad]
    if frozen:
        given = train.get("freeze", [])
        train["freeze"] = [*([given] if isinstance(given, str) else given), *frozen]
    return train


def _default_name(f: Any) -> str:
    module, own = getattr(f, "__module__", "") or "", getattr(f, "__qualname__", None) or type(f).__qualname__
    if not hasattr(f, "__qualname__"):
        module = type(f).__module__
    if module == "__main__":
        main = getattr(sys.modules["__main__"], "__file__", None)
        module = Path(main).stem if main else ""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", f"{module}.{own}".strip(".").replace("<locals>.", "").replace("<lambda>", "lambda")) or "trace"


def _check_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_.-]+", name) or name.startswith("."):
        raise TraceError(f"{name!r} cannot name a trace: letters, digits, '_', '-' and '.' can, and '.' is not the first")
    return name


def _folder(workspace: Path) -> Path:
    folder = workspace / ".dmir"
    if not folder.exists():
        _workspace.write(folder / ".gitignore", b"# What dmir writes, for this machine.\n*\n")
    return folder / "traces"


def _write(folder: Path, workspace: Path, made: Trace, program: bytes, weights: dict[str, Any], command: Sequence[str] | None) -> Trace:
    """Writes a trace: the program and its weights first, since the .json says that they are there."""
    made.program, made.path = folder / made.program, folder / f"{made.name}.json"
    here = os.path.relpath(Path.cwd(), workspace)
    data: dict[str, Any] = {
        "dmir_trace": _FORMAT,
        "name": made.name,
        "program": made.program.name,
        "framework": made.framework,
        **({"command": list(command)} if command else {}),
        "directory": Path(here).as_posix(),
        "created": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "files": made.files,
        **({"train": made.train} if made.train else {}),
    }
    arrays = folder / (made.name + _WEIGHTS)
    try:
        if weights:
            _workspace.write(arrays, _step.stored(weights))
        _workspace.write(made.program, program)
        _workspace.write(made.path, (json.dumps(data, indent=1, ensure_ascii=False) + "\n").encode())
    except OSError as e:
        raise TraceError(f"the trace cannot be written to {folder}: {e.strerror}") from e
    for other in {".mlir", ".onnx"} - {made.program.suffix}:
        (folder / (made.name + other)).unlink(missing_ok=True)
    if not weights:
        arrays.unlink(missing_ok=True)
    return made
