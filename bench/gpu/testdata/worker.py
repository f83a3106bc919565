"""Stands in for worker.py where there is no PyTorch: makes inputs, and answers as a peer does. Checks nothing: a result is wrong if
$STANDIN_OFF names its workload."""
import array
import json
import math
import os
import pathlib
import random
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import workloads


def save(path, i, r):
    n = math.prod(i.shape)
    code, values = ("<i8", struct.pack(f"<{n}q", *(r.randrange(i.classes) for _ in range(n)))) if i.classes else \
        ("<f2", struct.pack(f"<{n}e", *(r.gauss(i.shift, i.scale) for _ in range(n)))) if i.elem == "f16" else \
        ("<f4", array.array("f", (r.gauss(i.shift, i.scale) for _ in range(n))).tobytes())  # fmt: skip
    head = f"{{'descr': '{code}', 'fortran_order': False, 'shape': {tuple(i.shape)}, }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + values)


table = {w.name: w.at("--small" in sys.argv) for w in workloads.table()}
name = sys.argv[1]
for line in sys.stdin:
    q = json.loads(line)
    if q["do"] == "hello":
        answer = {"failed": "ModuleNotFoundError: No module named 'jax'"} if name == "jax" else {"version": f"Stand-in of {name}", "card": "NVIDIA H100 Stand-in", "capability": "90", "copy_bytes_per_s": 2e12}
    elif q["do"] == "make":
        r, answer = random.Random(q["seed"]), {}
        for i in table[q["workload"]].inputs():
            save(pathlib.Path(q["folder"]) / f"{i.name}.npy", i, r)
    elif q["do"] == "check":
        answer = {"error": 0.001, "wrong": "result 0 is off" if q["workload"] in os.environ.get("STANDIN_OFF", "").split(",") else None}
    else:
        answer = {"ns": 5000.0, "graph": True}
    print(json.dumps(answer), flush=True)
