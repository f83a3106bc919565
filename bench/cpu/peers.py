"""Runs the rows of bench/cpu with PyTorch or ONNX Runtime; bench/cpu starts it and talks to it in lines of JSON.

usage: peers.py torch|onnxruntime

The first line of the output describes the peer. {"do": "prepare", "kind", "folder", "args", "attrs", "threads"} loads the
arguments from NAME.npy in the folder, computes the row once and writes its results as PEER_I.npy there;
{"do": "sample", "kind", "runs": n} runs it once, then n times, and answers with the median in seconds; {"do": "drop"} frees all.
"""
import gc
import json
import sys
import time

import numpy


class Torch:
    def __init__(self):
        import torch
        import torch_rows

        self.torch, self.rows = torch, torch_rows
        self.name = "torch"
        blas = torch.__config__.show().split("BLAS_INFO=")[1].split(",")[0]
        self.about = f"PyTorch {torch.__version__}, {blas}, {torch.backends.cpu.get_cpu_capability()}"

    def prepare(self, q):
        torch = self.torch
        torch.set_num_threads(q["threads"])
        args = [torch.from_numpy(numpy.load(f"{q['folder']}/{name}.npy")) for name in q["args"]]
        make = getattr(self.rows, q["kind"])
        return make(args, q["attrs"])

    def results(self, run):
        return [t.detach().numpy() for t in run()]


class OnnxRuntime:
    def __init__(self):
        import onnx_rows
        import onnxruntime

        self.ort, self.rows = onnxruntime, onnx_rows
        self.name = "onnxruntime"
        self.about = f"ONNX Runtime {onnxruntime.__version__}"

    def prepare(self, q):
        ort = self.ort
        args = {name: numpy.load(f"{q['folder']}/{name}.npy") for name in q["args"]}
        model = q["attrs"].get("file")
        if not model:
            model = self.rows.model(q["kind"], args, q["attrs"]).SerializeToString()
        options = ort.SessionOptions()
        options.intra_op_num_threads = q["threads"]
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        io = session.io_binding()
        if q["attrs"].get("file"):  # the model has names of its own
            given = zip([i.name for i in session.get_inputs()], args.values(), strict=True)
        else:
            given = [(i.name, args[i.name]) for i in session.get_inputs()]
        for name, value in given:
            io.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(value))
        for o in session.get_outputs():
            io.bind_output(o.name)

        def run():
            session.run_with_iobinding(io)
            return io

        return run

    def results(self, run):
        return run().copy_outputs_to_cpu()


def sample(run, n):
    run()
    times = []
    for _ in range(n):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return sorted(times)[n // 2]


def main():
    peer = {"torch": Torch, "onnxruntime": OnnxRuntime}[sys.argv[1]]()
    print(json.dumps({"about": peer.about}), flush=True)
    rows = {}
    for line in sys.stdin:
        q = json.loads(line)
        answer = {}
        try:
            if q["do"] == "prepare":
                rows[q["kind"]] = peer.prepare(q)
                for i, x in enumerate(peer.results(rows[q["kind"]])):
                    numpy.save(f"{q['folder']}/{peer.name}_{i}.npy", x)
            elif q["do"] == "sample":
                answer["seconds"] = sample(rows[q["kind"]], q["runs"])
            else:
                rows.clear()
                gc.collect()
        except Exception as e:  # of this row alone
            answer["error"] = f"{type(e).__name__}: {e}"
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
