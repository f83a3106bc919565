"""Training steps of JAX: made of a model, and marked so that `dmir run --steps` goes on with what the step before returned."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Mapping
from typing import Any, Callable

from . import _jax
from ._errors import TraceError, meant
from ._shapes import Shape
from ._state import value_name

_LOCATION = re.compile(r'loc\("((?:[^"\\]|\\.)*)"')


@dataclasses.dataclass(frozen=True)
class Step:
    """A function whose first results are the next values of its first arguments, as many as state."""

    f: Callable[..., Any]
    args: tuple
    state: int
    begin: list | None = None  # with what the leaves of the state begin, where not with the arguments: arrays, numbers, None for others
    result: str = ""  # the name of the result behind the state


def of_model(f: Any, args: tuple, loss: Any, optimizer: Any, lr: float | None, values: bool) -> Step:
    """The training step of a model f(params, *inputs).

    The parameters are the floating-point arrays among the leaves of the first argument; others are constants. With values
    the optimizer's state begins with what it makes of the parameters, where these are arrays and not shapes.
    """
    import jax

    model, args, params = _divided(f, args)
    step, init = train_step(model, loss, optimizer, lr)
    _name(step, ["params", "state"], f, len(args) - 2)
    state = jax.eval_shape(init, params)
    leaves = jax.tree.leaves(params)
    if values and not any(isinstance(x, jax.ShapeDtypeStruct) for x in leaves):
        begin = [*leaves, *jax.tree.leaves(init(params))]
    else:
        begin = [None] * len(leaves) + _numbers(init, params)
    return Step(step, (params, state, *args[1:]), 2, begin, "loss")


def loss_of_model(f: Any, args: tuple, loss: Any, values: bool) -> Step:
    """The loss of a model f(params, *inputs) for a target, whose gradient by the parameters is left to dmir.

    The names of the parameters begin with "params", those of other arguments do not.
    """
    import jax

    model, args, params = _divided(f, args)
    measure = _loss(loss)

    def lost(params: Any, *batch: Any) -> Any:
        *inputs, target = batch
        return measure(model(params, *inputs), target)

    _name(lost, ["params"], f, len(args) - 2)
    leaves = jax.tree.leaves(params)
    known = values and not any(isinstance(x, jax.ShapeDtypeStruct) for x in leaves)
    return Step(lost, (params, *args[1:]), 0, leaves if known else [None] * len(leaves), "loss")


def _divided(f: Any, args: tuple) -> tuple[Callable[..., Any], tuple, Any]:
    """The model f as a function of its parameters alone, its arguments, and its parameters among them."""
    import jax

    args = jax.tree.map(_jax.struct, args, is_leaf=lambda x: isinstance(x, Shape))
    if len(args) < 3:
        raise TraceError("a training step needs the parameters, the model's inputs and the target of the loss as arguments")
    params = jax.tree.map(lambda x: x if _is_parameter(x) else None, args[0])
    others = jax.tree.map(lambda x: None if _is_parameter(x) else x, args[0])
    return lambda p, *inputs: f(_jax.join(p, others), *inputs), args, params


def _name(step: Any, names: list[str], f: Any, inputs: int) -> None:
    """Gives the arguments of a step their names in the program: those given, then those of the inputs of f, then the target."""
    for name in (*_names(f, inputs), "target"):
        name = f"input_{name}" if name.startswith("params") else name
        names.append(name if name not in names else f"{name}_{len(names)}")
    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in names]
    step.__signature__ = inspect.Signature(parameters)


def _names(f: Any, count: int) -> list[str]:
    """The names of the arguments of f behind the first, as many as count."""
    try:
        own = [p.name for p in inspect.signature(f).parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    except (TypeError, ValueError):
        own = []
    return [*own[1 : count + 1], *(f"input{i}" for i in range(max(len(own) - 1, 0), count))]


def _is_parameter(x: Any) -> bool:
    import jax.numpy as jnp

    return hasattr(x, "shape") and hasattr(x, "dtype") and jnp.issubdtype(x.dtype, jnp.inexact)


def _numbers(init: Callable[[Any], Any], params: Any) -> list:
    """The number that each leaf of init(params) is in all its elements, None where it is none."""
    import jax

    program = jax.make_jaxpr(init)(params).jaxpr
    made = {id(out): eqn for eqn in program.eqns for out in eqn.outvars if eqn.primitive.name == "broadcast_in_dim"}

    def number(x: Any) -> float | None:
        while id(x) in made:
            x = made[id(x)].invars[0]
        value = getattr(x, "val", None)  # of a literal
        return float(value) if value is not None and getattr(value, "size", 1) == 1 else None

    return [number(x) for x in program.outvars]


def lower(
    step: Step, kwargs: dict[str, Any], file: str, static_argnums: Any = None, static_argnames: Any = None
) -> tuple[str, dict[str, Any]]:
    """Lowers a step. Returns StableHLO, which says with the dialect's attributes what is state and how it begins, and the
    arrays that the file, if it has a name, has to have for that."""
    import jax

    args, kwargs = jax.tree.map(_jax.struct, (step.args, kwargs), is_leaf=lambda x: isinstance(x, Shape))
    if not 0 <= step.state <= len(args):
        raise TraceError(f"state={step.state} is not a number of the {len(args)} arguments")
    (arrays, named), constants = _jax.partition(step.f, args, kwargs, static_argnums, static_argnames)
    jitted = jax.jit(_jax.closed(step.f, constants, {}), donate_argnums=range(step.state), keep_unused=True)
    with _jax.full_locations():
        traced = jitted.trace(*arrays, **named)
        count = _check(jax.eval_shape(lambda *x: x, *arrays), traced.out_info, step.state)
        begin = step.begin or jax.tree.leaves(arrays[: step.state])
        return _marked(_jax.lowered(traced), count, begin, file, step.result)


def _check(args: tuple, results: Any, state: int) -> int:
    """The number of leaves of the state; raises TraceError where a result is not of the form of its argument."""
    import jax

    results = results if isinstance(results, tuple) else (results,)

    def types(x: Any) -> dict[str, str]:
        return {jax.tree_util.keystr(keys): f"{v.dtype}{list(v.shape)}" for keys, v in jax.tree_util.tree_flatten_with_path(x)[0]}

    count = 0
    for i in range(state):
        want, have = types(args[i]), types(results[i]) if i < len(results) else {}
        for path in want | have:
            if want.get(path) != have.get(path):
                raise TraceError(
                    f"result {i} is not the next value of argument {i}: {path or 'it'} is {have.get(path, 'missing')}, in the argument {want.get(path, 'missing')}"
                )
        count += len(want)
    return count


def _marked(lowered: Any, count: int, begin: list, file: str, result: str) -> tuple[str, dict[str, Any]]:
    from jaxlib.mlir import ir

    module, arrays = lowered.compiler_ir("stablehlo"), {}
    with module.context as context:
        context.allow_unregistered_dialects = True  # that of dmir
        main = next(op for op in module.body.operations if ir.StringAttr(op.attributes["sym_name"]).value == "main")
        parsed = ir.Attribute.parse
        ins, outs = _dictionaries(main, "arg_attrs"), _dictionaries(main, "res_attrs")
        for k, argument in enumerate(list(main.regions[0].blocks[0].arguments)[: len(begin)]):
            found = _LOCATION.match(str(argument.location))
            path = found[1] if found else f"state[{k}]"
            if k < count:
                outs[k].update({"dm.state": parsed(f"{k} : i64"), "jax.result_info": ir.StringAttr.get(path)})
            if isinstance(begin[k], (int, float)):
                ins[k]["dm.init"] = parsed(repr(float(begin[k])))
            elif file and hasattr(begin[k], "__array__"):
                name = value_name(path)
                name = f"{name}_{k}" if name in arrays else name
                arrays[name] = begin[k]
                ins[k]["dm.init"] = parsed(f'#dm.file<"{file}", "{name}">')
        if result:
            outs[count]["jax.result_info"] = ir.StringAttr.get(result)
        for name, dictionaries in ("arg_attrs", ins), ("res_attrs", outs):
            main.attributes[name] = ir.ArrayAttr.get([ir.DictAttr.get(d) for d in dictionaries])
        return module.operation.get_asm(enable_debug_info=True), arrays


def _dictionaries(main: Any, name: str) -> list[dict[str, Any]]:
    """The attributes of the arguments or of the results of a function."""
    from jaxlib.mlir import ir

    return [{a.name: a.attr for a in ir.DictAttr(d)} for d in ir.ArrayAttr(main.attributes[name])]


def stored(arrays: Mapping[str, Any]) -> bytes:
    """The arrays as a .npz file, in which dmir reads those of few bits as f32."""
    import io

    import jax
    import numpy as np

    def plain(x: Any) -> Any:
        if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
            x = jax.random.key_data(x)
        array = np.asarray(x)
        return array.astype(np.float32) if array.dtype.kind == "V" else array

    file = io.BytesIO()
    np.savez(file, **{name: plain(x) for name, x in arrays.items()})
    return file.getvalue()


def train_step(f: Callable[..., Any], loss: Any, optimizer: Any, lr: float | None) -> tuple[Callable[..., Any], Callable[[Any], Any]]:
    """A training step of f(params, *inputs), and the function that makes the optimizer's state of the parameters.

    The step takes the parameters, the optimizer's state, the inputs of f and the target of the loss, and returns the new
    parameters, the new state and the loss. loss is a function of the output and the target, or "mse" or "cross_entropy";
    optimizer has Optax's init and update, or is the name of one of Optax's, or "sgd".
    """
    import jax

    measure, (init, update) = _loss(loss), _optimizer(optimizer, lr)

    def step(params: Any, state: Any, *batch: Any) -> Any:
        *inputs, target = batch
        value, grads = jax.value_and_grad(lambda p: measure(f(p, *inputs), target))(params)
        changes, state = update(grads, state, params)
        return jax.tree.map(lambda p, c: (p + c).astype(p.dtype), params, changes), state, value

    return step, init


def spec(optimizer: Any, lr: float | None, training: Mapping[str, Any] | None) -> dict[str, Any]:
    """What `dmir import --train` completes a loss with: an optimizer with the defaults of Optax."""
    defaults: dict[str, dict[str, Any]] = {"sgd": {"lr": 0.01}, "adam": {"lr": 0.001}, "adamw": {"lr": 0.001, "weight_decay": 0.0001}}
    if optimizer not in defaults:
        raise TraceError(
            f'there is no optimizer {optimizer!r}{meant(str(optimizer), defaults)} with gradient="dmir"; give sgd, adam or adamw'
        )
    made = {"loss": "output", "optimizer": optimizer, **defaults[optimizer], **({} if lr is None else {"lr": lr}), **(training or {})}
    return {**made, "parameters": "params*"}


def _loss(loss: Any) -> Callable[[Any, Any], Any]:
    import jax
    import jax.numpy as jnp

    def cross_entropy(logits: Any, labels: Any) -> Any:
        chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], axis=-1)
        return -jnp.mean(chosen)

    named = {"mse": lambda output, target: jnp.mean((output - target) ** 2), "cross_entropy": cross_entropy}
    if callable(loss):
        return loss
    if loss in named:
        return named[loss]
    raise TraceError(
        f"there is no loss {loss!r}{meant(str(loss), named)}; give a function of the output and the target, or one of {', '.join(named)}"
    )


def _optimizer(optimizer: Any, lr: float | None) -> tuple[Callable[..., Any], Callable[..., Any]]:
    import jax

    if hasattr(optimizer, "init") and hasattr(optimizer, "update"):
        return optimizer.init, optimizer.update
    if optimizer == "sgd":
        rate = 0.01 if lr is None else lr
        return lambda params: (), lambda grads, state, params: (jax.tree.map(lambda g: -rate * g, grads), state)
    try:
        import optax
    except ImportError:
        raise TraceError(f"the optimizer {optimizer!r} is Optax's, which is not installed (pip install optax); sgd needs nothing") from None
    make = getattr(optax, optimizer, None) if isinstance(optimizer, str) else None
    if make is None:
        raise TraceError(f"there is no optimizer {optimizer!r}; give one of Optax's, by name or as an object, or sgd")
    made = make(0.001 if lr is None else lr)
    return made.init, made.update
