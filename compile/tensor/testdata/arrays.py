#!/usr/bin/env python3
"""Writes arrays.npz: 0 … 5 as 2 × 3 in every dtype, byte order and memory order
that dmir reads. Run with: python3 arrays.py"""
import numpy as np

names = {"f64": "f8", "f32": "f4", "f16": "f2", "i64": "i8", "i32": "i4", "i16": "i2", "i8": "i1",
         "ui64": "u8", "ui32": "u4", "ui16": "u2", "ui8": "u1"}
x = np.arange(6).reshape(2, 3)
out = {"i1_c": x % 2 == 1}
for elem, dtype in names.items():
    out[elem + "_little"] = x.astype("<" + dtype)
    out[elem + "_big"] = x.astype(">" + dtype)
    out[elem + "_fortran"] = np.asfortranarray(x.astype("<" + dtype))
np.savez_compressed("arrays.npz", **out)
