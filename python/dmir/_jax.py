"""JAX: from a function to a program in StableHLO whose locations have whole call stacks."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import re
import sys
import threading
from collections.abc import Iterator
from typing import Any, Callable

from ._shapes import Shape

# Locations of StableHLO: "/path/model.py":6:12 to :17.
_FILE = re.compile(r'"((?:[^"\\]|\\.)+)":\d+:\d+')
# What makes locations have all frames, with the names of files as Python has them.
_SETTINGS = {
    "jax_include_full_tracebacks_in_locations": True,
    "jax_traceback_in_locations_limit": 1000,
    "jax_hlo_source_file_canonicalization_regex": None,
}
_lock = threading.RLock()  # a function may trace another one while it is traced


@contextlib.contextmanager
def full_locations() -> Iterator[None]:
    """Sets JAX's configuration while a trace is made; it belongs to the process, so that one trace is made at a time."""
    import jax

    with _lock:
        old = {name: getattr(jax.config, name) for name in _SETTINGS if hasattr(jax.config, name)}
        try:
            for name in old:
                jax.config.update(name, _SETTINGS[name])
            yield
        finally:
            for name, value in old.items():
                jax.config.update(name, value)


@dataclasses.dataclass(frozen=True)
class Lowered:
    """A function lowered for one set of arguments."""

    text: str  # StableHLO
    results: Any  # a tree of shapes and element types
    statics: Any  # the leaves of the results that are no arrays, in the same tree, which has None for arrays


def lower(f: Callable[..., Any], args: tuple, kwargs: dict[str, Any], static_argnums: Any = None, static_argnames: Any = None) -> str:
    """Lowers f for the arguments: arrays, shapes, or trees of them. Returns StableHLO.

    A jitted function is lowered as it is, with its static and donated arguments. Of another function, leaves that are no
    arrays (functions, strings) and static arguments are constants, and inputs that it does not use are left out.
    """
    import jax

    args, kwargs = jax.tree.map(struct, (args, kwargs), is_leaf=lambda x: isinstance(x, Shape))
    jitted: Any = f
    if not _jitted(f) or static_argnums is not None or static_argnames is not None:
        (args, kwargs), constants = partition(f, args, kwargs, static_argnums, static_argnames)
        jitted = jax.jit(closed(f, constants, {}))
    with full_locations():
        return lowered(jitted.trace(*args, **kwargs)).as_text(debug_info=True)


def lower_all(f: Callable[..., Any], dynamic: Any, constants: Any) -> Lowered:
    """Lowers f for the arguments that partition divided; every leaf of dynamic, used or not, is an input."""
    import jax

    held: dict[str, Any] = {}
    with full_locations():
        args, kwargs = dynamic
        program = lowered(jax.jit(closed(f, constants, held), keep_unused=True).trace(*args, **kwargs))
        return Lowered(program.as_text(debug_info=True), program.out_info, held["statics"])


def lowered(traced: Any) -> Any:
    """Lowers for the processor, whatever devices there are: for a GPU, JAX may write calls of its libraries in place of ops."""
    return traced.lower(lowering_platforms=("cpu",))


def _jitted(f: Any) -> bool:
    """Whether f is a function that jax.jit returned; what other libraries jit does not take shapes for arrays."""
    return hasattr(f, "lower") and type(f).__module__.split(".")[0] in ("jax", "jaxlib")


def partition(
    f: Callable[..., Any], args: tuple, kwargs: dict[str, Any], static_argnums: Any = None, static_argnames: Any = None
) -> tuple[Any, Any]:
    """Divides the arguments into two trees of their form: arrays, and constants; each has None for what the other has.

    The constants are leaves that are no arrays, and arguments that are static: by number, by name, or as the jitted
    function f declares them.
    """
    import jax

    info = getattr(f, "_jit_info", None)
    numbers = _set(static_argnums if static_argnums is not None else getattr(info, "static_argnums", ()))
    names = _set(static_argnames if static_argnames is not None else getattr(info, "static_argnames", ()))
    numbers = {n % len(args) for n in numbers if -len(args) <= n < len(args)}

    def divide(x: Any, static: bool) -> tuple[Any, Any]:
        return (jax.tree.map(lambda _: None, x), x) if static else _divide(x)

    positional = [divide(x, i in numbers) for i, x in enumerate(args)]
    named = {k: divide(x, k in names) for k, x in kwargs.items()}
    return tuple((tuple(p[side] for p in positional), {k: v[side] for k, v in named.items()}) for side in (0, 1))  # type: ignore[return-value]


def _set(x: Any) -> set:
    return {x} if isinstance(x, (int, str)) else set(x or ())


def closed(f: Callable[..., Any], constants: Any, held: dict[str, Any]) -> Callable[..., Any]:
    """f on arrays only: the constants come from here, and what it returns beside arrays goes to held["statics"]."""

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = join((args, kwargs), constants)
        out = f(*args, **kwargs)
        out, held["statics"] = _divide(out)
        return out

    return call


def join(a: Any, b: Any) -> Any:
    """The tree of two of one form, of which each has None for what the other has."""
    import jax

    return jax.tree.map(lambda x, y: y if x is None else x, a, b, is_leaf=lambda x: x is None)


def _divide(x: Any) -> tuple[Any, Any]:
    """A tree's arrays and its other leaves. Numbers are arrays, as for jax.jit, but not in modules of Equinox, which keep
    there what is no array for its own jit, such as a rate of dropout."""
    import jax

    module = getattr(sys.modules.get("equinox"), "Module", ())

    def part(v: Any, arrays: bool) -> Any:
        if isinstance(v, module):
            return jax.tree.map(lambda u: u if _is_array(u) == arrays else None, v)
        return v if (_is_array(v) or isinstance(v, (bool, int, float, complex))) == arrays else None

    def parts(arrays: bool) -> Any:
        return jax.tree.map(lambda v: part(v, arrays), x, is_leaf=lambda v: isinstance(v, module))

    return parts(True), parts(False)


def _is_array(x: Any) -> bool:
    """Whether a leaf is an array, or the shape of one."""
    return hasattr(x, "shape") and hasattr(x, "dtype")


def struct(x: Any) -> Any:
    import jax

    return jax.ShapeDtypeStruct(x.sizes, x.dtype) if isinstance(x, Shape) else x


def files(text: str) -> list[str]:
    """The names of the files in the locations of a program."""
    return [re.sub(r"\\(.)", r"\1", name) for name in dict.fromkeys(_FILE.findall(text))]
