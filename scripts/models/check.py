"""Imports, runs, costs, plans and compiles what jax_models.py or torch_models.py has written: a table in Markdown.

usage: check.py FOLDER DMIR [NAME...]

Exit status 1 if a program cannot be imported or gives other results than its framework.
"""

import collections
import json
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np

# The results agree if they differ by at most this part of the largest element of a result. Results that are 0 but for
# rounding, as the gradient by the bias of an attention's keys, have no digits to compare.
TOLERANCE = 1e-3
NOTHING = 1e-7

PRIMITIVE = set(
    "abs add and broadcast clamp compare concatenate constant convert convolution copy cos cumsum div dynamic_slice einsum"
    " empty erf exp expm1 floor gather if iota kernel log log1p logistic map matmul max min mul neg not or pad pow reduce"
    " reduce_window rem reshape reverse rng round rsqrt scan scatter select select_and_scatter sign sin slice sort sqrt"
    " sub tanh top_k transpose while xor yield".split()
)


def run(dmir, *arguments):
    return subprocess.run([dmir, *map(str, arguments)], capture_output=True, text=True)


def raised(text):
    """The composites in the program, the most frequent first."""
    count = collections.Counter(re.findall(r"= dm\.(\w+)", text))
    found = [(n, name) for name, n in count.items() if name not in PRIMITIVE]
    return ", ".join(f"{n} {name}" for n, name in sorted(found, key=lambda f: (-f[0], f[1]))) or "none"


def names(text):
    """The names of the arguments and results of @main, as its files are called."""
    main = text[text.index("@main(") :]
    signature = main.split(" {\n")[0]
    returned = re.search(r"\n  return ([^:]*):", main).group(1)
    results = [name.strip().lstrip("%").replace("#", ".") for name in returned.split(",")]
    for i, attributes in enumerate(re.findall(r"tensor<[^>]*>(?: \{([^}]*)\})?", signature[signature.index("->") :])):
        if named := re.search(r'dm\.name = "([^"]*)"', attributes):
            results[i] = named.group(1)
    return re.findall(r"%([^\s:]+): ", signature), results


def difference(folder, name, got, results):
    worst, compared = 0.0, False
    for i, result in enumerate(results):
        want = np.load(folder / f"{name}.out" / f"{i}.npy").astype(np.float64)
        have = np.load(got / f"{result}.npy").astype(np.float64)
        if want.shape != have.shape:
            raise ValueError(f"result {i} has the shape {have.shape}, not {want.shape}")
        scale = np.abs(want).max(initial=0)
        if scale > NOTHING:
            compared = True
            worst = max(worst, float(np.abs(want - have).max(initial=0) / scale))
    if not compared:
        raise ValueError(f"all results of {name} are 0")
    return worst


def cost(dmir, file):
    report = json.loads(run(dmir, "cost", "--output-format", "json", file).stdout)
    return next(f for f in report["functions"] if f["name"] == "main")


def check(folder, dmir, name):
    source, work = next(f for f in folder.glob(f"{name}.*") if f.suffix in (".mlir", ".onnx")), folder / f"{name}.work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    framework = json.loads((folder / f"{name}.json").read_text())
    file, plan = work / "main.dmir", work / "plan.dmir"
    imported = run(dmir, "import", "-o", file, source)
    if imported.returncode:
        return None, imported.stderr
    text = file.read_text()
    arguments, results = names(text)
    given = [f"--input={a}={folder / f'{name}.in' / str(i)}.npy" for i, a in enumerate(arguments)]
    ran = run(dmir, "run", "--device", "reference", "--func", "main", *given, "--output", work / "got", file)
    if ran.returncode:
        return None, ran.stderr
    worst = difference(folder, name, work / "got", results)
    plan.write_text(run(dmir, "opt", "--emit", "schedule", "--func", "main", file).stdout)
    compiled = run(dmir, "compile", "--func", "main", "--arch", "sm_90a", "-o", work / "main.dmx", file)
    written, after = cost(dmir, file), cost(dmir, plan)
    row = {
        "program": name,
        "composites": raised(text),
        "difference": f"{worst:.0e}",
        "GFLOP": f"{written['flop'] / 1e9:.3g}",
        "by its own": f"{written['flop'] / framework['flop']:.3f}",
        "MB as written": f"{written['moved_bytes'] / 1e6:.4g}",
        "planned": f"{after['moved_bytes'] / 1e6:.4g}",
        "its own": f"{framework['bytes'] / 1e6:.4g}" if framework["bytes"] else "",
        "kernels": str(sum(op["name"] == "dm.kernel" for op in after["ops"])),
        "sm_90a": "yes" if compiled.returncode == 0 else "no",
    }
    if compiled.returncode:
        print(compiled.stderr, file=sys.stderr)
    return row, "" if worst <= TOLERANCE else f"{name} differs by {worst:.1e} of the largest element"


def main():
    folder, dmir = pathlib.Path(sys.argv[1]), sys.argv[2]
    programs = sys.argv[3:] or sorted(p.stem for p in folder.glob("*.json"))
    rows, failed = [], False
    for name in programs:
        row, error = check(folder, dmir, name)
        if error:
            print(f"{name}: {error}", file=sys.stderr)
            failed = True
        if row:
            rows.append(row)
            print(row, file=sys.stderr, flush=True)
    if rows:
        print("| " + " | ".join(rows[0]) + " |")
        print("|" + "|".join("---" if k in ("program", "composites") else "--:" for k in rows[0]) + "|")
        for row in rows:
            print("| " + " | ".join(map(str, row.values())) + " |")
    sys.exit(failed)


main()
