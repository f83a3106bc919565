import functools
import inspect
import os
import re
import warnings

import jax
from jax.extend.core import Literal
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

# The axes of the mesh, the outermost first: neighbours along the last one have the fastest links between them.
AXES = {}
# Arguments and results of the step in the order of their leaves: path, kind, shape, and how each dimension is divided.
ARGUMENTS = ()
RESULTS = ()
# Values between arguments and results that the plan states: the line and the operation that computes them, whether in the backward pass,
# their shape, which of so many operations alike (None: all), and how they are divided.
ACTIVATIONS = ()
MICROBATCHES = 1
RECOMPUTE = "none"
# Bytes that a device sends in a step by the plan, by the kinds of XLA's collectives.
SENT = {}


@functools.lru_cache(maxsize=None)
def mesh(devices=None):
    """The plan's mesh of these devices, a tuple in the order of their links; without any, of all that JAX has."""
    kinds = getattr(jax.sharding, "AxisType", None)
    options = {"axis_types": (kinds.Auto,) * len(AXES)} if kinds else {}
    return jax.make_mesh(tuple(AXES.values()), tuple(AXES), devices=devices, **options)


def arguments(step, *args):
    """A tree of PartitionSpec for the arguments of the step, as jax.jit takes it for in_shardings."""
    return _specs(args, ARGUMENTS, _names(step, args), "argument")


def results(step, *args):
    """A tree of PartitionSpec for what the step returns for the arguments."""
    return _specs(jax.eval_shape(step, *args), RESULTS, None, "result")


def specs(tree, prefix=""):
    """A tree of PartitionSpec for one that is in the step's arguments under the prefix, such as specs(params, "params")."""
    known = {_name(path): spec for path, _, _, spec in ARGUMENTS}

    def spec(path, leaf):
        name = _name(prefix + jax.tree_util.keystr(path))
        if name not in known:
            raise KeyError(f"the plan has no argument {prefix}{jax.tree_util.keystr(path)}")
        return known[name]

    return jax.tree_util.tree_map_with_path(spec, tree)


def shard(tree, prefix="", on=None):
    """The tree with its arrays laid over the devices as the plan has them."""
    return jax.device_put(tree, _placed(specs(tree, prefix), on or mesh()))


def jit(step, on=None, **options):
    """jax.jit of the step that was traced, whose arguments and results lie as the plan has them; options are those of jax.jit.

    Arguments that lie otherwise are moved. What the function's lower returns has compile() and as_text(), as of jax.jit.
    """
    on = on or mesh()
    made = {}

    def compiled(*args):
        leaves, tree = jax.tree.flatten(args)
        key = tree, tuple(jax.numpy.shape(x) if _is_array(x) else None for x in leaves)
        if key not in made:
            ins, outs = (_placed(x, on) for x in (arguments(step, *args), results(step, *args)))
            made[key] = jax.jit(constrained(step, on), in_shardings=ins, out_shardings=outs, **options), ins
        return made[key]

    @functools.wraps(step)
    def call(*args):
        f, ins = compiled(*args)
        return f(*jax.device_put(args, ins))

    call.lower = lambda *args: compiled(*args)[0].lower(*args)
    return call


def constrained(step, on=None):
    """The step with the values of ACTIVATIONS divided as the plan has them; jit does this."""
    if not ACTIVATIONS or MICROBATCHES > 1:
        return step

    @functools.wraps(step)
    def call(*args):
        program, form = jax.make_jaxpr(step, return_shape=True)(*args)
        lines = {entry[0] for entry in ACTIVATIONS}
        count = {}

        def tally(key):
            count[key] = count.get(key, 0) + 1

        _walk(program.jaxpr, lines, tally)
        known = {}
        for *key, nth, of, spec in ACTIVATIONS:
            if count.get(tuple(key), 0) == of:
                known[tuple(key), nth] = NamedSharding(on or mesh(), spec)
        if len(known) < len(ACTIVATIONS) * 3 / 4:  # a few are made by JAX when it lowers an operation
            missing = next(entry for entry in ACTIVATIONS if count.get(tuple(entry[:4]), 0) != entry[5])
            warnings.warn(f"the step is not the one that was traced: of {len(ACTIVATIONS)} values {len(known)} are found, and not that of {missing[1]} in {missing[0]}")
        seen = {}

        def state(key):
            nth = seen[key] = seen.get(key, -1) + 1
            return known.get((key, None)) or known.get((key, nth))

        return jax.tree.unflatten(jax.tree.structure(form), _run(program.jaxpr, program.consts, jax.tree.leaves(args), lines, state))

    return call


def checkpoint(layer):
    """The layer, a function, of which as much is computed again in the backward pass as in the plan."""
    if RECOMPUTE == "none":
        return layer
    kept = {"selective": jax.checkpoint_policies.dots_saveable, "full": jax.checkpoint_policies.nothing_saveable}
    return jax.checkpoint(layer, policy=kept[RECOMPUTE])


def value_and_grad(loss, argnums=0, on=None):
    """jax.value_and_grad of a loss that is a mean over samples: the mean of those of MICROBATCHES parts of them, one after the other.

    The samples are along the first dimension of all arguments but those of argnums. Each device takes its parts from samples that it
    has, and gradients are reduced over devices once, behind the last part.
    """
    whole = jax.value_and_grad(loss, argnums)
    fixed = {argnums} if isinstance(argnums, int) else set(argnums)
    if MICROBATCHES == 1:
        return whole

    def call(*args):
        axes = _sample_axes()
        groups = 1
        for name in axes:
            groups *= AXES[name]

        def cut(x):
            rows, rest = divmod(x.shape[0], groups * MICROBATCHES)
            if rest:
                raise ValueError(f"{x.shape[0]} samples are no multiple of {groups} devices times {MICROBATCHES} micro-batches")
            return placed(x.reshape(groups, MICROBATCHES, rows, *x.shape[1:]).swapaxes(0, 1), None)

        def placed(x, *front):  # behind the dimensions in front, one for each group of devices
            return jax.lax.with_sharding_constraint(x, NamedSharding(on or mesh(), P(*front, axes or None)))

        parts = jax.tree.map(cut, [x for i, x in enumerate(args) if i not in fixed])
        group = jax.vmap(whole, [None if i in fixed else 0 for i in range(len(args))], spmd_axis_name=axes or None)

        def one(total, part):
            part = iter(part)
            made = group(*[x if i in fixed else next(part) for i, x in enumerate(args)])
            return jax.tree.map(lambda a, b: placed(a + b), total, made), None

        shapes = jax.eval_shape(whole, *args)
        zeros = jax.tree.map(lambda x: placed(jax.numpy.zeros((groups, *x.shape), x.dtype)), shapes)
        total = jax.lax.scan(one, zeros, parts)[0]
        return jax.tree.map(lambda x: x.sum(0) / (groups * MICROBATCHES), total)

    return call


def _walk(jaxpr, lines, visit, outer=None):
    """Calls visit for each operation at one of the lines, those of jitted functions included, in their order."""
    for eqn in jaxpr.eqns:
        inner, place = _inner(eqn), _place(eqn, outer)
        if inner is not None:
            _walk(inner.jaxpr, lines, visit, place)
        elif place[0] in lines:
            visit(_key(eqn, place))


def _run(jaxpr, consts, args, lines, visit, outer=None):
    """The results of a program, with the values divided for which visit, called as by _walk, returns a sharding."""
    values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args]))
    broadcast = set()  # values that are others, larger

    def read(v):
        return v.val if isinstance(v, Literal) else values[v]

    for eqn in jaxpr.eqns:
        ins = [read(v) for v in eqn.invars]
        inner, place = _inner(eqn), _place(eqn, outer)
        with jax.named_scope(str(eqn.source_info.name_stack)):
            if inner is not None:
                outs = _run(inner.jaxpr, inner.consts, ins, lines, visit, place)
            else:
                spec = visit(_key(eqn, place)) if place[0] in lines else None
                if spec is not None:  # what is broadcast for it is divided alike before, while it is small
                    shape = eqn.outvars[0].aval.shape
                    for i, v in enumerate(eqn.invars):
                        if not isinstance(v, Literal) and v in broadcast and v.aval.ndim == len(shape):
                            own = [d if n == v.aval.shape[k] else None for k, (n, d) in enumerate(zip(shape, [*spec.spec, *[None] * len(shape)]))]
                            ins[i] = jax.lax.with_sharding_constraint(ins[i], NamedSharding(spec.mesh, P(*own)))
                params = eqn.primitive.get_bind_params(eqn.params)
                functions, params = params if isinstance(params, tuple) else ((), params)  # as older versions of JAX have it
                outs = eqn.primitive.bind(*functions, *ins, **params)
                outs = list(outs) if eqn.primitive.multiple_results else [outs]
                if spec is not None:
                    outs[0] = jax.lax.with_sharding_constraint(outs[0], spec)
        if eqn.primitive.name == "broadcast_in_dim":
            broadcast.add(eqn.outvars[0])
        values.update(zip(eqn.outvars, outs))
    return [read(v) for v in jaxpr.outvars]


def _key(eqn, place):
    return place[0], eqn.primitive.name, place[1], eqn.outvars[0].aval.shape


def _inner(eqn):
    """The program of a jitted function that is called."""
    return eqn.params["jaxpr"] if eqn.primitive.name in ("jit", "pjit") else None


def _place(eqn, outer):
    """The innermost line of an operation outside of JAX, else that of the call around it; and whether it is of the backward pass."""
    info = eqn.source_info
    back = "transpose(" in str(info.name_stack) or bool(outer and outer[1])
    for frame in info.traceback.frames if info.traceback else ():
        if not frame.file_name.startswith(_JAX):
            return f"{os.path.basename(frame.file_name)}:{frame.line_num}", back
    return outer[0] if outer else "", back


_JAX = os.path.dirname(jax.__file__) + os.sep


def _sample_axes():
    """The axes that the samples of the step are divided over."""
    for _, kind, _, spec in ARGUMENTS:
        if kind == "samples" and len(spec) and spec[0]:
            return spec[0] if isinstance(spec[0], tuple) else (spec[0],)
    return ()


def _placed(specs, on):
    return jax.tree.map(lambda s: s if s is None else NamedSharding(on, s), specs, is_leaf=lambda s: s is None or isinstance(s, P))


def _specs(tree, table, names, what):
    leaves, form = jax.tree.flatten(tree)
    arrays = [i for i, x in enumerate(leaves) if _is_array(x)]
    out = [None] * len(leaves)
    if len(arrays) == len(table):  # the step as it was traced
        found = dict(zip(arrays, table))
    else:  # arguments that the step does not use were left out
        known = {_name(entry[0]): entry for entry in table}
        found = {i: known.get(_name(names[i])) for i in arrays} if names else {}
    for i in arrays:
        path, kind, shape, spec = found.get(i) or ("", "", None, P() if names else None)
        have = jax.numpy.shape(leaves[i])
        if shape is not None and (len(have) != len(shape) or kind != "samples" and have != shape):
            raise ValueError(f"{what} {path} has the shape {have}; the plan is for {shape}")
        out[i] = spec
    return jax.tree.unflatten(form, out)


def _names(step, args):
    """The path of each leaf of the arguments, as JAX calls them."""
    names = []
    try:
        for p in inspect.signature(step).bind(*args).signature.parameters.values():
            if p.kind is p.VAR_POSITIONAL:
                break
            names.append(p.name)
    except (TypeError, ValueError):
        pass
    names += [f"args[{i}]" for i in range(len(args) - len(names))]
    return [name + jax.tree_util.keystr(path) for name, x in zip(names, args) for path, _ in jax.tree_util.tree_flatten_with_path(x)[0]]


def _name(path):
    return ".".join(re.findall(r"[A-Za-z0-9_]+", path))


def _is_array(x):
    return hasattr(x, "shape") or isinstance(x, (bool, int, float, complex))
