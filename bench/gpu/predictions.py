"""The times that dmir predicts for workloads: by the data sheet of a card, by published figures, and as dmir calibrate measured it."""
import concurrent.futures
import json
import os
import pathlib
import shutil
import statistics
import subprocess

DATA = pathlib.Path(__file__).resolve().parents[2] / "analysis" / "machine" / "data"
NAMES = {"datasheet": "data sheet", "published": "published", "calibrated": "calibrated"}


def datasheet(target):
    """Returns a dmir.toml with a machine whose kernels reach the peaks of the target's data sheet, or None."""
    try:
        import tomllib  # from Python 3.11 on

        data = tomllib.loads((DATA / f"{target}.toml").read_text())
    except (ImportError, OSError, ValueError):
        return None
    out = ["[machines.datasheet]", f'base = "{target}"', "[machines.datasheet.ceilings]", 'source = "data sheet"', f'bandwidth = {json.dumps(data["bandwidth"])}']
    for table in ("tensor_core", "vector"):
        out += [f"{table}.{k} = {json.dumps(v)}" for k, v in data.get(table, {}).items()]
    out += [f"paths.{k} = 1.0" for k in data.get("ceilings", {}).get("paths", {})]
    return "\n".join(out) + "\n"


def predict(binary, target, machine, table, folder, seconds):
    """Returns the predicted ns of the compiled workloads by name and way of predicting. machine is the file that dmir calibrate
    wrote, or None. What takes longer than the given time is left out."""
    folder.mkdir()
    ways = {"published": target}
    if text := datasheet(target):
        (folder / "dmir.toml").write_text(text)
        ways["datasheet"] = "datasheet"
    if machine:
        (folder / "config" / "dmir").mkdir(parents=True)
        shutil.copy(machine, folder / "config" / "dmir" / "local-cuda.toml")
        ways["calibrated"] = "local-cuda"
    environment = os.environ | {"XDG_CONFIG_HOME": str(folder / "config")}
    out = {}

    def one(w, way, name):
        got = subprocess.run([binary, "cost", "--planned", "--output-format", "json", "--target", name, folder / f"{w.name}.dmir"],
                             capture_output=True, text=True, timeout=seconds, env=environment)  # fmt: skip
        if got.returncode == 0:
            out.setdefault(w.name, {})[way] = sum(f["time_ns"] or 0 for f in json.loads(got.stdout)["functions"])

    pool = concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1)
    jobs = []
    for w in table:
        (folder / f"{w.name}.dmir").write_text(w.text())
        jobs += [pool.submit(one, w, way, name) for way, name in ways.items()]
    concurrent.futures.wait(jobs, timeout=seconds)
    pool.shutdown(wait=False, cancel_futures=True)
    return out


def summary(rows):
    """Prints each workload's times, and the errors of each way of predicting."""
    rows = [r for r in rows if r.get("predicted") and r.get("dmir", {}).get("ns")]
    ways = [w for w in NAMES if any(w in r["predicted"] for r in rows)]
    if not rows:
        return
    print(f"\n{'predicted and measured, µs':<34}{'measured':>10}" + "".join(f"{NAMES[w]:>20}" for w in ways))
    errors = {w: [] for w in ways}
    for r in rows:
        measured, cells = r["dmir"]["ns"], ""
        for w in ways:
            ns = r["predicted"].get(w)
            if ns:
                errors[w].append(abs(ns / measured - 1))
            cells += f"{f'{ns / 1e3:.1f} {ns / measured - 1:+.0%}' if ns else '':>20}"
        print(f"{r['name']:<34}{measured / 1e3:>10.1f}{cells}")
    for w in ways:
        within = sum(e <= 0.15 for e in errors[w])
        print(f"  {NAMES[w]:<12} median error {statistics.median(errors[w]):.0%}, {within} of {len(errors[w])} within 15 %")
