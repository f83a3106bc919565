"""Traces the steps of models.py, and runs them on CPU devices of JAX with what dmir plan --export jax wrote.

For each line on stdin it answers with one. {"trace": NAME, "folder": FOLDER} writes the step's program there and answers {"program":
FILE}. {"run": NAME, "plan": FILE} answers {"apart": the largest difference of a result from one device's, as a part of its largest
element, "sent": bytes by the plan, "hlo": the text of what XLA made}. {"error": why not} where either fails. The argument is the number of devices.
"""

import importlib.util
import json
import os
import pathlib
import sys

devices = int(sys.argv[1])
# Without fusions a slice of what was reduced stands alone, and can be told from a use of all of it.
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices} --xla_disable_hlo_passes=fusion --xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
os.environ["JAX_PLATFORMS"] = "cpu"
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "python"))

import jax  # noqa: E402 (the number of devices is read when it is imported)
import numpy as np  # noqa: E402

import dmir  # noqa: E402
import models  # noqa: E402


alone = {}  # the results on one device, by the step


def trace(name, folder):
    step, args, state = getattr(models, name)()
    return {"program": str(dmir.trace(step, *args, state=state, name=name, save_weights=False, folder=folder).program)}


def run(name, file):
    spec = importlib.util.spec_from_file_location("plan", file)
    plan = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(plan)
    step, args, _ = getattr(models, name)()
    if name not in alone:
        alone[name] = jax.jit(step)(*args)
    if plan.MICROBATCHES > 1:
        step = getattr(models, name)(plan.value_and_grad)[0]
    compiled = plan.jit(step).lower(*args).compile()
    got = compiled(*jax.device_put(args, compiled.input_shardings[0]))
    return {"apart": max(jax.tree.leaves(jax.tree.map(apart, got, alone[name]))), "sent": plan.SENT, "hlo": compiled.as_text()}


def apart(got, want):
    got, want = np.asarray(got), np.asarray(want)
    return float(np.max(np.abs(got - want)) / max(np.max(np.abs(want)), 1e-30))


print(json.dumps({"jax": jax.__version__}), flush=True)
for line in sys.stdin:
    job = json.loads(line)
    try:
        answer = trace(job["trace"], job["folder"]) if "trace" in job else run(job["run"], job["plan"])
    except Exception as e:  # noqa: BLE001 (the answer is the message)
        answer = {"error": f"{type(e).__name__}: {e}"}
    print(json.dumps(answer), flush=True)
