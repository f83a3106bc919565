"""Trains with a compiled step: python3 train.py transformer_train.so [steps]

The arrays are NumPy's: the program reads batches and updates weights where they are.
"""
import ctypes as c, os, sys
import numpy as np

class Tensor(c.Structure):  # dmir_tensor of dmir.h
    _fields_ = [("name", c.c_char_p), ("elem", c.c_char_p), ("rank", c.c_int32), ("shape", c.POINTER(c.c_int64)),
                ("strides", c.POINTER(c.c_int64)), ("bytes", c.c_int64), ("state", c.c_int32), ("init", c.c_double), ("stddev", c.c_double)]

lib = c.CDLL(os.path.abspath(sys.argv[1]))
lib.dmir_create.restype, lib.dmir_error.restype = c.c_void_p, c.c_char_p
lib.dmir_input.restype = lib.dmir_output.restype = c.POINTER(Tensor)
types = {b"f32": np.float32, b"f64": np.float64, b"i32": np.int32, b"i64": np.int64, b"i1": np.bool_}
array = lambda t: np.zeros(t.shape[:t.rank], types[t.elem])
given = [lib.dmir_input(i)[0] for i in range(lib.dmir_inputs())]
inputs = [array(t) for t in given]
program = c.c_void_p(lib.dmir_create(0, None, 0))
for i, (t, x) in enumerate(zip(given, inputs)):
    random = np.random.default_rng(i).normal(0, 1 if np.isnan(t.stddev) else t.stddev, x.shape)
    x[...] = t.init if not np.isnan(t.init) else random if x.dtype.kind == "f" else np.abs(random * 2)  # your data here
    lib.dmir_bind_input(program, i, x.ctypes.data_as(c.c_void_p))
results = [lib.dmir_output(i)[0] for i in range(lib.dmir_outputs())]
outputs = [inputs[t.state] if t.state >= 0 else array(t) for t in results]  # state lives where its input is
for i, y in enumerate(outputs): lib.dmir_bind_output(program, i, y.ctypes.data_as(c.c_void_p))
for step in range(int(sys.argv[2]) if len(sys.argv) > 2 else 10):
    if lib.dmir_run(program): sys.exit(lib.dmir_error(program).decode())
    print(step, *(f"{t.name.decode()} {y:.6f}" for t, y in zip(results, outputs) if y.ndim == 0))
lib.dmir_destroy(program)
