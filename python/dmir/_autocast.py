"""Autocast as on the device that a program asks for, though its trace runs on the processor.

PyTorch turns autocast of "cuda" off where there is no CUDA. While a module is exported it stays on here, and torch.export writes each region
as an operator with a graph of its own. `written_out` puts such graphs in their places, so that ops keep their modules and lines, and writes the
casts that the device's autocast makes before and within its ops.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Iterator
from typing import Any

from ._errors import TraceError, own_line

# What autocast does to the ops that PyTorch has registered for it on a device: those here compute in the lower precision, those of _WIDEST
# in the widest type of their operands, those of _BY_DTYPE give float32, and all others take float32.
_LOWER = frozenset(
    """_addmm_activation _convolution _cudnn_rnn _mps_convolution _native_multi_head_attention _scaled_dot_product_flash_attention
    _thnn_fused_gru_cell _thnn_fused_lstm_cell addbmm addmm addmv addr baddbmm bmm chain_matmul conv1d conv2d conv3d conv_tbc conv_transpose1d
    conv_transpose2d conv_transpose3d convolution cudnn_convolution cudnn_convolution_transpose einsum gru_cell linalg_multi_dot linalg_vecdot
    linear lstm_cell matmul mkldnn_rnn_layer mm mv prelu rnn_relu_cell rnn_tanh_cell scaled_dot_product_attention""".split()
)
_WIDEST = frozenset(
    "addcdiv addcmul atan2 bilinear cat cross dot grid_sampler index_copy index_put scatter_add stack tensordot vdot".split()
)
_BY_DTYPE = frozenset("cumprod cumsum log_softmax prod softmax sum".split())
# Ops that consist of those above, which torch.export leaves whole: their parts decide.
_COMPOSED = {
    **dict.fromkeys("chain_matmul conv1d conv2d conv3d einsum gru linalg_multi_dot lstm rnn_relu rnn_tanh".split(), "lower"),
    **dict.fromkeys(("cross_entropy_loss", "nll_loss_nd"), "float32"),
}
_OFF = "CUDA is not available"  # how the warning begins with which PyTorch turns autocast off


@contextlib.contextmanager
def as_asked(module: Any) -> Iterator[None]:
    """Regions of autocast are on though their device is not here; those around this call are around the module's forward."""
    import torch
    from torch.amp import autocast_mode

    cls, around = torch.amp.autocast_mode.autocast, _around()
    init, enter, leave, cast = cls.__init__, cls.__enter__, cls.__exit__, autocast_mode._cast

    @functools.wraps(init)
    def __init__(self: Any, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: Any = None) -> None:
        init(self, device_type, dtype, enabled, cache_enabled)
        if self.device == "cuda":
            self._enabled = enabled

    def __enter__(self: Any) -> Any:
        if self.device == "cuda" and not self._enabled:
            caller = sys._getframe(1)
            f = caller.f_locals.get("func") if caller.f_code.co_name == "decorate_autocast" else None  # a decorator, made before
            code = getattr(f, "__code__", None)
            if (
                f is not None
                and code
                and _turned_off(f.__globals__, range(code.co_firstlineno, max(n or 0 for _, _, n in code.co_lines()) + 1))
            ):
                self._enabled = True
        self._before = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")
        made = enter(self)
        if self.device != "cpu":  # the tensors of the trace are the processor's
            torch.set_autocast_enabled("cpu", self._enabled)
            torch.set_autocast_dtype("cpu", self.fast_dtype)
        return made

    def __exit__(self: Any, *why: Any) -> Any:
        left = leave(self, *why)
        torch.set_autocast_enabled("cpu", self._before[0])
        torch.set_autocast_dtype("cpu", self._before[1])
        return left

    cls.__init__, cls.__enter__, cls.__exit__ = __init__, __enter__, __exit__
    autocast_mode._cast = lambda value, device_type, dtype: cast(value, "cpu", dtype)  # of torch.amp.custom_fwd
    try:
        with off(), _inside(module, around):
            yield
    finally:
        cls.__init__, cls.__enter__, cls.__exit__, autocast_mode._cast = init, enter, leave, cast


@contextlib.contextmanager
def off() -> Iterator[None]:
    """Without the autocast that is on around this call."""
    import torch

    devices = [d for d in ("cpu", "cuda", "xpu", "mps") if torch.is_autocast_enabled(d)]
    for d in devices:
        torch.set_autocast_enabled(d, False)
    try:
        yield
    finally:
        for d in devices:
            torch.set_autocast_enabled(d, True)


def _around() -> tuple[str, Any] | None:
    """The device and the type of the autocast around the call of this package, also where PyTorch has turned it off."""
    import torch

    for device in "cuda", "xpu", "mps", "cpu":
        if torch.is_autocast_enabled(device):
            return device, torch.get_autocast_dtype(device)
    depth = torch.autocast_increment_nesting() - 1
    torch.autocast_decrement_nesting()
    frame = sys._getframe(1)
    while depth and frame is not None:
        if _turned_off(frame.f_globals, range(frame.f_code.co_firstlineno, frame.f_lineno + 1)):
            return "cuda", torch.get_autocast_dtype("cuda")
        frame = frame.f_back  # type: ignore[assignment]
    return None


def _turned_off(module: dict[str, Any], lines: range) -> bool:
    """Whether PyTorch has warned for a line of a module that it turns autocast off: Python keeps what it has warned of."""
    warned = module.get("__warningregistry__", {})
    return any(isinstance(k, tuple) and len(k) == 3 and str(k[0]).startswith(_OFF) and k[2] in lines for k in warned)


@contextlib.contextmanager
def _inside(module: Any, around: tuple[str, Any] | None) -> Iterator[None]:
    """The module's forward is in a region of autocast."""
    import torch

    if around is None:
        yield
        return
    forward, own = module.forward, "forward" in vars(module)

    @functools.wraps(forward)
    def inside(*args: Any, **kwargs: Any) -> Any:
        with torch.autocast(around[0], dtype=around[1]):
            return forward(*args, **kwargs)

    module.forward = inside
    try:
        yield
    finally:
        if own:
            module.forward = forward
        else:
            del module.forward


def written_out(exported: Any) -> Any:
    """The exported program with the graphs of its regions in their places, and with the casts of autocast. It is changed."""
    import torch

    module = exported.graph_module
    if not any(_region(n) for n in module.graph.nodes):
        return exported
    copy = _Copy(module)
    results = copy.graph(module, [])
    if not isinstance(results, (tuple, list)):
        results = (results,)
    for spec, value in zip(exported.graph_signature.output_specs, results):
        if isinstance(value, torch.fx.Node) and hasattr(spec.arg, "name"):
            spec.arg.name = value.name
    copy.new.output(tuple(results)).meta = next(n.meta for n in module.graph.nodes if n.op == "output")
    module.graph = copy.new
    module.delete_all_unused_submodules()
    module.recompile()
    return exported


def _region(node: Any) -> str:
    """What the region is that a node stands for, "" where it stands for none."""
    name = getattr(node.target, "__name__", "") if node.op == "call_function" else ""
    return name if name in ("wrap_with_autocast", "wrap_with_set_grad_enabled") else ""


class _Copy:
    """A graph in the making, in which regions are written out."""

    def __init__(self, root: Any) -> None:
        import torch

        self.root, self.new = root, torch.fx.Graph()
        self._changed: set[Any] = set()  # nodes with results of other types than in the exported program
        self._cast: dict[Any, Any] = {}  # of a region: weights in the lower precision, of which autocast keeps one
        self._names = 0

    def graph(self, module: Any, args: Any, device: str = "", dtype: Any = None) -> Any:
        """Copies the nodes of a module's graph, with autocast of a device where dtype is one. Returns its results."""
        import operator

        env: dict[Any, Any] = {}
        given = iter(args)

        def of(x: Any) -> Any:
            return _map(x, lambda n: env[n])

        for node in module.graph.nodes:
            if node.op == "placeholder" and module is not self.root:
                env[node] = next(given)
            elif node.op == "output":
                return of(node.args[0])
            elif node.op == "get_attr":
                env[node] = self._attribute(module, node)
            elif kind := _region(node):
                env[node] = self._written(module, kind, node, of, device, dtype)
            elif getattr(node.target, "__name__", "").startswith("_assert_tensor_metadata"):
                env[node] = None  # the types of the trace, which those of the device may differ from
            elif node.target is operator.getitem and isinstance(env.get(node.args[0]), (tuple, list)):
                env[node] = env[node.args[0]][node.args[1]]
            else:
                env[node] = self._node(node, of, device, dtype)
        return ()

    def _written(self, module: Any, kind: str, node: Any, of: Any, device: str, dtype: Any) -> Any:
        at = 4 if kind == "wrap_with_autocast" else 1
        inner = _attribute(module, node.args[at].target)
        if at == 1:
            return self.graph(inner, of(node.args[2:]), device, dtype)
        asked, to, enabled = node.args[:3]
        if not device:
            self._cast = {}
        # Inside a region the device of x.device.type is the trace's, and the region's is meant.
        return self.graph(inner, of(node.args[5:]), asked if device in ("", "cpu") else device, to if enabled else None)

    def _attribute(self, module: Any, node: Any) -> Any:
        """A graph of another operator, such as torch.cond, or a constant: in the root, where it may need a new name."""
        import torch

        value = _attribute(module, node.target)
        if isinstance(value, torch.nn.Module) and all(_region(user) for user in node.users):
            return None  # written out
        if module is self.root:
            return self.new.node_copy(node)
        self._names += 1
        name = f"_inner_{self._names}"
        setattr(self.root, name, value)
        copied = self.new.node_copy(node)
        copied.target = name
        return copied

    def _node(self, node: Any, of: Any, device: str, dtype: Any) -> Any:
        args, kwargs = of(node.args), of(node.kwargs)
        cast = False
        if dtype is not None and node.op == "call_function":
            args, kwargs, cast = self._autocast(node, args, kwargs, device, dtype)
        copied = self.new.node_copy(node, of)
        copied.args, copied.kwargs = args, kwargs
        if cast or any(n in self._changed for n in copied.all_input_nodes):
            self._evaluate(copied)
        return copied

    def _evaluate(self, node: Any) -> None:
        """Finds what a node gives for the types that its operands have now."""
        import torch

        if not isinstance(node.target, torch._ops.OpOverload):
            if getattr(node.target, "__module__", "") != "_operator":
                return
        values = _map((node.args, dict(node.kwargs)), lambda n: n.meta.get("val"))
        was = node.meta.get("val")
        try:
            with _fake(values, was), off():
                now = node.target(*values[0], **values[1])
        except Exception as e:
            first = (str(e).strip() or type(e).__name__).splitlines()[0]
            at = own_line(traceback_text=node.meta.get("stack_trace") or "")
            raise TraceError(f"{node.target} fails with the types that autocast gives its operands: {first}{at}") from None
        node.meta["val"] = now
        if _types(now) != _types(was):
            self._changed.add(node)

    def _autocast(self, node: Any, args: Any, kwargs: Any, device: str, dtype: Any) -> tuple[Any, Any, bool]:
        """The arguments of an op as autocast passes them, and whether they are others."""
        import torch

        kind = _kind(node.target, device)
        if not kind:
            return args, kwargs, False
        given = [n for n in _nodes((args, kwargs)) if _eligible(n)]
        if kind == "dtype":
            free = any(a.name == "dtype" for a in node.target._schema.arguments) and kwargs.get("dtype") is None
            at = next((i for i, a in enumerate(node.target._schema.arguments) if a.name == "dtype"), None)
            if free and given and (at is None or at >= len(args) or args[at] is None):
                args = args[:at] if at is not None else args
                return args, {**kwargs, "dtype": torch.float32}, given[0].meta["val"].dtype != torch.float32
            return args, kwargs, False
        to = {"lower": dtype, "float32": torch.float32}.get(kind)
        if to is None:  # the widest
            to = functools.reduce(torch.promote_types, (n.meta["val"].dtype for n in given), dtype)
        made = {n: self._to(n, to, node) for n in given if n.meta["val"].dtype != to}
        args, kwargs = _map((args, dict(kwargs)), lambda n: made.get(n, n))
        return args, kwargs, bool(made)

    def _to(self, value: Any, dtype: Any, user: Any) -> Any:
        import torch

        if (value, dtype) in self._cast:
            return self._cast[value, dtype]
        node = self.new.call_function(torch.ops.aten._to_copy.default, (value,), {"dtype": dtype})
        node.meta = {k: v for k, v in user.meta.items() if k in ("stack_trace", "nn_module_stack")}
        node.meta["val"] = value.meta["val"]
        self._evaluate(node)
        self._changed.discard(node)
        if value.op == "placeholder":
            self._cast[value, dtype] = node
        return node


def _kind(target: Any, device: str) -> str:
    """What a device's autocast does to an op: "lower", "float32", "widest", "dtype", or "" for nothing."""
    import torch

    if not isinstance(target, torch._ops.OpOverload) or target.namespace != "aten":
        return ""
    name = target._schema.name.partition("::")[2]
    if name not in _registered(device):
        return _COMPOSED.get(name, "")
    if name in _BY_DTYPE and device != "cpu":
        return "dtype"
    return "lower" if name in _LOWER else "widest" if name in _WIDEST else "float32"


@functools.cache
def _registered(device: str) -> frozenset[str]:
    """The names of the ops that PyTorch has registered for a device's autocast."""
    import torch

    names = torch._C._dispatch_get_registrations_for_dispatch_key(f"Autocast{device.upper()}")
    return frozenset(n.removeprefix("aten::").partition(".")[0] for n in names)


def _attribute(module: Any, path: str) -> Any:
    return functools.reduce(getattr, path.split("."), module)


def _map(x: Any, f: Any) -> Any:
    import torch

    return torch.fx.node.map_arg(x, f)


def _nodes(x: Any) -> list[Any]:
    found: list[Any] = []

    def visit(n: Any) -> Any:
        found.append(n)
        return n

    _map(x, visit)
    return found


def _eligible(node: Any) -> bool:
    import torch

    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.is_floating_point() and value.dtype != torch.float64


def _types(x: Any) -> list[Any]:
    from torch.utils import _pytree as pytree

    return [getattr(t, "dtype", None) for t in pytree.tree_leaves(x)]


def _fake(*values: Any) -> Any:
    """The mode that the tensors of values are of."""
    from torch.utils import _pytree as pytree

    return next((m for t in pytree.tree_leaves(values) if (m := getattr(t, "fake_mode", None)) is not None), contextlib.nullcontext())
