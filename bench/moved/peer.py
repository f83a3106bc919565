"""Counts the bytes that PyTorch's Inductor moves, on the CPU. bench/moved starts it and talks to it in lines of JSON.

{"name", "folder", "args": [{"name", "elem", "grad"}], "cotangents": [elem]} reads the arguments from NAME.npy in the folder and
cotangents from cotangent_I.npy, writes the values of the function in programs.py with that name and the gradients of its
arguments, computed in f32 without dropout, as expected_I.npy, and answers with the bytes of the forward pass alone and of
forward and backward together, each as {"bytes", "distinct", "kernels"}. With -v it prints the nodes that it counts.

The bytes are Inductor's own count (GraphLowering.count_bytes, as PyTorch's test/inductor/test_perf.py reads it): what the
nodes of its scheduler read and write, whole buffers, external kernels such as products and convolutions included. For a
fused node that takes a part of a buffer (rows of a table) this count has the whole buffer; "distinct" has at most as many
elements as the node accesses.
"""
import json
import sys
import types

import numpy
import torch
import torch._inductor.config
from torch._inductor.graph import GraphLowering

import programs

torch._inductor.config.force_disable_caches = True
torch.set_num_threads(1)
ELEMS = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32, "i64": torch.int64}
count = {}


def distinct(node):
    """Returns the bytes of a node, each buffer with at most the elements that its parts access."""
    own = node.get_read_write_buffer_accesses(True, True)
    parts = getattr(node, "snodes", None)
    if not parts:
        return sum(own.values())
    accessed = {}
    for part in parts:
        sizes = part.get_read_write_buffer_accesses(True, True) if not hasattr(part, "snodes") else {}
        for name, size in sizes.items():
            accessed[name] = accessed.get(name, 0) + size
    return sum(min(size, accessed.get(name, size)) for name, size in own.items())


def counted(graph):
    """Schedules the graph and counts; the module that is returned gives results of the right shapes, computing nothing."""
    graph.init_wrapper_code()
    graph._update_scheduler()
    total, _, _ = graph.count_bytes()
    count["bytes"] += total
    for node in graph.scheduler.nodes:
        size = distinct(node)
        count["distinct"] += size
        count["kernels"] += size > 0
        if "-v" in sys.argv:
            inner = [type(s.node).__name__ for s in getattr(node, "snodes", [])] or type(node.node).__name__
            kernel = getattr(node.node, "python_kernel_name", "")
            print("  ", type(node).__name__, node.get_name(), inner, kernel, node.get_read_write_buffer_accesses(True, True), file=sys.stderr)
    nodes = graph.orig_gm.graph.find_nodes(op="output")[0].args[0]
    values = [n.meta["val"] if isinstance(n, torch.fx.Node) else n for n in nodes]

    def call(args):
        return [torch.empty_strided(v.shape, v.stride(), dtype=v.dtype) if isinstance(v, torch.Tensor) else v for v in values]

    return types.SimpleNamespace(call=call, runner=None)


GraphLowering.compile_to_module = counted


def load(path, elem):
    return torch.from_numpy(numpy.load(path)).to(ELEMS[elem])


def results(f, args):
    y = f(*args)
    return list(y) if isinstance(y, tuple) else [y]


def both(f, args, wanted, cotangents):
    """Returns the results and the gradients of wanted."""
    ys = results(f, args)
    return ys, torch.autograd.grad(ys, wanted, cotangents or None) if wanted else ()


def measure(step):
    count.update(bytes=0, distinct=0, kernels=0)
    torch._dynamo.reset()
    step()
    return dict(count)


def program(q):
    f = getattr(programs, q["name"])
    args = [load(f"{q['folder']}/{a['name']}.npy", a["elem"]) for a in q["args"]]
    wanted = [x for x, a in zip(args, q["args"]) if a["grad"]]
    programs.RATE[0] = 0.1
    compiled = torch.compile(f)
    answer = {"forward": measure(lambda: compiled(*args))}
    for x in wanted:
        x.requires_grad_()
    cotangents = [load(f"{q['folder']}/cotangent_{i}.npy", elem) for i, elem in enumerate(q["cotangents"])]
    if wanted:
        answer["both"] = measure(lambda: both(compiled, args, wanted, cotangents))
    wide = [x.detach().float() if x.is_floating_point() else x for x in args]
    wanted = [x.requires_grad_() for x, a in zip(wide, q["args"]) if a["grad"]]
    programs.RATE[0] = 0
    ys, grads = both(f, wide, wanted, [c.float() for c in cotangents])
    for i, t in enumerate([*ys, *grads]):
        numpy.save(f"{q['folder']}/expected_{i}.npy", t.detach().numpy())
    return answer


def main():
    print(json.dumps({"torch": torch.__version__}), flush=True)
    for line in sys.stdin:
        q = json.loads(line)
        try:
            answer = program(q)
        except Exception as e:  # of this program alone
            answer = {"error": f"{type(e).__name__}: {e}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
