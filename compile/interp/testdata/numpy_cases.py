#!/usr/bin/env python3
"""Writes numpy_cases.dmir and numpy_cases.npz: functions, their inputs and the
results that NumPy computes for them in float64.

Run with: python3 numpy_cases.py   (needs NumPy only)
"""
import math
import numpy as np

rng = np.random.default_rng(7)
text, arrays = [], {}
DTYPES = {"float64": "f64", "float32": "f32", "float16": "f16", "int64": "i64", "int32": "i32",
          "int16": "i16", "int8": "i8", "uint64": "ui64", "uint32": "ui32", "uint16": "ui16",
          "uint8": "ui8", "bool": "i1"}
erf = np.vectorize(math.erf)


def ty(a):
    return "tensor<" + "".join(f"{d}x" for d in a.shape) + DTYPES[str(a.dtype)] + ">"


def case(name, op, inputs, outputs, region=""):
    """op is written without operands' types; %a, %b … are the inputs in order."""
    inputs = [np.asarray(a) for a in inputs]
    outputs = [np.asarray(a) for a in outputs]
    names = ["%" + chr(ord("a") + i) for i in range(len(inputs))]
    results = ["%y" if len(outputs) == 1 else f"%y{i}" for i in range(len(outputs))]
    outs = ", ".join(ty(o) for o in outputs)
    single = outs if len(outputs) == 1 else f"({outs})"
    args = ", ".join(f"{n}: {ty(a)}" for n, a in zip(names, inputs))
    sig = f"({', '.join(ty(a) for a in inputs)}) -> {single}"
    text.append(f"func.func @{name}({args}) -> {single} {{\n  {', '.join(results)} = {op} : {sig}{region}\n"
                f"  return {', '.join(results)} : {outs}\n}}\n")
    for i, a in enumerate(inputs):
        arrays[f"{name}.in{i}"] = a
    for i, o in enumerate(outputs):
        arrays[f"{name}.out{i}"] = o


def r(*shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


def d(a):
    return np.asarray(a, dtype=np.float64)


def like(a, y):
    return np.asarray(y).astype(a.dtype)


# contractions
for eq, shapes in {
    "bln,nu->blu": [(2, 3, 5), (5, 4)], "bhqd,bhkd->bhqk": [(2, 3, 4, 5), (2, 3, 6, 5)],
    "ij,jk->ki": [(3, 4), (4, 5)], "i,j->ij": [(3,), (4,)], "ij->ji": [(3, 4)], "ij->": [(3, 4)], "ijk->j": [(3, 4, 5)],
    "ii->i": [(4, 4)], "ii->": [(4, 4)], "ij,ij->": [(3, 4), (3, 4)], "abc,cb->a": [(2, 3, 4), (4, 3)],
    "ij,kl->ik": [(2, 3), (4, 5)], "ij,jk,kl->il": [(2, 3), (3, 4), (4, 5)], "a,a,a->a": [(3,), (3,), (3,)],
    "phi,bji->phbj": [(2, 2, 6), (2, 3, 6)], "phbk,phbjk->phbj": [(2, 2, 3, 4), (2, 2, 3, 5, 4)],
    "ij,j->i": [(300, 270), (270,)], "mk,kn->mn": [(250, 530), (530, 33)],
}.items():
    xs = [r(*s) for s in shapes]
    name = "einsum_" + eq.replace("->", "_to_").replace(",", "_")
    case(name, f'dm.einsum "{eq}" ' + ", ".join("%" + chr(97 + i) for i in range(len(xs))), xs,
         [like(xs[0], np.einsum(eq, *[d(x) for x in xs]))])
a, b = r(4, 6, dtype=np.float16), r(6, 3, dtype=np.float16)
case("einsum_half", 'dm.einsum "ij,jk->ik" %a, %b', [a, b], [like(a, d(a) @ d(b))])
case("einsum_half_to_f32", 'dm.einsum "ij,jk->ik" %a, %b', [a, b], [(d(a) @ d(b)).astype(np.float32)])
a, b = rng.integers(-9, 9, (3, 4)).astype(np.int8), rng.integers(-9, 9, (4, 2)).astype(np.int8)
case("einsum_i8_to_i32", 'dm.einsum "ij,jk->ik" %a, %b', [a, b], [a.astype(np.int32) @ b.astype(np.int32)])
case("einsum_i8_wraps", 'dm.einsum "ij,jk->ik" %a, %b', [a, b], [(a.astype(np.int64) @ b).astype(np.int8)])
a, b = r(2, 1, 3, 4), r(5, 6, 4)
case("matmul_broadcast", "dm.matmul %a, %b, transpose_b = true", [a, b], [like(a, d(a) @ d(b).swapaxes(-1, -2))])
a, b = r(2, 4, 3, dtype=np.float64), r(2, 4, 5, dtype=np.float64)
case("matmul_f64", "dm.matmul %a, %b, transpose_a = true", [a, b], [d(a).swapaxes(-1, -2) @ d(b)])


def conv(x, w, strides, pads, dil, groups):
    n = x.ndim - 2
    xp = np.pad(d(x), [(0, 0), (0, 0)] + pads)
    out = [(xp.shape[2 + i] - (w.shape[2 + i] - 1) * dil[i] - 1) // strides[i] + 1 for i in range(n)]
    y = np.zeros([x.shape[0], w.shape[0]] + out)
    per_out, per_in = w.shape[0] // groups, w.shape[1]
    for o in range(w.shape[0]):
        g = o // per_out
        for pos in np.ndindex(*out):
            sl = tuple(slice(p * s, p * s + (k - 1) * e + 1, e) for p, s, k, e in zip(pos, strides, w.shape[2:], dil))
            part = xp[(slice(None), slice(g * per_in, (g + 1) * per_in)) + sl]
            y[(slice(None), o) + pos] = (part * d(w[o])).reshape(x.shape[0], -1).sum(1)
    return y


for name, xs, ws, st, pd, dl, g in [
    ("conv2d", (2, 3, 7, 6), (4, 3, 3, 2), [2, 1], [(1, 1), (0, 2)], [1, 1], 1),
    ("conv2d_dilated_groups", (1, 4, 8, 8), (6, 2, 3, 3), [1, 2], [(2, 1), (1, 0)], [2, 1], 2),
    ("conv1d_depthwise", (2, 3, 9), (3, 1, 3), [1], [(1, 1)], [1], 3),
    ("conv3d", (1, 2, 4, 4, 4), (2, 2, 2, 2, 2), [1, 1, 2], [(0, 0), (1, 0), (0, 0)], [1, 1, 1], 1),
]:
    x, w = r(*xs), r(*ws)
    pairs = ", ".join(f"[{lo}, {hi}]" for lo, hi in pd)
    case(name, f"dm.convolution %a, %b, window_strides = {st}, padding = [{pairs}], rhs_dilation = {dl}, feature_group_count = {g}",
         [x, w], [like(x, conv(x, w, st, pd, dl, g))])

# element-wise
sample = np.array([-3.5, -2.5, -1.0, -0.5, -0.0, 0.0, 0.25, 0.5, 1.0, 1.5, 2.5, 8.0], dtype=np.float32)
pos = np.abs(sample) + np.float32(0.125)
for dt in (np.float64, np.float32, np.float16):
    for name, f, x in [
        ("abs", np.abs, sample), ("neg", np.negative, sample), ("exp", np.exp, sample), ("log", np.log, pos),
        ("log1p", np.log1p, pos), ("expm1", np.expm1, sample), ("sqrt", np.sqrt, pos), ("rsqrt", lambda v: 1 / np.sqrt(v), pos),
        ("cbrt", np.cbrt, sample), ("tanh", np.tanh, sample), ("erf", erf, sample),
        ("logistic", lambda v: 1 / (1 + np.exp(-v)), sample), ("relu", lambda v: np.maximum(v, 0), sample),
        ("gelu", lambda v: v / 2 * (1 + erf(v / math.sqrt(2))), sample), ("silu", lambda v: v / (1 + np.exp(-v)), sample),
        ("sign", np.sign, sample), ("floor", np.floor, sample), ("ceil", np.ceil, sample), ("round", np.rint, sample),
        ("cos", np.cos, sample), ("sin", np.sin, sample),
    ]:
        x = x.astype(dt)
        case(f"{name}_{DTYPES[str(x.dtype)]}", f"dm.{name} %a", [x], [like(x, f(d(x)))])
case("gelu_tanh", "dm.gelu %a, approximate = tanh", [sample],
     [like(sample, d(sample) / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (d(sample) + 0.044715 * d(sample) ** 3))))])
x, y = r(3, 1, 4), r(5, 1)
for name, f in [("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("div", np.divide), ("max", np.maximum),
                ("min", np.minimum), ("rem", np.fmod), ("atan2", np.arctan2)]:
    case(f"{name}_broadcast", f"dm.{name} %a, %b", [x, y], [like(x, f(d(x), d(y)))])
case("pow_f32", "dm.pow %a, %b", [np.abs(x), y], [like(x, np.power(d(np.abs(x)), d(y)))])
nan, inf = np.float32("nan"), np.float32("inf")
x, y = np.array([nan, 1, inf, -inf, 0], np.float32), np.array([1, nan, -inf, inf, nan], np.float32)
for name, f in [("add", np.add), ("max", np.maximum), ("min", np.minimum), ("mul", np.multiply)]:
    with np.errstate(all="ignore"):
        case(f"{name}_nan", f"dm.{name} %a, %b", [x, y], [like(x, f(x, y))])
for dt in (np.int64, np.int32, np.int16, np.int8, np.uint64, np.uint32, np.uint16, np.uint8):
    info = np.iinfo(dt)
    x = np.array([info.max, info.min, 7, 100, 13, info.max], dt)
    y = np.array([2, 3, 2, 7, 5, info.max - 1], dt)
    e = DTYPES[np.dtype(dt).name]
    with np.errstate(all="ignore"):
        case(f"add_{e}", "dm.add %a, %b", [x, y], [x + y])
        case(f"sub_{e}", "dm.sub %a, %b", [x, y], [x - y])
        case(f"mul_{e}", "dm.mul %a, %b", [x, y], [x * y])
        q = np.array([int(abs(int(i)) // abs(int(j))) * (1 if (i < 0) == (j < 0) else -1) for i, j in zip(x, y)], dtype=object)
        case(f"div_{e}", "dm.div %a, %b", [x, y], [q.astype(dt)])
        case(f"rem_{e}", "dm.rem %a, %b", [x, y], [np.array([int(i) - int(k) * int(j) for i, j, k in zip(x, y, q)], dtype=object).astype(dt)])
        case(f"max_{e}", "dm.max %a, %b", [x, y], [np.maximum(x, y)])
        case(f"pow_{e}", "dm.pow %a, %b", [np.array([3, 2, 5], dt), np.array([4, 7, 0], dt)], [np.array([81, 128 if info.max >= 128 else -128, 1], dt)])
        case(f"lt_{e}", "dm.compare lt %a, %b", [x, y], [x < y])
        case(f"xor_{e}", "dm.xor %a, %b", [x, y], [x ^ y])
        case(f"not_{e}", "dm.not %a", [x], [~x])
        case(f"to_f32_{e}", "dm.convert %a", [x], [x.astype(np.float32)])
for name in ("eq", "ne", "lt", "le", "gt", "ge"):
    x, y = np.array([1, 2, 3, nan], np.float32), np.array([1, 3, 2, nan], np.float32)
    f = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}[name]
    case(f"compare_{name}", f"dm.compare {name} %a, %b", [x, y], [f(x, y)])
p = rng.integers(0, 2, (3, 4)).astype(bool)
x, y = r(4), r(3, 1)
case("select", "dm.select %a, %b, %c", [p, x, y], [np.where(p, x, y)])
lo, x, hi = np.float32(-0.5), r(3, 4), np.array([0.1, 0.2, 0.3, 0.4], np.float32)
case("clamp", "dm.clamp %a, %b, %c", [lo, x, hi], [np.minimum(np.maximum(x, lo), hi)])
x = np.array([1e-8, 6e-8, 65519, 65520, 1.00048828125, 1.00146484375, -2.5, 3.999], np.float32)
with np.errstate(all="ignore"):
    case("f32_to_f16", "dm.convert %a", [x], [x.astype(np.float16)])
x = np.array([1.9, -1.9, 127.5, -128.7, 0], np.float32)
case("f32_to_i8", "dm.convert %a", [x], [np.array([1, -1, 127, -128, 0], np.int8)])
case("f32_to_i1", "dm.convert %a", [x], [x != 0])

# normalization and reduction


def softmax(v, ax):
    e = np.exp(v - v.max(ax, keepdims=True))
    return e / e.sum(ax, keepdims=True)


for dt in (np.float64, np.float32, np.float16):
    x = r(3, 5, 4, dtype=dt)
    e = DTYPES[str(x.dtype)]
    for ax in (0, 1, -1):
        case(f"softmax_{e}_{ax % 3}", f"dm.softmax %a, dim = {ax}", [x], [like(x, softmax(d(x), ax))])
    case(f"log_softmax_{e}", "dm.log_softmax %a, dim = 1", [x], [like(x, np.log(softmax(d(x), 1)))])
    s, b = r(4, dtype=dt), r(4, dtype=dt)
    v = d(x)
    n = (v - v.mean(-1, keepdims=True)) / np.sqrt(v.var(-1, keepdims=True) + 1e-5)
    case(f"layer_norm_{e}", "dm.layer_norm %a, %b, %c", [x, s, b], [like(x, n * d(s) + d(b))])
    case(f"rms_norm_{e}", "dm.rms_norm %a, %b, epsilon = 1.0e-3", [x, s], [like(x, v / np.sqrt((v * v).mean(-1, keepdims=True) + 1e-3) * d(s))])
    for ax in (0, 1, 2):
        case(f"reduce_add_{e}_{ax}", f"dm.reduce add %a, dims = [{ax}]", [x], [like(x, v.sum(ax))])
x = r(3, 5, 4)
v = d(x)
s, b = r(4, 3), r(4, 3)
n = (v - v.mean((2, 0), keepdims=True)) / np.sqrt(v.var((2, 0), keepdims=True) + 1e-5)
case("layer_norm_dims", "dm.layer_norm %a, %b, %c, dims = [2, 0]", [x, s, b],
     [like(x, n * d(s).T[:, None, :] + d(b).T[:, None, :])])
s, b = r(5), r(5)
m, var = v.mean((0, 2)), v.var((0, 2))
col = lambda w: d(w)[None, :, None]
case("batch_norm", "dm.batch_norm %a, %b, %c", [x, s, b],
     [like(x, (v - col(m)) / np.sqrt(col(var) + 1e-5) * col(s) + col(b)), like(x, m), like(x, var)])
gm, gv = r(5), np.abs(r(5))
case("batch_norm_given", "dm.batch_norm %a, %b, %c, %d, %e", [x, s, b, gm, gv],
     [like(x, (v - col(gm)) / np.sqrt(col(gv) + 1e-5) * col(s) + col(b))])
x = r(2, 6, 3)
g = d(x).reshape(2, 3, 2 * 3)
g = ((g - g.mean(-1, keepdims=True)) / np.sqrt(g.var(-1, keepdims=True) + 1e-5)).reshape(x.shape)
s, b = r(6), r(6)
case("group_norm", "dm.group_norm %a, %b, %c, groups = 3", [x, s, b], [like(x, g * col(s) + col(b))])
x, lab = r(4, 7), np.array([0, 6, 3, 3])
loss = -np.log(softmax(d(x), 1))[np.arange(4), lab]
for red, val in [("none", loss), ("mean", loss.mean()), ("sum", loss.sum())]:
    case(f"cross_entropy_{red}", f"dm.cross_entropy %a, %b, reduction = {red}", [x, lab], [like(x, val)])
x = r(3, 4, 5, 2)
for kind, f in [("add", np.sum), ("max", np.max), ("min", np.min), ("mul", np.prod)]:
    case(f"reduce_{kind}_middle", f"dm.reduce {kind} %a, dims = [1, 2]", [x], [like(x, f(d(x), axis=(1, 2)))])
    case(f"reduce_{kind}_apart", f"dm.reduce {kind} %a, dims = [0, 2], keep_dims = true", [x], [like(x, f(d(x), axis=(0, 2), keepdims=True))])
    case(f"reduce_{kind}_all", f"dm.reduce {kind} %a", [x], [like(x, f(d(x)))])
x = rng.integers(0, 2**63, (4, 5)).astype(np.uint64) * np.uint64(2)
case("reduce_max_ui64", "dm.reduce max %a, dims = [1]", [x], [x.max(1)])
x = r(70000)
case("reduce_long", "dm.reduce add %a", [x], [like(x, d(x).sum())])
x = r(2, 3)
for name, kw, f in [("cumsum", "", lambda v: np.cumsum(v, 1)),
                    ("cumsum_exclusive", ", exclusive = true", lambda v: np.cumsum(v, 1) - v),
                    ("cumsum_reverse", ", reverse = true", lambda v: np.cumsum(v[:, ::-1], 1)[:, ::-1])]:
    x = r(3, 6, 2)
    case(name, f"dm.cumsum %a, dim = 1{kw}", [x], [like(x, f(d(x)))])
x = r(2, 3, 6, 5)
xp = np.pad(d(x), [(0, 0), (0, 0), (1, 1), (0, 1)], constant_values=-np.inf)
y = np.stack([np.stack([xp[:, :, i:i + 3, j:j + 2].max((2, 3)) for j in range(0, 5, 2)], -1) for i in range(0, 6, 2)], -2)
case("max_pool", "dm.reduce_window max %a, window_dimensions = [1, 1, 3, 2], window_strides = [1, 1, 2, 2], padding = [[0, 0], [0, 0], [1, 1], [0, 1]]",
     [x], [like(x, y)])
x = r(7, 3)
case("sum_window_dilated", "dm.reduce_window add %a, window_dimensions = [3, 1], window_dilations = [2, 1]", [x],
     [like(x, sum(d(x)[i:i + 3] for i in (0, 2, 4)))])

# order
x = np.array([[3, 1, 2, 3, 0], [5, 5, 5, 1, 9]], np.int32)
i = np.argsort(x, 1, kind="stable")
case("sort_i32", "dm.sort %a", [x], [np.take_along_axis(x, i, 1), i])
j = np.argsort(-x, 1, kind="stable")
case("sort_descending", "dm.sort %a, descending = true", [x], [np.take_along_axis(x, j, 1), j])
case("top_k", "dm.top_k %a, k = 3", [x], [np.take_along_axis(x, j, 1)[:, :3], j[:, :3]])
case("top_k_smallest", "dm.top_k %a, k = 2, largest = false", [x], [np.take_along_axis(x, i, 1)[:, :2], i[:, :2]])
x = r(4, 3, 5)
i = np.argsort(d(x), 1, kind="stable")
case("sort_f32_dim1", "dm.sort %a, dim = 1", [x], [np.take_along_axis(x, i, 1), i])
case("argmax", "dm.argmax %a, dim = 0", [x], [x.argmax(0)])
x = np.array([1, nan, 3, nan], np.float32)
case("argmax_nan", "dm.argmax %a", [x], [np.int64(1)])
case("sort_nan", "dm.sort %a, descending = true", [x], [np.array([3, 1, nan, nan], np.float32), np.array([2, 0, 1, 3])])

# attention
q, k, v = r(2, 4, 3, 8), r(2, 2, 5, 8), r(2, 2, 5, 6)
kk, vv = d(k).repeat(2, axis=1), d(v).repeat(2, axis=1)
sc = d(q) @ kk.swapaxes(-1, -2) / math.sqrt(8)
case("attention", "dm.attention %a, %b, %c", [q, k, v], [like(q, softmax(sc, -1) @ vv)])
hide = np.arange(5)[None, :] > np.arange(3)[:, None] + 2
case("attention_causal", "dm.attention %a, %b, %c, causal = true", [q, k, v], [like(q, softmax(np.where(hide, -np.inf, sc), -1) @ vv)])
mask = r(4, 1, 5)
case("attention_mask", "dm.attention %a, %b, %c, %d, scale = 0.5", [q, k, v, mask],
     [like(q, softmax(d(q) @ kk.swapaxes(-1, -2) * 0.5 + d(mask), -1) @ vv)])
q, k, v = r(200, 16, dtype=np.float16), r(300, 16, dtype=np.float16), r(300, 4, dtype=np.float16)
case("attention_half", "dm.attention %a, %b, %c", [q, k, v], [like(q, softmax(d(q) @ d(k).T / 4, -1) @ d(v))])

# movement
x = r(2, 3, 4)
case("transpose", "dm.transpose %a, dims = [2, 0, 1]", [x], [x.transpose(2, 0, 1)])
big = r(70, 45)
case("transpose_tiles", "dm.transpose %a, dims = [1, 0]", [big], [big.T])
case("reshape", "dm.reshape %a", [x], [x.reshape(4, 6)])
case("broadcast_dims", "dm.broadcast %a, dims = [1]", [x[0, :, 0]], [np.broadcast_to(x[0, :, :1], (2, 3, 4)).copy()])
case("slice", "dm.slice %a, start_indices = [0, 1, 0], limit_indices = [2, 3, 4], strides = [1, 1, 3]", [x], [x[:, 1:3, ::3]])
case("dynamic_slice", "dm.dynamic_slice %a, %b, %c, %d, slice_sizes = [1, 2, 4]", [x, np.int64(1), np.int64(9), np.int64(-3)], [x[1:, 1:, :]])
u = r(1, 2, 4)
y = x.copy()
y[1:, 1:, :] = u
case("dynamic_update_slice", "dm.dynamic_update_slice %a, %b, %c, %d, %e", [x, u, np.int64(5), np.int64(1), np.int64(0)], [y])
case("concatenate", "dm.concatenate %a, %b, %c, dim = 1", [x, x[:, :1], x], [np.concatenate([x, x[:, :1], x], 1)])
y = np.full((5, 6), 9, np.float32)
y[1:4:2, 0:5:2] = r(2, 3)
case("pad_interior", "dm.pad %a, %b, low = [1, 0], high = [1, 1], interior = [1, 1]", [y[1:4:2, 0:5:2].copy(), np.float32(9)], [y])
case("reverse", "dm.reverse %a, dims = [0, 2]", [x], [x[::-1, :, ::-1]])
i = np.array([[2, 0], [9, -1]])
case("gather_middle_clamps", "dm.gather %a, %b, dim = 1", [x, i], [x[:, np.clip(i, 0, 2)]])
i = np.array([[0, 2, 1, 1], [2, 2, 0, 1]], np.int32)
case("gather_batch", "dm.gather %a, %b, dim = 1, batch_dims = 1", [x, i], [np.stack([x[b][i[b]] for b in range(2)])])
table, ids = r(10, 3, dtype=np.float16), np.array([[1, 9], [0, 4]], np.uint32)
case("embedding", "dm.embedding %a, %b", [table, ids], [table[ids]])
x, i, u = r(4, 3), np.array([1, 1, 7, -1, 0]), r(5, 3)
for kind in ("set", "add", "mul", "max", "min"):
    y = d(x)
    for k_, row in zip(i, d(u)):
        if 0 <= k_ < 4:
            y[k_] = {"set": row, "add": y[k_] + row, "mul": y[k_] * row, "max": np.maximum(y[k_], row), "min": np.minimum(y[k_], row)}[kind]
    case(f"scatter_{kind}", f"dm.scatter {kind} %a, %b, %c", [x, i, u], [like(x, y)])
x, i, u = r(2, 3, 4), np.array([2, 0]), r(2, 2, 4)
y = x.copy()
y[:, i] = u
case("scatter_middle", "dm.scatter set %a, %b, %c, dim = 1", [x, i, u], [y])

with open("numpy_cases.dmir", "w") as f:
    f.write("// Written by numpy_cases.py; inputs and results are in numpy_cases.npz.\n\n" + "\n".join(text))
np.savez_compressed("numpy_cases.npz", **arrays)
print(len(text), "cases")
