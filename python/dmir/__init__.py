"""dmir beside Python: what each line of a JAX or PyTorch program costs, and running it on the processor.

    import dmir

    dmir.cost(step, params, x)        # a table: time, bytes and FLOP of each line
    dmir.trace(step, params, x)       # the same for editors and for `dmir cost --by line`
    fast = dmir.compile(step)         # runs on this machine's processor, compiled by dmir
    dmir.load_state(module, "ck")     # the weights that `dmir run --steps` trained

The package needs the dmir binary, which its wheel carries, and JAX or PyTorch for what uses them.
"""

from ._compile import compile
from ._cost import Cost, cost
from ._errors import BinaryError, CompileError, Error, StateError, TraceError
from ._magic import load_ipython_extension
from ._shapes import Shape, shape
from ._state import load_state
from ._torch_compile import torch_backend
from ._trace import Trace, trace, trace_with

__all__ = [
    "BinaryError",
    "CompileError",
    "Cost",
    "Error",
    "Shape",
    "StateError",
    "Trace",
    "TraceError",
    "compile",
    "cost",
    "load_ipython_extension",
    "load_state",
    "shape",
    "torch_backend",
    "trace",
    "trace_with",
]
