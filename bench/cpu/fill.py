"""Gives a model in ONNX random weights in place of those that are one number repeated, which a compiler could use.

usage: fill.py MODEL RESULT
"""
import math
import sys

import numpy
import onnx
from onnx import numpy_helper


def weights(shape, node, at, numbers):
    """Returns the values of an operand of a node: its number is at."""
    if node.op_type == "BatchNormalization" and at in (1, 4):  # scale and variance
        return numbers.uniform(0.5, 1.5, shape)
    fan = math.prod(shape[1:]) if len(shape) > 1 else 100
    return numbers.normal(0, math.sqrt(2 / fan), shape)


def main():
    m = onnx.load(sys.argv[1])
    numbers = numpy.random.default_rng(7)
    known = {i.name: numpy_helper.to_array(i) for i in m.graph.initializer}
    uses = {name: (node, at) for node in m.graph.node for at, name in enumerate(node.input)}
    for node in [n for n in m.graph.node if n.op_type == "ConstantOfShape"]:
        shape, name = known[node.input[0]], node.output[0]
        if name not in uses:
            continue
        values = weights([int(d) for d in shape], *uses[name], numbers)
        m.graph.initializer.append(numpy_helper.from_array(values.astype(numpy.float32), name))
        m.graph.node.remove(node)
    onnx.save(m, sys.argv[2])


if __name__ == "__main__":
    main()
