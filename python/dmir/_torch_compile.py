"""dmir as a back end of torch.compile, for inference on the processor."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Sequence
from typing import Any, Callable

from . import _build, _torch
from ._errors import BinaryError, Error
from ._library import Library, Tensor

# The element types of the C interface in PyTorch.
_TYPES = {
    "f64": "float64",
    "f32": "float32",
    "f16": "float16",
    "bf16": "bfloat16",
    "f8E4M3FN": "float8_e4m3fn",
    "f8E5M2": "float8_e5m2",
    "i64": "int64",
    "i32": "int32",
    "i16": "int16",
    "i8": "int8",
    "ui64": "uint64",
    "ui32": "uint32",
    "ui16": "uint16",
    "ui8": "uint8",
    "i1": "bool",
}
_RANDOM = ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")  # ops of ONNX


def torch_backend(graph: Any, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    """The back end: torch.compile(model, backend="dmir"), or backend=dmir.torch_backend where the package is not installed.

    Each graph is compiled at its first call for a set of shapes. A graph that dmir cannot compile, or that gradients may be
    asked of, runs in PyTorch, and one warning says why.
    """
    return _Graph(graph)


class _Graph:
    """A graph of torch.compile, with a program for each set of shapes."""

    def __init__(self, graph: Any) -> None:
        self._graph, self._numbers = _with_numbers(graph)
        self._programs: dict[Any, Callable[..., Any]] = {}
        self._lock = threading.Lock()
        self._warned = False

    def __call__(self, *args: Any) -> Any:
        import torch

        if torch.is_grad_enabled() and any(isinstance(x, torch.Tensor) and x.requires_grad for x in args):
            self._warn("gradients may be asked of its results; call it under torch.no_grad()")
            return self._graph(*args)
        if self._numbers:
            args = tuple(x.item() if i in self._numbers else x for i, x in enumerate(args))
        key = tuple((x.shape, x.dtype, x.device) if isinstance(x, torch.Tensor) else x for x in args)
        program = self._programs.get(key)
        if program is None:
            with self._lock:
                program = self._programs.get(key) or self._make(args)
                self._programs[key] = program
        return program(*args)

    def _make(self, args: tuple) -> Callable[..., Any]:
        try:
            return _Program(self._graph, args)
        except BinaryError:
            raise
        except Error as e:
            self._warn(str(e))
        except Exception as e:  # of the exporter, which raises its own and any other
            self._warn((str(e).strip() or type(e).__name__).splitlines()[0])
        return self._graph

    def _warn(self, why: str) -> None:
        if not self._warned:
            self._warned = True
            warnings.warn(f"dmir: a graph runs in PyTorch: {why}", RuntimeWarning, stacklevel=4)


def _with_numbers(graph: Any) -> tuple[Any, set[int]]:
    """The graph with numbers in place of tensors that it only takes the number of, and the positions of these.

    torch.compile passes a float that has changed as such a tensor; as a number it is a constant of the program.
    """
    import copy

    import torch

    inputs = [n for n in graph.graph.nodes if n.op == "placeholder"]
    numbers = {i for i, n in enumerate(inputs) if n.users and all(u.op == "call_method" and u.target == "item" for u in n.users)}
    if not numbers:
        return graph, numbers
    changed = torch.fx.GraphModule(graph, copy.deepcopy(graph.graph))
    inputs = [n for n in changed.graph.nodes if n.op == "placeholder"]
    for i in numbers:
        for user in list(inputs[i].users):
            user.replace_all_uses_with(inputs[i])
            changed.graph.erase_node(user)
    changed.recompile()
    return changed, numbers


class _Program:
    """The program of a graph for tensors of the shapes of args."""

    def __init__(self, graph: Any, args: tuple) -> None:
        import torch

        for x in args:
            if isinstance(x, torch.Tensor) and x.device.type != "cpu":
                raise Error(f"a tensor is on {x.device}; dmir compiles for the processor")
        program = _torch.to_onnx(_torch.exported(graph, tuple(x.detach() if isinstance(x, torch.Tensor) else x for x in args)))
        model, results = program.model, program.exported_program.graph_signature.output_specs
        for out in results:
            if out.kind.name != "USER_OUTPUT":
                raise Error(f"it writes to {out.target}")
        if any(n.op_type in _RANDOM or n.op_type == "Dropout" and len(n.inputs) > 2 for n in model.graph):
            raise Error("it draws random numbers, and would draw the same ones in each call")
        # Tensors only: numbers are constants of the program, and results that are none have their value here.
        self._given = [i for i, x in enumerate(args) if isinstance(x, torch.Tensor)]
        self._results = [None if isinstance(s.arg, torch.export.graph_signature.TensorArgument) else s.arg for s in results]
        self._library = _build.library(program.model_proto.SerializeToString(), ".onnx")
        names = [v.name for v in model.graph.inputs]
        _fit(self._library, [args[i] for i in self._given], len(names), sum(r is None for r in self._results))

    def __call__(self, *args: Any) -> Any:
        import torch

        given = [args[i] for i in self._given]
        inputs = [x.detach().contiguous().resolve_conj().resolve_neg() for x in given]
        outputs = [torch.empty_strided(t.sizes, t.strides, dtype=getattr(torch, _TYPES[t.elem])) for t in self._library.outputs]
        self._library.run([x.data_ptr() for x in inputs], [x.data_ptr() for x in outputs])
        made = iter(outputs)
        return tuple(next(made) if r is None else r.value for r in self._results)


def _fit(library: Library, given: Sequence[Any], inputs: int, outputs: int) -> None:
    """Raises Error where the program has other inputs or outputs than the graph."""
    want = [(tuple(x.shape), x.dtype) for x in given]
    have = [(t.sizes, _type(t)) for t in library.inputs]
    if want != have or inputs != len(given):
        raise Error(f"the program has {len(have)} inputs of other types than the graph's {len(want)} tensors")
    if len(library.outputs) != outputs:
        raise Error(f"the program has {len(library.outputs)} results, the graph {outputs}")
    for t in library.outputs:
        _type(t)


def _type(t: Tensor) -> Any:
    import torch

    name = _TYPES.get(t.elem)
    if name is None or not hasattr(torch, name):
        raise Error(f"{t.name} has elements of type {t.elem}, which a tensor cannot have")
    return getattr(torch, name)
