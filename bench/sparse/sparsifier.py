"""MLIR's sparsifier as a peer of bench/sparse: programs of linalg and sparse_tensor, lowered by mlir-opt, compiled by mlir-runner.

The object file that mlir-runner compiles is called in this process, with the same arrays as other peers, so that a sample has neither the
compiler nor the reading of files in it. Arrays become sparse tensors by sparse_tensor.assemble, which copies nothing.
"""
import ctypes
import re
import shutil
import subprocess
import tempfile

import numpy

INSTALL = "apt-get install mlir-22-tools"
# The levels of a matrix, and of the tensor of three dimensions that is made of one.
LEVELS = {2: ("dense", "compressed"), 3: ("compressed", "compressed", "compressed")}
# Of a row: the equation, and what is dense in it.
ROWS = {"spmv": ("ij,j->i", "x"), "spmm": ("ij,jk->ik", "x"), "mttkrp": ("ijk,jr,kr->ir", "xz"), "sddmm": ("ij,ik,jk->ij", "xz"), "spgemm": ("ik,kj->ij", "")}


class MLIR:
    def __init__(self):
        self.opt, self.runner = (shutil.which(f"{name}-22") or shutil.which(name) for name in ("mlir-opt", "mlir-runner"))
        if not self.opt or not self.runner:
            raise ImportError(f"mlir-opt and mlir-runner are not installed ({INSTALL})")
        version = subprocess.run([self.opt, "--version"], capture_output=True, text=True, check=True).stdout
        self.about = f"MLIR {re.search(r'version ([0-9.]+)', version)[1]}, mlir-opt --sparsifier and mlir-runner -O3"
        self.free = ctypes.CDLL(None).free
        self.free.argtypes = [ctypes.c_void_p]

    def prepare(self, kind, get, threads):
        kind = kind.split()[0]
        if kind not in ROWS:
            raise NotImplementedError("no linalg.generic computes it")
        if threads > 1:
            raise NotImplementedError("its code has one thread")
        p, c = get("p"), get("c")
        n = len(p) - 1
        dense = [get(name) for name in ROWS[kind][1]]
        stored, shape = [p, c, get("a")], (n, n)
        if kind == "mttkrp":
            stored, shape = fibers(p, c, get("a"), len(dense[0])), (n, len(dense[0]), n)
        sparse = kind in ("sddmm", "spgemm")
        call = self.compiled(program(kind, shape, stored, dense))
        out = (memref(1) * 3)() if sparse else memref(dense[0].ndim)()
        args = [ctypes.byref(out)] + [ctypes.byref(described(x)) for x in stored + dense] + [ctypes.c_float(0)]

        def released():
            for m in out if sparse else [out]:
                self.free(m.allocated)

        def run():
            call(*args)
            released()

        def result():
            call(*args)
            last = out[2] if sparse else out
            values = numpy.ctypeslib.as_array(ctypes.cast(last.aligned, ctypes.POINTER(ctypes.c_float)), tuple(last.sizes)).copy()
            released()
            return values

        run.result, run.alive = result, (stored, dense)
        return run

    def compiled(self, text):
        """The function @main of a program, compiled for this processor."""
        options = "--sparsifier=enable-runtime-library=false enable-index-optimizations=true reassociate-fp-reductions=true vl=16"
        with tempfile.TemporaryDirectory() as folder:

            def do(command, text=None):
                done = subprocess.run(command, input=text, capture_output=True, text=True)
                if done.returncode:
                    raise RuntimeError(f"{command[0]}: {done.stderr[:400]}")
                return done.stdout

            lowered = do([self.opt, options], text)
            do([self.runner, "-O3", "-e", "nothing", "--entry-point-result=void", "--dump-object-file", f"--object-filename={folder}/main.o"], lowered)
            do(["cc", "-shared", "-o", f"{folder}/main.so", f"{folder}/main.o"])
            return ctypes.CDLL(f"{folder}/main.so")._mlir_ciface_main


def memref(rank):
    """The descriptor of a memref."""

    class Descriptor(ctypes.Structure):
        _fields_ = [("allocated", ctypes.c_void_p), ("aligned", ctypes.c_void_p), ("offset", ctypes.c_int64), ("sizes", ctypes.c_int64 * rank), ("strides", ctypes.c_int64 * rank)]

    return Descriptor


def described(x):
    m = memref(x.ndim)(x.ctypes.data, x.ctypes.data, 0)
    m.sizes[:], m.strides[:] = x.shape, [s // x.itemsize for s in x.strides]
    return m


def fibers(p, c, a, middle):
    """Positions and coordinates of each level, and the values, of the tensor of which element (i, j) of a matrix is element (i, j mod middle, j)."""
    i = numpy.repeat(numpy.arange(len(p) - 1, dtype=numpy.int64), numpy.diff(p))
    order = numpy.lexsort((c, c % middle, i))
    fiber = (i * middle + c % middle)[order]
    first = numpy.flatnonzero(numpy.diff(fiber, prepend=-1))
    rows = fiber[first] // middle
    top = numpy.flatnonzero(numpy.diff(rows, prepend=-1))
    ints = lambda x: numpy.ascontiguousarray(x, numpy.int32)
    return [ints([0, len(top)]), ints(rows[top]), ints([*top, len(first)]), ints(fiber[first] % middle), ints([*first, len(c)]), ints(c[order]), a[order]]


def program(kind, shape, stored, dense):
    """The text of a row. Its last argument is 0: results are set to it by a loop, where a constant would be copied."""
    tensor = lambda shape, elem="f32": f"tensor<{''.join(f'{n}x' for n in shape)}{elem}>"
    inputs, output = ROWS[kind][0].split("->")
    inputs = inputs.split(",")
    letters = output + "".join(sorted(set("".join(inputs)) - set(output)))
    dims = [f"d{k}" for k in range(len(shape))]
    a, parts = tensor(shape, "f32, #a"), [tensor(x.shape, "f32" if x.dtype == numpy.float32 else "i32") for x in stored]
    operands = [("%a", a)] + [(f"%x{k}", tensor(x.shape)) for k, x in enumerate(dense)]
    arguments = [(f"%p{k}", t) for k, t in enumerate(parts)] + operands[1:] + [("%zero", "f32")]
    if kind == "spgemm":
        operands.append(operands[0])
    if kind in ("sddmm", "spgemm"):
        result, begin = a, f"%begin = tensor.empty() : {a}"
        ends = [(f"%{what}", f"memref<?x{elem}>", f"sparse_tensor.{what} %y {at} : {a} to memref<?x{elem}>")
                for what, elem, at in (("positions", "i32", "{level = 1 : index}"), ("coordinates", "i32", "{level = 1 : index}"), ("values", "f32", ""))]
    else:
        result = tensor((shape[0], *dense[0].shape[1:]))
        begin = f"%empty = tensor.empty() : {result}\n  %begin = linalg.fill ins(%zero : f32) outs(%empty : {result}) -> {result}"
        ends = [("%y", result, "")]
    maps = ", ".join(f"affine_map<({', '.join(letters)}) -> ({', '.join(s)})>" for s in [*inputs, output])
    factors, body = [f"%v{k}" for k in range(len(inputs))], []
    pattern = factors.pop(0) if kind == "sddmm" else None  # which is not a factor
    product = factors[0]
    for k, factor in enumerate(factors[1:]):
        body.append(f"%m{k} = arith.mulf {product}, {factor} : f32")
        product = f"%m{k}"
    if pattern:
        body.append(f"""%sampled = sparse_tensor.binary {pattern}, {product} : f32, f32 to f32
      overlap = {{ ^bb0(%l: f32, %r: f32): sparse_tensor.yield %r : f32 }} left = {{}} right = {{}}""")
        product = "%sampled"
    lines = "\n    ".join([*body, f"%sum = arith.addf %old, {product} : f32"])
    listed = lambda pairs: f"{', '.join(p[0] for p in pairs)} : {', '.join(p[1] for p in pairs)}"
    return f"""#a = #sparse_tensor.encoding<{{ map = ({', '.join(dims)}) -> ({', '.join(f'{d} : {l}' for d, l in zip(dims, LEVELS[len(shape)]))}), posWidth = 32, crdWidth = 32 }}>
func.func @nothing() {{ return }}
func.func @main({', '.join(f'{n}: {t}' for n, t in arguments)}) -> ({', '.join(t for _, t, _ in ends)}) attributes {{llvm.emit_c_interface}} {{
  %a = sparse_tensor.assemble ({', '.join(f'%p{k}' for k in range(len(parts) - 1))}), %p{len(parts) - 1} : ({', '.join(parts[:-1])}), {parts[-1]} to {a}
  {begin}
  %y = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{', '.join('"parallel"' if l in output else '"reduction"' for l in letters)}]}}
    ins({listed(operands)}) outs(%begin : {result}) {{
  ^bb0({', '.join(f'%v{k}: f32' for k in range(len(inputs)))}, %old: f32):
    {lines}
    linalg.yield %sum : f32
  }} -> {result}
{''.join(f'  {name} = {how}{chr(10)}' for name, _, how in ends if how)}  return {listed(ends)}
}}
"""
