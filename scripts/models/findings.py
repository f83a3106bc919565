"""Traces models and training steps as people write them, and counts in how many each rule of dmir lint finds something.

usage: findings.py jax|torch FOLDER DMIR [NAME...]

The table has the rules that speak of Python; FOLDER gets the traces and NAME.txt, the findings.
"""

import collections
import json
import os
import pathlib
import subprocess
import sys

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
here = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(here.parents[2] / "python"), str(here.parent)]


def main():
    framework, folder, binary, *names = sys.argv[1:]
    os.environ["DMIR"] = binary
    folder = pathlib.Path(folder)
    if framework == "jax":
        from steps_jax import STEPS
    else:
        from steps_torch import STEPS
    import dmir

    found = collections.defaultdict(list)
    for name in names or STEPS:
        f, args, *options = STEPS[name]()
        trace = dmir.trace(f, *args, name=name, folder=folder, **(options[0] if options else {}))
        run = subprocess.run([binary, "lint", "--output-format", "json", str(trace.path)], capture_output=True, text=True)
        try:
            findings = json.loads(run.stdout)["findings"]
        except (ValueError, KeyError):
            sys.exit(f"{name}: {run.stderr}")
        text = subprocess.run([binary, "lint", str(trace.path)], capture_output=True, text=True)
        (folder / f"{name}.txt").write_text(text.stdout + text.stderr)
        codes = collections.Counter(d["code"] for d in findings)
        print(name, dict(codes), file=sys.stderr, flush=True)
        for code in codes:
            found[code].append(name)
    print(f"| rule | of {len(names or STEPS)} | |\n|---|--:|---|")
    for code, models in sorted(found.items()):
        print(f"| {code} | {len(models)} | {', '.join(models)} |")


main()
