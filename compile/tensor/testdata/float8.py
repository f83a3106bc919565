#!/usr/bin/env python3
"""Writes float8.txt: the encodings of both f8 types with their values, and numbers
of f32 at, beside and between them with what ml_dtypes rounds them to. Run with:
python3 float8.py"""
import ml_dtypes
import numpy as np

with open("float8.txt", "w") as out:
    for name, dtype in {"f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2}.items():
        values = np.arange(256, dtype=np.uint8).view(dtype).astype(np.float64)
        for code, v in enumerate(values):
            out.write(f"{name} is {code:02x} {float(v).hex() if v == v else 'nan'}\n")
        numbers = np.unique(values[np.isfinite(values) & (values >= 0)])
        top = 2 * numbers[-1] - numbers[-2]  # what would follow the largest one
        edges = (numbers + np.append(numbers[1:], top)) / 2
        x = np.concatenate([edges, edges * (1 - 2**-23), edges * (1 + 2**-23),
                            [0.0, 1e-30, 1e30, np.inf]]).astype(np.float32)
        for v in np.concatenate([x, -x]):
            code = int(v.astype(dtype).view(np.uint8))
            out.write(f"{name} of {float(v).hex()} {code:02x}\n")
