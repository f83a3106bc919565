"""The C interface of a program that dmir compiled for this machine's processor: dmir.h, through ctypes."""

from __future__ import annotations

import ctypes as c
import os
import threading
import weakref
from collections.abc import Sequence

from ._errors import CompileError

VERSION = 1  # of the interface


class _Tensor(c.Structure):  # dmir_tensor of dmir.h
    _fields_ = [
        ("name", c.c_char_p),
        ("elem", c.c_char_p),
        ("rank", c.c_int32),
        ("shape", c.POINTER(c.c_int64)),
        ("strides", c.POINTER(c.c_int64)),
        ("bytes", c.c_int64),
        ("state", c.c_int32),
        ("init", c.c_double),
        ("stddev", c.c_double),
    ]


class Tensor:
    """An input or an output: its name, element type ("f32"), sizes, strides in elements, and number of bytes."""

    def __init__(self, t: _Tensor) -> None:
        self.name, self.elem, self.bytes = t.name.decode(), t.elem.decode(), int(t.bytes)
        self.sizes, self.strides = tuple(t.shape[: t.rank]), tuple(t.strides[: t.rank])


class Library:
    """A compiled program. Any number of threads may run it: each run has an instance of its own, which is kept for later."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        try:
            lib = self._lib = c.CDLL(os.fspath(path))
            lib.dmir_create.restype, lib.dmir_create.argtypes = c.c_void_p, [c.c_int32, c.c_char_p, c.c_size_t]
            lib.dmir_destroy.restype, lib.dmir_destroy.argtypes = None, [c.c_void_p]
            lib.dmir_error.restype, lib.dmir_error.argtypes = c.c_char_p, [c.c_void_p]
            lib.dmir_run.argtypes = [c.c_void_p]
            for of in "input", "output":
                getattr(lib, f"dmir_{of}").restype = c.POINTER(_Tensor)
                getattr(lib, f"dmir_bind_{of}").argtypes = [c.c_void_p, c.c_int32, c.c_void_p]
            version = lib.dmir_version()
        except (OSError, AttributeError) as e:
            raise CompileError(f"{path} is no program that dmir compiled for this machine: {e}") from e
        if version != VERSION:
            raise CompileError(f"{path} has version {version} of the C interface; this package knows version {VERSION}")
        self.inputs = [Tensor(lib.dmir_input(i)[0]) for i in range(lib.dmir_inputs())]
        self.outputs = [Tensor(lib.dmir_output(i)[0]) for i in range(lib.dmir_outputs())]
        self._reset()
        if hasattr(os, "register_at_fork"):
            this = weakref.ref(self)
            os.register_at_fork(after_in_child=lambda: this() and this()._reset())  # type: ignore[union-attr]

    def _reset(self) -> None:
        """Forgets the instances: after a fork their threads are gone."""
        self._lock = threading.Lock()
        self._idle: list[_Instance] = []

    def run(self, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """Runs the program on memory at these addresses, as the inputs and outputs describe it. Raises CompileError."""
        instance = self._take()
        for i, at in enumerate(inputs):
            self._check(instance, self._lib.dmir_bind_input(instance.pointer, i, at))
        for i, at in enumerate(outputs):
            self._check(instance, self._lib.dmir_bind_output(instance.pointer, i, at))
        self._check(instance, self._lib.dmir_run(instance.pointer))
        with self._lock:
            self._idle.append(instance)

    def _take(self) -> _Instance:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return _Instance(self._lib)

    def _check(self, instance: _Instance, status: int) -> None:
        if status:
            raise CompileError((self._lib.dmir_error(instance.pointer) or b"the program failed").decode(errors="replace"))


class _Instance:
    """Memory and threads of a run; they are released with it."""

    def __init__(self, lib: c.CDLL) -> None:
        error = c.create_string_buffer(500)
        self.pointer = lib.dmir_create(0, error, len(error))
        if not self.pointer:
            raise CompileError(error.value.decode(errors="replace") or "the program has no memory to run in")
        weakref.finalize(self, _destroy, lib, self.pointer, os.getpid()).atexit = False


def _destroy(lib: c.CDLL, pointer: int, process: int) -> None:
    if process == os.getpid():  # of a fork's parent the threads are not here
        lib.dmir_destroy(pointer)
