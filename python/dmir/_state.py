"""The weights that `dmir run` writes, back in a module of PyTorch or in the parameters of JAX."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ._errors import StateError

_CHECKPOINT = re.compile(r"step-(\d{8,})\.npz")


def load_state(target: Any, source: str | os.PathLike[str], prefix: str = "", strict: bool = True) -> Any:
    """Puts weights that `dmir run` wrote into a model.

    Args:
        target: a torch.nn.Module, whose parameters and buffers are set, and whose state_dict is returned; or a tree of
            arrays or shapes of JAX, of which one with the weights is returned.
        source: a checkpoint of `dmir run --steps --checkpoint` (step-….npz), its folder, of which the last one counts, or
            the folder of `dmir run --output` with a .npy of each result.
        prefix: of a tree, the argument that it was in the program: "params" where its arrays are params.… there.
        strict: of a module, whether each parameter that needs a gradient must be there; one that the loss does not depend on is
            not. What is not there stays as it is.

    Raises StateError where the source lacks an array of the model, or has it with another shape.
    """
    import sys

    arrays, path = _read(Path(source))
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(target, torch.nn.Module):
        return _into_module(target, arrays, path, strict)
    import jax

    found = []
    leaves, tree = jax.tree_util.tree_flatten_with_path(target)
    for keys, leaf in leaves:
        if not hasattr(leaf, "shape"):  # such as an activation function in a module of Equinox
            found.append(leaf)
            continue
        name = value_name(prefix + jax.tree_util.keystr(keys))
        array = _array(arrays, name, tuple(leaf.shape), path)
        found.append(jax.numpy.asarray(array, leaf.dtype))
    return jax.tree_util.tree_unflatten(tree, found)


def _into_module(module: Any, arrays: Mapping[str, Any], path: Path, strict: bool) -> dict[str, Any]:
    import torch

    state = module.state_dict(keep_vars=True)
    names = {name: name if name in arrays else _argument(name) for name in state}
    # Tied weights are one array in the program, by one of their names.
    given = {id(tensor): _array(arrays, names[name], tuple(tensor.shape), path) for name, tensor in state.items() if names[name] in arrays}
    new = {}
    for name, tensor in state.items():
        if id(tensor) in given:
            new[name] = _tensor(given[id(tensor)]).to(tensor.dtype)
        elif name.rpartition(".")[2] == "num_batches_tracked" and "step" in arrays:  # as of batch normalization
            new[name] = tensor.detach() + int(arrays["step"])
        elif tensor.is_meta or strict and isinstance(tensor, torch.nn.Parameter) and tensor.requires_grad:
            _array(arrays, name, tuple(tensor.shape), path)
        else:
            new[name] = tensor.detach()
    module.load_state_dict(new, assign=any(t.is_meta for t in state.values()))
    return module.state_dict()


def _argument(name: str) -> str:
    """What an argument of a step is called that has this name in the state_dict."""
    name = re.sub(r"[^A-Za-z0-9_.$-]", "_", name)
    return f"v{name}" if name[:1].isdigit() else name


def _tensor(array: Any) -> Any:
    import numpy as np
    import torch

    return torch.from_numpy(np.ascontiguousarray(array).reshape(array.shape))


def _array(arrays: Mapping[str, Any], name: str, sizes: tuple[int, ...], path: Path) -> Any:
    if name not in arrays:
        have = sorted(arrays)
        raise StateError(f"{path} has no array {name}; it has {', '.join(have[:8])}{', …' if len(have) > 8 else ''}")
    array = arrays[name]
    if array.shape != sizes:
        raise StateError(f"{path}: {name} has the shape {array.shape}, in the model {sizes}")
    return array


def _read(source: Path) -> tuple[dict[str, Any], Path]:
    """The arrays of a checkpoint, or of a folder of results, by name, and the file or folder that they are from."""
    import numpy as np

    if source.is_dir():
        steps = sorted((int(m[1]), f) for f in source.iterdir() if (m := _CHECKPOINT.fullmatch(f.name)))
        if not steps:
            files = sorted(source.glob("*.npy"))
            if not files:
                raise StateError(f"{source} has no checkpoint (step-….npz) and no array (.npy)")
            return {f.stem: _load(f) for f in files}, source
        source = steps[-1][1]
    try:
        with zipfile.ZipFile(source) as archive:
            arrays = {}
            for entry in archive.namelist():
                if entry.endswith(".npy"):
                    with archive.open(entry) as f:
                        arrays[entry[: -len(".npy")]] = np.lib.format.read_array(f, allow_pickle=False)
    except FileNotFoundError:
        raise StateError(f"{source}: no such file") from None
    except (OSError, zipfile.BadZipFile, ValueError) as e:
        raise StateError(f"{source} is no checkpoint of dmir: {e}") from e
    return arrays, source


def _load(file: Path) -> Any:
    import numpy as np

    try:
        return np.load(file, allow_pickle=False)
    except (OSError, ValueError) as e:
        raise StateError(f"{file} is no array: {e}") from e


def value_name(path: str) -> str:
    """The name of a value of the dialect for a path in a structure: params['w'][0] is params.w.0."""
    name = ".".join(re.findall(r"[A-Za-z0-9_]+", re.sub(r"[^\x00-\x7f]", "_", path)))[:100]
    return f"v{name}" if name[:1].isdigit() and not name.isdigit() else name
