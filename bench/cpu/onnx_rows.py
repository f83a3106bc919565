"""The rows of bench/cpu as ONNX models. Each function adds nodes to a graph whose result is y."""
import numpy
from onnx import TensorProto, helper, numpy_helper

OPSET = 20


class Graph:
    def __init__(self, args):
        self.args, self.nodes, self.weights = args, [], []

    def add(self, op, inputs, output="y", **attrs):
        self.nodes.append(helper.make_node(op, inputs, [output], **attrs))
        return output

    def constant(self, name, value):
        """Adds an array that the session may rearrange before it runs."""
        self.weights.append(numpy_helper.from_array(numpy.ascontiguousarray(value), name))
        return name


def gemm(g, attrs):
    g.add("MatMul", ["x", "w"])


def gemm_bias_gelu(g, attrs):
    g.add("MatMul", ["x", "w"], "h")
    g.add("Add", ["h", "b"], "s")
    g.add("Gelu", ["s"])


def softmax(g, attrs):
    g.add("Softmax", ["x"], axis=-1)


def layer_norm(g, attrs):
    g.add("LayerNormalization", ["x", "s", "c"], axis=-1, epsilon=1e-5)


def chain(g, attrs):
    g.add("Mul", ["x", "s"], "xs")
    g.add("Add", ["xs", "c"], "xc")
    g.add("Sigmoid", ["xc"], "gate")
    g.add("Mul", ["xc", "gate"], "silu")
    g.add("Add", ["silu", "r"])


def column_sum(g, attrs):
    g.add("ReduceSum", ["x", g.constant("axes", numpy.array([0]))], keepdims=0)


def transpose(g, attrs):
    g.add("Transpose", ["x"], perm=[1, 0])


def convolution(g, attrs):
    g.add("Conv", ["x", "w"], pads=[attrs["pad"]] * 4)


def bert(g, attrs):
    """The encoder layer; its weights are constants of the model, as in a model that was exported."""
    a = g.args
    stacked, h, p, n = a["w_qkv"].shape
    for name in [name for name in a if name != "x"]:
        value = {"w_qkv": lambda v: v.reshape(-1, n).T, "b_qkv": lambda v: v.reshape(-1), "w_out": lambda v: v.reshape(-1, n)}.get(name, lambda v: v)
        g.constant(name, value(a[name]))

    def linear(x, part):
        return g.add("Add", [g.add("MatMul", [x, "w_" + part], part + "_0"), "b_" + part], part + "_1")

    def norm(x, residual, i, to):
        return g.add("LayerNormalization", [g.add("Add", [x, residual], f"residual{i}"), f"scale{i}", f"bias{i}"], to, axis=-1, epsilon=1e-5)

    g.constant("merge", numpy.array([0, 0, h * p]))
    g.constant("scale", numpy.float32(0.125))
    g.add("Split", [linear("x", "qkv")], "q_0", axis=2, num_outputs=stacked)
    g.nodes[-1].output.extend(["k_0", "v_0"])
    g.constant("heads", numpy.array([0, 0, h, p]))
    for name, perm in ("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3]):
        g.add("Transpose", [g.add("Reshape", [name + "_0", "heads"], name + "_1")], name, perm=perm)
    g.add("Mul", [g.add("MatMul", ["q", "k"], "qk"), "scale"], "scaled")
    g.add("MatMul", [g.add("Softmax", ["scaled"], "p", axis=-1), "v"], "gamma_0")
    g.add("Reshape", [g.add("Transpose", ["gamma_0"], "gamma_1", perm=[0, 2, 1, 3]), "merge"], "gamma")
    norm1 = norm(linear("gamma", "out"), "x", 1, "norm1")
    hidden = g.add("Relu", [linear(norm1, "up")], "hidden")
    norm(linear(hidden, "down"), norm1, 2, "y")


def model(kind, args, attrs):
    g = Graph(args)
    globals()[kind](g, attrs)
    constants = {w.name for w in g.weights}
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, x.shape) for name, x in args.items() if name not in constants]
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(g.nodes, kind, inputs, [y], g.weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
