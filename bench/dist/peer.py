"""Compiles programs in StableHLO with shardings for CPU devices of JAX, and runs them there.

For each line on stdin, {"program": FILE, "inputs": FILE.npz, "outputs": FILE.npz}, it answers with one: {"hlo": the text after
XLA's partitioner and optimizations}, or {"error": why not}. Inputs and outputs are whole arrays, named by their numbers; without
"inputs" the program is only compiled. The argument is the number of devices.
"""

import json
import os
import sys

devices = int(sys.argv[1])
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices}"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402 (the number of devices is read when it is imported)
import numpy as np  # noqa: E402
from jax._src import compiler  # noqa: E402
from jax._src.interpreters import mlir  # noqa: E402
from jax._src.lib import xla_client  # noqa: E402
from jax._src.sharding_impls import GSPMDSharding  # noqa: E402
from jaxlib.mlir import ir  # noqa: E402

jax.config.update("jax_enable_x64", True)


def public(module):
    """The one function that is not private, which XLA wants to be called main."""
    for op in module.body.operations:
        attributes = op.operation.attributes
        private = "sym_visibility" in attributes and ir.StringAttr(attributes["sym_visibility"]).value == "private"
        if op.operation.name == "func.func" and not private:
            return op
    raise ValueError("the program has no public function")


def compiled(text):
    """The program, and the shapes of its results."""
    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        entry = public(module)
        entry.operation.attributes["sym_name"] = ir.StringAttr.get("main")
        module.operation.attributes["sym_name"] = ir.StringAttr.get("program")
        options = compiler.get_compile_options(
            num_replicas=1, num_partitions=devices, device_assignment=np.arange(devices).reshape(1, devices)
        )
        options.executable_build_options.use_shardy_partitioner = True
        places = xla_client.DeviceList(tuple(jax.devices()))
        shapes = [tuple(ir.RankedTensorType(t).shape) for t in entry.type.results]
        return compiler.backend_compile_and_load(jax.devices()[0].client, module, places, options, []), shapes


def run(executable, shapes, arrays):
    """The whole results for whole arguments."""
    devices = tuple(jax.devices())
    inputs = [GSPMDSharding(devices, s) for s in executable.get_parameter_shardings()]
    outputs = [GSPMDSharding(devices, s) for s in executable.get_output_shardings()]
    results = executable.execute_sharded([jax.device_put(x, s) for x, s in zip(arrays, inputs)])
    return [
        np.asarray(jax.make_array_from_single_device_arrays(shape, s, list(pieces)))
        for shape, s, pieces in zip(shapes, outputs, results.disassemble_into_single_device_arrays())
    ]


print(json.dumps({"jax": jax.__version__}), flush=True)
for line in sys.stdin:
    job = json.loads(line)
    try:
        with open(job["program"], encoding="utf-8") as f:
            executable, shapes = compiled(f.read())
        if job.get("inputs"):
            with np.load(job["inputs"]) as f:
                arrays = [f[str(i)] for i in range(len(f.files))]
            np.savez(job["outputs"], **{str(i): x for i, x in enumerate(run(executable, shapes, arrays))})
        answer = {"hlo": executable.hlo_modules()[0].to_string()}
    except Exception as e:  # noqa: BLE001 (the answer is the message)
        answer = {"error": f"{type(e).__name__}: {e}"}
    print(json.dumps(answer), flush=True)
