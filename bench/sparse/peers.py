"""Runs the rows of bench/sparse with SciPy, PyTorch or MLIR; bench/sparse starts it and talks to it in lines of JSON.

usage: peers.py scipy|torch|mlir

The first line of the output describes the peer. {"do": "prepare", "kind", "folder", "threads"} loads p, c, a, x and z from NAME.npy in
the folder, computes the row once and writes its result (run.result, where what is timed gives it in another form) as PEER.npy there; {"do": "sample", "runs": n} runs it n times and answers with
the median in seconds. A row that the peer has no function for is an error.
"""
import json
import sys
import time

import numpy
from sparsifier import MLIR


class SciPy:
    def __init__(self):
        import scipy
        import scipy.sparse

        self.sparse, self.about = scipy.sparse, f"SciPy {scipy.__version__}"

    def prepare(self, kind, get, threads):
        p, c, x = get("p"), get("c"), None if kind == "spgemm" else get("x")
        if kind.startswith("gcn"):
            raise NotImplementedError("SciPy has no gradients")
        if kind.startswith("attention"):
            raise NotImplementedError("SciPy has no softmax over what is stored")
        if kind.startswith("sddmm"):  # SciPy has none; this is how it is written with NumPy
            z, i = get("z"), numpy.repeat(numpy.arange(len(p) - 1), numpy.diff(p))
            return lambda: numpy.einsum("kd,kd->k", x[i], z[c])
        n = len(p) - 1
        m = self.sparse.csr_matrix((get("a"), c, p), shape=(n, n))
        if kind == "spgemm":

            def square():
                r = m @ m
                r.sort_indices()
                return r.data

            return square
        if kind.startswith("mttkrp"):  # SciPy has none; this is how it is written with NumPy and a product
            z, a, j = get("z"), get("a"), c % len(x)
            ones = self.sparse.csr_matrix((numpy.ones(len(c), numpy.float32), numpy.arange(len(c)), p), shape=(n, len(c)))
            return lambda: ones @ (a[:, None] * x[j] * z[c])
        return lambda: m @ x


class Torch:
    def __init__(self):
        import torch

        self.torch = torch
        self.about = f"PyTorch {torch.__version__}, MKL {torch.backends.mkl.is_available()}"

    def prepare(self, kind, get, threads):
        torch = self.torch
        torch.set_num_threads(threads)
        p, c = torch.from_numpy(get("p")), torch.from_numpy(get("c"))
        if kind == "spgemm":
            m = torch.sparse_csr_tensor(p, c, torch.from_numpy(get("a")), size=(len(p) - 1, len(p) - 1), check_invariants=False)

            def square():
                return m @ m

            def ordered():  # its rows are in no order: that is made for the comparison, not in what is timed
                r, n = square(), len(p) - 1
                row = torch.repeat_interleave(torch.arange(n), torch.diff(r.crow_indices()).long())
                return r.values()[torch.argsort(row * n + r.col_indices().long())].numpy()

            square.result = ordered
            return square
        x = torch.from_numpy(get("x"))
        if kind.startswith("gcn"):
            return self.network(p, c, torch.from_numpy(get("a")), x, *(torch.from_numpy(get(name)) for name in ("w", "v", "labels")))
        if kind.startswith("mttkrp"):
            z, a, j, k, lengths = torch.from_numpy(get("z")), torch.from_numpy(get("a"))[:, None], c.long() % len(x), c.long(), torch.diff(p).long()
            return lambda: torch.segment_reduce(a * x[j] * z[k], "sum", lengths=lengths, axis=0, initial=0).numpy()
        if kind.startswith("attention"):
            return self.attention(p, c, x, torch.from_numpy(get("z")))
        if kind.startswith("sddmm"):
            z = torch.from_numpy(get("z")).t()
            m = torch.sparse_csr_tensor(p, c, torch.zeros(len(c)), size=(len(p) - 1, len(x)), check_invariants=False)
            return lambda: torch.sparse.sampled_addmm(m, x, z, beta=0.0).values().numpy()
        m = torch.sparse_csr_tensor(p, c, torch.from_numpy(get("a")), size=(len(p) - 1, len(x)), check_invariants=False)
        return lambda: (m @ x).numpy()

    def attention(self, p, c, q, k):
        torch = self.torch
        kt, lengths = k.t(), torch.diff(p)
        m = torch.sparse_csr_tensor(p, c, torch.zeros(len(c)), size=(len(q), len(k)), check_invariants=False)

        def run():
            s = torch.sparse.sampled_addmm(m, q, kt, beta=0.0, alpha=0.125).values()
            e = torch.exp(s - torch.repeat_interleave(torch.segment_reduce(s, "max", lengths=lengths, initial=float("-inf")), lengths))
            w = e / torch.repeat_interleave(torch.segment_reduce(e, "sum", lengths=lengths), lengths)
            return (torch.sparse_csr_tensor(p, c, w, size=m.shape, check_invariants=False) @ k).numpy()

        return run

    def network(self, p, c, a, x, w, v, labels):
        """A training step with the products of PyTorch Geometric, which are one of two: of sparse matrices, of which the transposed one is
        kept, and rows that are gathered, multiplied and added to others by their edges. The faster one of them here counts."""
        torch = self.torch
        n = len(p) - 1
        row, column = torch.repeat_interleave(torch.arange(n), torch.diff(p).long()), c.long()
        order = torch.argsort(column, stable=True)
        ends = torch.zeros(n + 1, dtype=torch.int32)
        ends[1:] = torch.cumsum(torch.bincount(column, minlength=n), 0)
        m = torch.sparse_csr_tensor(p, c, a, size=(n, n), check_invariants=False)
        t = torch.sparse_csr_tensor(ends, row[order].int(), a[order], size=(n, n), check_invariants=False)

        class Product(torch.autograd.Function):
            @staticmethod
            def forward(ctx, y):
                return m @ y

            @staticmethod
            def backward(ctx, g):
                return t @ g

        def edges(y):
            return torch.zeros_like(y).index_add_(0, row, y.index_select(0, column) * a[:, None])

        def step(product):
            ws = [w.clone().requires_grad_(), v.clone().requires_grad_()]
            hidden = torch.relu(product(x @ ws[0]))
            loss = torch.nn.functional.cross_entropy(product(hidden @ ws[1]), labels)
            grads = torch.autograd.grad(loss, ws)
            with torch.no_grad():
                for weight, grad in zip(ws, grads):
                    weight -= 0.1 * grad
            return grads[0].numpy()

        def seconds(product):
            step(product)
            start = time.perf_counter()
            step(product)
            return time.perf_counter() - start

        faster = min((Product.apply, edges), key=seconds)
        return lambda: step(faster)


def main():
    import warnings

    warnings.filterwarnings("ignore")
    name = sys.argv[1]
    try:
        peer = {"scipy": SciPy, "torch": Torch, "mlir": MLIR}[name]()
    except ImportError as e:
        print(json.dumps({"error": str(e)}), flush=True)
        return
    print(json.dumps({"about": peer.about}), flush=True)
    run = None
    for line in sys.stdin:
        q, answer = json.loads(line), {}
        try:
            if q["do"] == "prepare":
                get = lambda n: numpy.load(f"{q['folder']}/{n}.npy")
                run = peer.prepare(q["kind"], get, q["threads"])
                numpy.save(f"{q['folder']}/{name}.npy", getattr(run, "result", run)())
            else:
                times = []
                for _ in range(q["runs"]):
                    start = time.perf_counter()
                    run()
                    times.append(time.perf_counter() - start)
                answer["seconds"] = sorted(times)[len(times) // 2]
        except Exception as e:
            answer["error"] = f"{type(e).__name__}: {e}"
        print(json.dumps(answer), flush=True)


main()
