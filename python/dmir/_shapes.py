"""Shapes in place of arrays: "f32[8,64]"."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from ._errors import TraceError

# The element types by their names in texts; each value is the name in NumPy, JAX and PyTorch.
_TYPES = {
    "f64": "float64",
    "f32": "float32",
    "f16": "float16",
    "bf16": "bfloat16",
    "f8e4m3fn": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2",
    "i64": "int64",
    "i32": "int32",
    "i16": "int16",
    "i8": "int8",
    "u64": "uint64",
    "u32": "uint32",
    "u16": "uint16",
    "u8": "uint8",
    "i1": "bool",
    "bool": "bool",
}
_SIZES = re.compile(r"\s*\d+(\s*[x,]\s*\d+)+\s*")
_TEXT = re.compile(r"\s*(\w+)\s*\[\s*((?:\d+\s*(?:,\s*\d+\s*)*)?)\]\s*")


@dataclasses.dataclass(frozen=True)
class Shape:
    """The type of an array: an element type, by its name in NumPy, and sizes."""

    dtype: str
    sizes: tuple[int, ...]


def shape(text: str) -> Shape:
    """Reads a shape: an element type and sizes, such as "f32[8,64]", "i64[4,16]" or "bf16[]" for a scalar.

    Raises TraceError for any other text.
    """
    found = _TEXT.fullmatch(text)
    if not found or found[1].lower() not in _TYPES and found[1].lower() not in _TYPES.values():
        raise TraceError(f"{text!r} is not a shape; write an element type and sizes, such as f32[8,64] (types: {', '.join(_TYPES)})")
    name = found[1].lower()
    return Shape(_TYPES.get(name, name), tuple(int(n) for n in found[2].split(",") if n.strip()))


def read(x: Any) -> Any:
    """Arguments with shapes in the places of texts that are written as shapes are; other texts are constants."""
    if isinstance(x, str):
        return shape(x) if "[" in x or _SIZES.fullmatch(x) else x
    if isinstance(x, dict) and type(x) is dict:
        return {k: read(v) for k, v in x.items()}
    if type(x) in (tuple, list):
        return type(x)(map(read, x))
    return x
