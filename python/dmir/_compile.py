"""Functions of JAX, compiled by dmir, on arrays of NumPy and JAX."""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Sequence
from typing import Any, Callable

from . import _build, _jax
from ._errors import CompileError
from ._library import Library, Tensor

_ALIGNMENT = 64  # bytes; of results, so that JAX takes them without a copy


def compile(f: Any, *, static_argnums: int | Sequence[int] | None = None, static_argnames: str | Sequence[str] | None = None) -> Any:
    """Makes f run on this machine's processor, compiled by dmir at the first call for each set of shapes and element types.

    What was compiled before comes from a cache on disk. The compiled function may be called by any number of threads.

    Of JAX: arguments are trees of arrays of NumPy or JAX, which are read where they are if they are contiguous and have the
    element type that JAX would give them; leaves that are no arrays, and static arguments, are constants. Results are
    arrays of JAX if an argument has one, else of NumPy. Callbacks and sharded arrays are not supported.

    Of PyTorch: a torch.nn.Module, or a function of tensors, is compiled by torch.compile with dmir as the back end.

    Calls raise CompileError, with the diagnostics, where f cannot be compiled, and TraceError where it cannot be traced.
    """
    from ._trace import _framework

    if _framework(f, (), {}) == "torch":
        import torch

        from ._torch_compile import torch_backend

        return torch.compile(f, backend=torch_backend)
    return Compiled(f, static_argnums, static_argnames)


class Compiled:
    """A function of JAX that dmir compiles: see compile."""

    def __init__(self, f: Callable[..., Any], static_argnums: Any, static_argnames: Any) -> None:
        functools.update_wrapper(self, f)
        self._f, self._static = f, (static_argnums, static_argnames)
        self._programs: dict[Any, _Program] = {}
        self._lock = threading.Lock()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        import jax

        dynamic, constants = _jax.partition(self._f, args, kwargs, *self._static)
        leaves, tree = jax.tree.flatten(dynamic)
        fixed, fixed_tree = jax.tree.flatten(constants)
        key = tree, tuple(map(_kind, leaves)), fixed_tree, tuple(map(_Constant, fixed)), jax.config.jax_enable_x64
        program = self._programs.get(key)
        if program is None:
            with self._lock:
                program = self._programs.get(key) or self._make(dynamic, constants)
                self._programs[key] = program
        return program(leaves)

    def _make(self, dynamic: Any, constants: Any) -> _Program:
        from ._trace import _attempt

        lowered = _attempt(_jax.lower_all, self._f, dynamic, constants)
        return _Program(_build.library(lowered.text.encode(), ".mlir"), lowered)


class _Constant:
    """A constant as a part of a key: equal to itself, and where it can be compared to its equals."""

    def __init__(self, value: Any) -> None:
        self.value = value
        try:
            self._hash = hash(value)
        except TypeError:
            self._hash = id(value)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Constant) or self._hash != other._hash:
            return False
        return (
            self.value is other.value
            or type(self.value) is type(other.value)
            and self._hash != id(self.value)
            and bool(self.value == other.value)
        )


def _kind(x: Any) -> Any:
    """What a program depends on of an array or a number."""
    return (x.shape, x.dtype, getattr(x, "weak_type", False)) if hasattr(x, "dtype") else type(x)


class _Program:
    """The program for one set of arguments."""

    def __init__(self, library: Library, lowered: _jax.Lowered) -> None:
        import jax

        self._library, self._statics = library, lowered.statics
        results, self._tree = jax.tree.flatten(lowered.results)
        if any(jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key) for x in results):
            raise CompileError("the function returns a key of random numbers; return jax.random.key_data of it")
        if [(t.sizes, _dtype(t)) for t in library.outputs] != [(tuple(x.shape), x.dtype) for x in results]:
            raise CompileError(
                "the compiled program has other results than the function, since complex numbers, and types that the processor has not, are divided or replaced"
            )
        self._inputs = [_Input(t) for t in library.inputs]

    def __call__(self, leaves: Sequence[Any]) -> Any:
        import jax

        if len(leaves) != len(self._inputs):
            raise CompileError("the compiled program has other inputs than the function, since complex numbers are divided")
        arrays = [t.array(x) for t, x in zip(self._inputs, leaves)]
        results = [_empty(t) for t in self._library.outputs]
        self._library.run([x.ctypes.data for x in arrays], [x.ctypes.data for x in results])
        if any(isinstance(x, jax.Array) for x in leaves):
            results = jax.device_put(results)  # on the processor this takes memory that is aligned as it is
        out = jax.tree.unflatten(self._tree, results)
        return jax.tree.map(lambda a, b: b if a is None else a, out, self._statics, is_leaf=lambda x: x is None)


class _Input:
    """An input: makes of an argument an array as the program reads it."""

    def __init__(self, t: Tensor) -> None:
        self._tensor, self._dtype, self._rows = t, _dtype(t), _row_major(t)

    def array(self, x: Any) -> Any:
        import numpy as np

        a = np.asarray(_data(x))
        if a.dtype != self._dtype:
            a = a.astype(self._dtype)
        if a.shape != self._tensor.sizes:
            raise CompileError(f"the input {self._tensor.name} has the shape {self._tensor.sizes}, not {a.shape}")
        if self._rows:
            return np.require(a, requirements=("C", "ALIGNED"))
        placed = _empty(self._tensor)
        placed[...] = a
        return placed


def _data(x: Any) -> Any:
    """The numbers of a key of random numbers, and any other argument as it is."""
    import jax

    if isinstance(x, jax.Array) and jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
        return jax.random.key_data(x)
    return x


def _row_major(t: Tensor) -> bool:
    return all(s == math.prod(t.sizes[i + 1 :]) for i, s in enumerate(t.strides) if t.sizes[i] != 1)


def _empty(t: Tensor) -> Any:
    """An array without values that has the sizes, strides and element type of t, at an aligned address."""
    import numpy as np

    dtype = _dtype(t)
    memory = np.empty(t.bytes + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    flat = memory[start : start + t.bytes].view(dtype)
    if _row_major(t):
        return flat.reshape(t.sizes)
    return np.lib.stride_tricks.as_strided(flat, t.sizes, [s * dtype.itemsize for s in t.strides])


def _dtype(t: Tensor) -> Any:
    """The element type of t in NumPy, or in ml_dtypes, which JAX brings."""
    import numpy as np

    elem = t.elem
    if elem == "i1":
        return np.dtype(bool)
    kind = {"f": "float", "i": "int", "ui": "uint"}.get(elem.rstrip("0123456789"))
    if kind and int(elem.lstrip("fui")) >= 8:
        return np.dtype(kind + elem.lstrip("fui"))
    try:
        import ml_dtypes

        return np.dtype({"bf16": ml_dtypes.bfloat16, "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2}[elem])
    except (ImportError, KeyError):
        raise CompileError(f"{t.name} has elements of type {elem}, which arrays here cannot have") from None
