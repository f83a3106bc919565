"""PyTorch: from a module to a model in ONNX whose nodes name modules and lines, without the weights' data."""

from __future__ import annotations

import contextlib
import copy
import inspect
import io
import logging
import re
import sys
import traceback
import warnings
from collections.abc import Iterator
from typing import Any, Callable

from . import _autocast, _translations
from ._errors import TraceError, own_file
from ._shapes import Shape

_FILE = re.compile(r'File "([^"\n]+)", line \d+')
_TRACE = "pkg.torch.onnx.stack_trace"
_MOST = 1_900_000_000  # bytes of weights in a file, which has less than 2 GiB
_PART = re.compile(r"_split_\d+$")  # what simplification adds to the name of a sequence whose parts become results
_LOGGERS = ("onnxscript", "onnx_ir", "torch.onnx", "torch._subclasses.fake_tensor", "torch.fx.experimental.symbolic_shapes")
_SIGNATURE = "pkg.torch.export.graph_signature.InputSpec."

# What `dmir import --train` knows.
LOSSES = ("cross_entropy", "nll", "mse", "bce_with_logits", "output")
OPTIMIZERS = ("sgd", "momentum", "adam", "adamw")


def loss(given: Any) -> tuple[Any, dict[str, Any]]:
    """The name of a loss and its options by those of `dmir import --train`, of a module or a function of PyTorch; others are as given."""
    import torch
    from torch.nn import functional

    functions = {functional.cross_entropy: "cross_entropy", functional.nll_loss: "nll", functional.mse_loss: "mse"}
    functions[functional.binary_cross_entropy_with_logits] = "bce_with_logits"
    classes = {"CrossEntropyLoss": "cross_entropy", "NLLLoss": "nll", "MSELoss": "mse", "BCEWithLogitsLoss": "bce_with_logits"}
    if isinstance(given, type) and issubclass(given, torch.nn.Module):
        given = given()
    if not isinstance(given, torch.nn.Module):
        return (functions.get(given, given), {}) if callable(given) else (given, {})
    kind = type(given).__name__
    if kind not in classes or not type(given).__module__.startswith("torch.nn."):
        return given, {}
    if any(getattr(given, name, None) is not None for name in ("weight", "pos_weight")) or given.reduction not in ("mean", "sum"):
        raise TraceError(f"{given!r} has weights or no reduction, which a training step of dmir does not have; give loss={classes[kind]!r}")
    unless = {"reduction": "mean", "ignore_index": -100, "label_smoothing": 0.0}
    return classes[kind], {k: v for k, usual in unless.items() if (v := getattr(given, k, usual)) != usual}


def is_module(f: Any) -> bool:
    """Whether f is a module or a class of modules; False without importing torch where it is not imported."""
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    return isinstance(f, torch.nn.Module) or isinstance(f, type) and issubclass(f, torch.nn.Module)


def export(f: Any, args: tuple, kwargs: dict[str, Any], training: bool = False, weights: bool = True) -> bytes:
    """A module, a class of modules that needs no arguments, or a function of tensors, as a model in ONNX.

    Parameters and buffers are inputs with their names in the state_dict. For training the graph is as it was exported, since
    simplification may fold them, and with weights those that have data are initializers. Nothing is computed, and for a module on the
    device "meta", or a class, nothing is allocated. The module is traced in the mode that it is in, training or not.
    """
    import torch

    if isinstance(f, type):
        with torch.device("meta"):
            f = f()
    module = f if isinstance(f, torch.nn.Module) else _function(f)
    module, args, kwargs = _places(module, args, kwargs)
    size = sum(t.numel() * t.element_size() for t in module.parameters() if not _has_no_data(t))
    if training and weights and size > _MOST:
        raise TraceError(f"the weights take {size / 1e9:.1f} GB, more than a file of ONNX holds; trace with save_weights=False")
    said = io.StringIO()  # torch.export prints the graph so far before it raises an error
    with contextlib.redirect_stderr(said), _autocast.as_asked(module):
        program = _autocast.written_out(exported(module, args, kwargs))
    sys.stderr.write(said.getvalue())
    with _autocast.off():
        return to_onnx(program, training, weights).model_proto.SerializeToString()


def exported(module: Any, args: tuple, kwargs: dict[str, Any] | None = None) -> Any:
    """The torch.export.ExportedProgram of a module, of whose results it has the tensors."""
    import torch

    with _quiet(), torch.no_grad(), _without_cache(module), _only_tensors(module), _called_functions():
        return torch.export.export(module, args, kwargs or {}, strict=False)


def to_onnx(exported: Any, training: bool = False, weights: bool = True) -> Any:
    """An exported program as a torch.onnx.ONNXProgram; each node has metadata of where it comes from.

    The weights are inputs, and the graph is simplified as torch.onnx does; for training it is not, and with weights those that
    have data stay initializers.
    """
    import torch

    try:
        with _quiet(), torch.no_grad():
            program = torch.onnx.export(
                exported, dynamo=True, optimize=False, verbose=False, external_data=False, custom_translation_table=_translations.table()
            )
            graph = program.model.graph
            _weights_to_inputs(graph, keep=training and weights)
            if training:
                return program
            origins = {out.name: node.metadata_props for node in graph for out in node.outputs}
            program.optimize()
    except Exception as e:  # exporters raise exceptions of their own, with the reason as a cause
        cause: BaseException = e
        while cause.__cause__ is not None:
            cause = cause.__cause__
        if isinstance(cause, ImportError):
            raise TraceError(f"torch.onnx needs a package that is not installed: {cause} (pip install onnx onnxscript)") from e
        raise TraceError(f"torch.onnx cannot export this model: {(str(cause).strip() or type(cause).__name__).splitlines()[0]}") from e
    for node in program.model.graph:
        if _TRACE not in node.metadata_props:  # a rewritten node, which has the origin of what it replaces
            names = (_PART.sub("", out.name or "") for out in node.outputs)
            node.metadata_props.update(next((origins[name] for name in names if name in origins), {}))
    return program


@contextlib.contextmanager
def _without_cache(module: Any) -> Iterator[None]:
    """Models of transformers fill no cache of keys and values, unless a caller passes use_cache=True: none is given to them."""
    configs = {
        id(c): c for m in module.modules() if (c := getattr(m, "config", None)) is not None and getattr(c, "use_cache", None) is True
    }.values()
    for c in configs:
        c.use_cache = False
    try:
        yield
    finally:
        for c in configs:
            c.use_cache = True


@contextlib.contextmanager
def _only_tensors(module: Any) -> Iterator[None]:
    """None in the places of results that torch.export has no form for, such as caches."""
    import torch
    from torch.utils import _pytree as pytree

    def kept(x: Any) -> Any:
        return x if isinstance(x, (torch.Tensor, int, float, str, bool)) else None

    hook = module.register_forward_hook(lambda module, args, result: pytree.tree_map(kept, result))
    try:
        yield
    finally:
        hook.remove()


@contextlib.contextmanager
def _called_functions() -> Iterator[None]:
    """Stack traces of nodes have the person's own functions that a forward calls, too: PyTorch keeps what is named forward alone."""
    from torch.fx.proxy import TracerBase

    filtered = getattr(TracerBase, "_filter_traceback_frames", None)
    if filtered is None:  # an older PyTorch, which keeps all frames
        yield
        return

    def with_functions(tracer: Any, stack: traceback.StackSummary) -> traceback.StackSummary:
        kept = {id(frame) for frame in filtered(tracer, stack)}
        first = next((i for i, frame in enumerate(stack) if frame.name == "forward"), len(stack))
        frames = [frame for i, frame in enumerate(stack) if id(frame) in kept or i > first and own_file(frame.filename)]
        return traceback.StackSummary.from_list(frames)

    TracerBase._filter_traceback_frames = with_functions
    try:
        yield
    finally:
        TracerBase._filter_traceback_frames = filtered


def files(data: bytes) -> list[str]:
    """The names of the files in the stack traces of a model."""
    return list(dict.fromkeys(_FILE.findall(data.decode(errors="replace"))))


def _function(f: Callable[..., Any]) -> Any:
    """A module that calls f, since only modules are exported."""
    import torch

    class Function(torch.nn.Module):  # type: ignore[misc]
        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return f(*args, **kwargs)

    own = inspect.signature(f)
    receiver = inspect.Parameter("_module", inspect.Parameter.POSITIONAL_ONLY)
    parameters = [receiver, *own.parameters.values()]
    Function.forward.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]  # names of inputs
    return Function()


def _places(module: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[Any, tuple, dict[str, Any]]:
    """The module and its arguments on one device: fake tensors, which have no data, for a module on "meta"."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils import _pytree as pytree

    tensors = [*module.parameters(), *module.buffers()]
    without_data = any(t.is_meta for t in tensors)
    device = next((t.device for t in tensors if not t.is_meta), torch.device("cpu"))
    fake = FakeTensorMode(allow_non_fake_inputs=True)

    def place(x: Any) -> Any:
        if isinstance(x, Shape):
            x = torch.empty(x.sizes, dtype=getattr(torch, x.dtype), device="meta")
        if not isinstance(x, torch.Tensor):
            return x
        if without_data:
            with fake:
                return torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="cpu")
        return torch.zeros_like(x, device=device) if x.is_meta else x

    if without_data:
        memo: dict[int, Any] = {}
        for m in module.modules():
            for t in (*m._parameters.values(), *m._buffers.values(), *vars(m).values()):
                if isinstance(t, torch.Tensor):
                    new = place(t)
                    memo[id(t)] = torch.nn.Parameter(new, t.requires_grad) if isinstance(t, torch.nn.Parameter) else new
        module = copy.deepcopy(module, memo)
    args, kwargs = pytree.tree_map(place, (args, kwargs))
    return module, args, kwargs


def _weights_to_inputs(graph: Any, keep: bool) -> None:
    """Makes the parameters and buffers inputs, whose metadata say which they are, and drops their data; with keep, those only
    that have no data.

    Buffers that are not in the state_dict stay constants, where they have data. What the graph does not use goes: PyTorch 2.6
    leaves a second name of tied weights there.
    """
    for name, value in list(graph.initializers.items()):
        if not value.uses() and value not in graph.outputs:
            del graph.initializers[name]
            continue
        kind = value.metadata_props.get(_SIGNATURE + "kind")
        stored = value.metadata_props.get(_SIGNATURE + "persistent") != "False"
        raw = getattr(value.const_value, "raw", None)
        if _has_no_data(raw) or not keep and (kind == "PARAMETER" or kind == "BUFFER" and stored):
            del graph.initializers[name]
            value.const_value = None
            graph.inputs.append(value)


def _has_no_data(x: Any) -> bool:
    import torch
    from torch._subclasses.fake_tensor import FakeTensor

    return isinstance(x, torch.Tensor) and (x.is_meta or isinstance(x, FakeTensor))


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the exporters' own warnings, which are about other uses, and what they log of an error before they raise it."""
    levels = {logger: logger.level for logger in map(logging.getLogger, _LOGGERS)}
    for logger in levels:
        logger.setLevel(logging.CRITICAL if logger.name.startswith("torch.") else logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in levels.items():
            logger.setLevel(level)
