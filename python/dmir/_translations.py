"""Operators of PyTorch in ONNX for which torch.onnx has no translation, one that loses an argument, or one of loops."""

from __future__ import annotations

from typing import Any, Callable

from ._errors import TraceError

_REDUCTIONS = ("none", "mean", "sum")
_INT64 = 7  # of ONNX


def table() -> dict[Any, Callable[..., Any]]:
    """What torch.onnx.export takes as custom_translation_table."""
    import torch

    aten = torch.ops.aten
    out: dict[Any, Callable[..., Any]] = {
        aten.histc.default: _histc,
        aten.cross_entropy_loss.default: _cross_entropy,
        aten.avg_pool2d.default: _pool(2),
        aten.avg_pool3d.default: _pool(3),
        aten._cdist_forward.default: _distances,
        aten.median.default: _median,
        aten.median.dim: _median_along,
        aten.embedding_bag.default: _bag,
        aten.embedding_bag.padding_idx: _bag,
        aten._embedding_bag.default: _bag,
        aten._embedding_bag_forward_only.default: _bag,
    }
    for space, name in ("aten", "_grouped_mm"), ("transformers", "grouped_mm_fallback"):
        found = getattr(getattr(torch.ops, space), name, None)
        if found is not None:
            out[found.default] = _grouped()
    return out


def _grouped() -> Callable[..., Any]:
    """Layers of experts: products of groups of rows, an operator of dmir's own."""
    import onnx
    from onnxscript.values import Op, Opset

    of = onnx.defs.OpSchema.FormalParameter
    types = [("T", [f"tensor({t})" for t in ("float16", "bfloat16", "float", "double")], ""), ("I", ["tensor(int32)", "tensor(int64)"], "")]
    schema = onnx.defs.OpSchema(
        "GroupedMatmul", "dmir", 1, inputs=[of("x", "T"), of("w", "T"), of("ends", "I")], outputs=[of("y", "T")], type_constraints=types
    )
    product = Op(Opset("dmir", 1), "GroupedMatmul", schema)

    def grouped(x: Any, w: Any, offs: Any, bias: Any = None, out_dtype: Any = None) -> Any:
        if bias is not None or out_dtype is not None:
            raise TraceError("grouped_mm with a bias or another type of results is not supported")
        return product(x, w, offs)

    return grouped


def _histc(x: Any, bins: int = 100, min: float = 0, max: float = 0) -> Any:
    """How many tokens each expert has, in layers of experts."""
    from onnxscript import opset18 as op

    if max <= min:
        max = min + 1  # one value, as of one expert
    number = op.CastLike(bins, x)
    at = op.Floor(op.Div(op.Mul(op.Sub(op.Reshape(x, [-1]), op.CastLike(min, x)), number), op.CastLike(max - min, x)))
    inside = op.And(op.GreaterOrEqual(at, op.CastLike(0, x)), op.LessOrEqual(at, number))
    at = op.Where(inside, op.Min(at, op.CastLike(bins - 1, x)), op.CastLike(bins, x))
    counts = op.ReduceSum(op.OneHot(op.Cast(at, to=_INT64), op.Constant(value_int=bins + 1), op.CastLike([0, 1], x)), [0], keepdims=0)
    return op.Slice(counts, [0], [bins])


def _cross_entropy(
    x: Any, target: Any, weight: Any = None, reduction: int = 1, ignore_index: int = -100, label_smoothing: float = 0.0
) -> Any:
    """With label smoothing, which torch.onnx drops, and for targets that are probabilities, for which ONNX has no loss."""
    from onnxscript import opset18 as op

    how, single = _REDUCTIONS[reduction], len(x.shape) == 1
    classes, probabilities = x.shape[0 if single else 1], target.dtype.is_floating_point()
    if single:
        x, target = op.Unsqueeze(x, [0]), op.Unsqueeze(target, [0])
    logs = op.LogSoftmax(x, axis=1)
    weighted = logs if weight is None else op.Mul(logs, op.Reshape(weight, [1, -1] if single else [1, -1, *[1] * (len(x.shape) - 2)]))
    if probabilities:
        if label_smoothing:
            target = op.Add(op.Mul(target, op.CastLike(1 - label_smoothing, x)), op.CastLike(label_smoothing / classes, x))
        loss = op.Neg(op.ReduceSum(op.Mul(weighted, target), [1], keepdims=0))
        if how != "none":
            loss = (op.ReduceMean if how == "mean" else op.ReduceSum)(loss, keepdims=0)
    elif label_smoothing:
        loss = op.NegativeLogLikelihoodLoss(logs, target, weight, ignore_index=ignore_index, reduction=how)
        used, none = op.Not(op.Equal(target, ignore_index)), op.CastLike(0, x)
        smooth = op.Where(used, op.Neg(op.ReduceSum(weighted, [1], keepdims=0)), none)
        if how == "mean":
            one = op.CastLike(1, x) if weight is None else op.Gather(weight, op.Where(used, target, 0))
            smooth = op.Div(op.ReduceSum(smooth, keepdims=0), op.ReduceSum(op.Where(used, one, none), keepdims=0))
        elif how == "sum":
            smooth = op.ReduceSum(smooth, keepdims=0)
        loss = op.Add(op.Mul(loss, op.CastLike(1 - label_smoothing, x)), op.Mul(smooth, op.CastLike(label_smoothing / classes, x)))
    else:
        loss, _ = op.SoftmaxCrossEntropyLoss(x, target, weight, ignore_index=ignore_index, reduction=how)
    return op.Squeeze(loss, [0]) if single and how == "none" else loss


def _pool(rank: int) -> Callable[..., Any]:
    """Means over windows, with the divisor that torch.onnx drops."""

    def pool(
        x: Any,
        kernel_size: Any,
        stride: Any = (),
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Any:
        from onnxscript import opset18 as op

        def each(v: Any) -> list[int]:
            v = [v] if isinstance(v, int) else list(v)
            return v * rank if len(v) == 1 else v

        sizes, steps, pads = each(kernel_size), each(stride or kernel_size), each(padding)
        if divisor_override is not None and ceil_mode:
            raise TraceError("avg_pool with divisor_override and ceil_mode is not supported")
        single = len(x.shape) == rank + 1
        y = op.AveragePool(
            op.Unsqueeze(x, [0]) if single else x,
            kernel_shape=sizes,
            strides=steps,
            pads=pads * 2,
            ceil_mode=int(ceil_mode),
            count_include_pad=int(count_include_pad or divisor_override is not None),
        )
        if divisor_override is not None:
            for n in sizes:
                y = op.Mul(y, op.CastLike(n, y))
            y = op.Div(y, op.CastLike(divisor_override, y))
        return op.Squeeze(y, [0]) if single else y

    return pool


def _distances(x: Any, y: Any, p: float, compute_mode: int | None = None) -> Any:
    """The distances of each row of x and each of y."""
    from onnxscript import opset18 as op

    apart = op.Abs(op.Sub(op.Unsqueeze(x, [-2]), op.Unsqueeze(y, [-3])))
    if p == 0:
        return op.ReduceSum(op.CastLike(op.Greater(apart, op.CastLike(0, x)), x), [-1], keepdims=0)
    if p == 1:
        return op.ReduceSum(apart, [-1], keepdims=0)
    if p == 2:
        return op.ReduceL2(apart, [-1], keepdims=0)
    if p == float("inf"):
        return op.ReduceMax(apart, [-1], keepdims=0)
    return op.Pow(op.ReduceSum(op.Pow(apart, op.CastLike(p, x)), [-1], keepdims=0), op.CastLike(1 / p, x))


def _median(x: Any) -> Any:
    from onnxscript import opset18 as op

    return _middle(op.Reshape(x, [-1]), 0, False, _count(x), x.dtype)[0]


def _median_along(x: Any, dim: int, keepdim: bool = False) -> tuple[Any, Any]:
    return _middle(x, dim, keepdim, x.shape[dim], x.dtype)


def _middle(x: Any, dim: int, keepdim: bool, size: int, dtype: Any) -> tuple[Any, Any]:
    """The lower of the two in the middle, and where it is; NaN where there is one."""
    from onnxscript import opset18 as op

    values, at = op.TopK(x, [(size - 1) // 2 + 1], axis=dim, largest=0)
    values, at = (op.Gather(v, [-1] if keepdim else -1, axis=dim) for v in (values, at))
    if dtype.is_floating_point():
        missing = op.ReduceMax(op.CastLike(op.IsNaN(x), x), [dim], keepdims=int(keepdim))
        values = op.Where(op.Greater(missing, op.CastLike(0, x)), op.CastLike(float("nan"), x), values)
    return values, at


def _bag(
    weight: Any,
    indices: Any,
    offsets: Any,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Any, Any, Any, Any]:
    """Sums, means or maxima of bags of rows, scattered into a row for each bag; torch.onnx makes a loop over the bags.

    Of the four results only the first reaches a caller in torch.nn.
    """
    from onnxscript import opset18 as op

    flat = op.Reshape(indices, [-1])
    rows = op.Gather(weight, flat)
    if per_sample_weights is not None:
        rows = op.Mul(rows, op.Unsqueeze(op.Reshape(per_sample_weights, [-1]), [1]))
    count, bags, width = _count(indices), offsets.shape[0] - int(include_last_offset), weight.shape[1]
    starts = op.Cast(op.Slice(offsets, [0], [bags]), to=_INT64)
    begun = op.ScatterElements(_zeros(op, [count + 1]), starts, op.Expand([1], [bags]), axis=0, reduction="add")
    bag = op.Sub(op.CumSum(op.Slice(begun, [0], [count]), 0), [1])
    used = op.Expand([1], [count])
    if padding_idx is not None and padding_idx >= 0:
        kept = op.Not(op.Equal(flat, op.CastLike(padding_idx, flat)))
        used = op.Cast(kept, to=_INT64)
        lost = 0 if mode < 2 else float("-inf")
        rows = op.Where(op.Unsqueeze(kept, [1]), rows, op.CastLike(lost, weight))
    place = op.Unsqueeze(bag, [1])
    sizes = op.ScatterND(_zeros(op, [bags]), place, used, reduction="add")
    start = op.CastLike(0 if mode < 2 else float("-inf"), weight)
    y = op.ScatterND(op.Expand(start, [bags, width]), place, rows, reduction="add" if mode < 2 else "max")
    column = op.Unsqueeze(sizes, [1])
    if mode == 1:
        y = op.Div(y, op.CastLike(op.Where(op.Greater(column, [0]), column, [1]), weight))
    if mode == 2:
        y = op.Where(op.Greater(column, [0]), y, op.CastLike(0, weight))
    return y, bag, sizes, sizes


def _zeros(op: Any, sizes: list[int]) -> Any:
    return op.Expand([0], sizes)


def _count(x: Any) -> int:
    out = 1
    for n in x.shape:
        out *= int(n)
    return out
