#!/usr/bin/env python3
"""Runs every workload on the local card with dmir and its peers: checks the results, then times them in the same run.

usage: run.py --target h200 [--out FOLDER] [--budget 570] [--passes first,triton] [--only REGEX] [--sound FILE] [--resume]
       run.py --device emulator [--only REGEX]      small sizes, no times: checks dmir's kernels in the emulator against PyTorch

Exits within the budget, in seconds, and lists the skipped workloads. Writes to the folder a line of JSON for each workload when
it ends (gpu.jsonl), the output of all processes (workers.log), and the complete result at the end (gpu.json). Without PyTorch
only dmir is timed, and the cases of the device suite, whose log --sound names, verify its kernels. With --resume it goes on after
what the folder has. Exits with status 1 if dmir gives a wrong result or does not run; a missed target is not a failure.
"""
import argparse
import datetime
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import predictions
import report
import workloads
from contest import Dmir, OutOfTime, Worker, lines

ROOT = pathlib.Path(__file__).resolve().parents[2]
PASSES = {  # each with its contestants, a filter of workloads, and its value
    "first": (["dmir", "eager", "cublas"], lambda w: True, 4),
    "compile": (["compile"], lambda w: True, 3),
    "triton": (["triton"], lambda w: True, 2),
    "tune": (["max-autotune"], lambda w: w.tune, 2),
    "jax": (["jax"], lambda w: True, 1),
}
# Expected seconds, until some are measured; and the seconds after which a contestant counts as hung.
GUESS = {"make": 1.5, "dmir": 4, "eager": 1, "cublas": 1, "triton": 6, "jax": 5, "compile": 15, "max-autotune": 60}
HANG = {"make": 20, "check": 20, "dmir": 20, "eager": 20, "cublas": 20, "triton": 20, "jax": 60, "compile": 90, "max-autotune": 150}
STRIKES = 2  # hangs and faults after which a contestant skips the rest of a group


def plan(table, peers, passes):
    """Returns triples of pass, workload and contestants, those of most value for each expected second first. A workload's value
    is its pass's times three to one by its tier."""
    out = []
    for name in passes:
        who, which, value = PASSES[name]
        for w in table:
            fit = [n for n in who if n in peers and (n != "cublas" or w.group == "gemm")]
            if fit and which(w):
                out.append((-value * (3 - w.tier) / (GUESS["make"] + sum(GUESS[n] for n in fit)), (name, w, fit)))
    return [x for _, x in sorted(out, key=lambda x: x[0])]


class Contest:
    def __init__(self, args, scratch, log):
        self.args, self.scratch, self.end = args, scratch, time.monotonic() + args.budget
        self.emulated = args.device == "emulator"
        self.small = args.small or self.emulated
        device = "cpu" if self.emulated else "cuda"
        wanted = {"eager"} | ({"compile"} if "max-autotune" in args.peers else set()) | set(args.peers)
        self.workers = {n: Worker(n, device, self.small, log) for n in ("eager", "compile", "triton", "jax") if n in wanted}
        self.dmir = Dmir(args.dmir, args.device, args.target, scratch, log)
        self.runs = 0 if self.emulated else args.runs
        self.seen, self.left_out, self.rows, self.strikes = {}, [], {}, {}
        self.sound = set()  # small_key of the workloads whose kernels pass the device suite
        self.seed = int.from_bytes(os.urandom(4), "little")

    def resume(self):
        """Takes the results that an earlier run wrote."""
        for line in report.read(self.args.lines) if self.args.lines else []:
            w = next((w for w in workloads.table() if w.name == line.get("workload")), None)
            if w is None:
                continue
            row = self.rows.setdefault(w.name, report.row(w.at(self.small)))
            for name in set(line) - {"pass", "workload"}:
                row[name] = got = line[name]
                if isinstance(got, dict) and (got.get("hung") or got.get("fault")):
                    self.strikes[name, w.group] = self.strikes.get((name, w.group), 0) + 1

    @property
    def checked(self):
        """Whether PyTorch, which creates the inputs and checks the results, is available."""
        return "eager" in self.workers

    def left(self):
        return self.end - time.monotonic()

    def expected(self, what):
        seen = self.seen.get(what)
        return max(seen[-5:]) if seen else GUESS[what]

    def limit(self, what):
        return max(1, min(self.left(), self.hang(what)))

    def hang(self, what):
        return HANG[what] * self.args.limit / HANG["dmir"]

    def hello(self):
        """Starts all workers concurrently and removes those that cannot start."""
        out = {}
        for name, w in list(self.workers.items()):
            try:
                w.send(do="hello")
            except OSError as e:
                out[name] = {"failed": str(e)}
        for name, w in list(self.workers.items()):
            try:
                out[name] = out.get(name) or w.answer(max(1, min(90, self.left() / 2)))
            except (OutOfTime, OSError) as e:
                out[name] = {"failed": str(e)}
            if "failed" in out[name]:
                print(f"{name} is not available: {out[name]['failed']}")
                w.close()
                del self.workers[name]
        return out

    def worker(self, how):
        return self.workers.get({"cublas": "eager", "max-autotune": "compile"}.get(how, how))

    def plays(self, name, w):
        return (name == "dmir" or self.worker(name)) and self.strikes.get((name, w.group), 0) < STRIKES

    def one(self, part, w, names):
        """Runs a workload with the given contestants, as far as time allows."""
        names = [n for n in names if n not in self.rows.get(w.name, {})]
        struck = [n for n in names if (n == "dmir" or self.worker(n)) and not self.plays(n, w)]
        names = [n for n in names if self.plays(n, w)]
        fit, cost = [], self.expected("make") if self.checked else 0
        for n in names:
            cost += self.expected(n)
            if cost > self.left():
                break
            fit.append(n)
        self.left_out += [(w.name, n) for n in names if n not in fit]
        w = w.at(self.small)
        row = self.rows.setdefault(w.name, report.row(w))
        for n in struck:
            row[n] = {"failed": f"skipped: {STRIKES} workloads of {w.group} hung or faulted", "left_alone": True}
        if not fit and not struck:
            return
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.scratch))
        try:
            if fit and self.checked:
                self.timed("make", lambda: self.must(self.workers["eager"].ask(self.limit("make"), do="make", workload=w.name, folder=str(folder), seed=self.seed)))
                self.seed += 1
            for n in fit:
                row[n] = self.timed(n, lambda: self.contestant(w, folder, n))
                if n == "dmir" and not self.emulated:
                    row["clock"] = smi(["clocks.sm"]).get("clocks.sm")
        except OutOfTime as e:
            self.left_out += [(w.name, n) for n in fit if n not in row]
            print(f"{w.name}: {e}")
        except RuntimeError as e:
            self.left_out += [(w.name, n) for n in fit if n not in row]
            print(f"{w.name}: no inputs: {e}")
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        lines(self.args.lines, {"pass": part, "workload": w.name} | {n: row[n] for n in fit + struck if n in row} | ({"clock": row["clock"]} if row.get("clock") else {}))
        report.line(row, self.args.copy, self.emulated)

    def timed(self, what, f):
        start = time.monotonic()
        try:
            return f()
        finally:
            self.seen.setdefault(what, []).append(time.monotonic() - start)

    @staticmethod
    def must(answer):
        if "failed" in answer:
            raise RuntimeError(answer["failed"])
        return answer

    def contestant(self, w, folder, name):
        """Runs a contestant and checks its results. Drops the time of a wrong result, and counts hangs and faults."""
        limit = self.limit(name)
        try:
            if name == "dmir":
                got = self.play(w, folder, limit)
            else:
                got = self.worker(name).ask(limit, do="run", workload=w.name, folder=str(folder), how=name, runs=self.runs)
        except OutOfTime as e:
            got = {"failed": str(e), "hung": limit >= self.hang(name)}
        if got.get("hung") or got.get("fault"):
            key = (name, w.group)
            self.strikes[key] = self.strikes.get(key, 0) + 1
        files = got.pop("results", None)
        if files is None:
            return got
        try:
            verdict = self.workers["eager"].ask(self.limit("check"), do="check", workload=w.name, results=files)
        except OutOfTime as e:
            verdict = {"wrong": None, "unchecked": str(e)}
        if "failed" in verdict:
            verdict = {"wrong": None, "unchecked": verdict["failed"]}
        got |= verdict
        if got.get("wrong"):
            got.pop("ns", None)
        for f in files:
            os.remove(f)
        return got

    def play(self, w, folder, limit):
        """Runs dmir on PyTorch's inputs or, without PyTorch, on random ones."""
        if self.checked:
            inputs = {i.name: folder / f"{i.name}.npy" for i in w.inputs()}
            return self.dmir.run(w, inputs, folder, self.runs, limit, self.left())
        got = self.dmir.run(w, workloads.labels(w, folder), None, self.runs, limit, self.left())
        if "failed" not in got:
            got["checked_small"] = small_key(w) in self.sound
        return got

    def close(self):
        for w in self.workers.values():
            w.close()


def small_key(w):
    """Returns a key that is equal for workloads with the same program at small sizes."""
    return (w.kind, w.mode, w.elem, *w.small.items())


def passed(log):
    """Returns the workloads whose cases at small sizes passed, by the log of the device suite."""
    return {r["case"].removeprefix("WorkloadCases_") for r in report.read(log) if r.get("class") == "workloads" and r["outcome"] == "passed"}


def smi(what):
    command = ["nvidia-smi", f"--query-gpu={','.join(what)}", "--format=csv,noheader", "--id=0"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return dict(zip(what, (v.strip() for v in done.stdout.strip().split(",")))) if done.returncode == 0 else {}


def carried(folder, capability, target):
    """Returns the folder of precompiled workloads if they match the card and the target, else None."""
    try:
        folder = pathlib.Path(folder or "")
        got, arch = (folder / "target").read_text().split()
    except (OSError, ValueError):
        return None
    return folder if re.sub("[a-z_]", "", arch) == capability and got == target else None


def chosen(only, small):
    """Returns the workloads whose name matches; at small sizes, equal ones only once."""
    out = [w for w in workloads.table() if re.search(only, w.name)]
    if small:
        out = list({small_key(w): w for w in reversed(out)}.values())[::-1]
    return out


def warm(contest, table):
    """Compiles the workloads with torch.compile, so that its caches on disk have them when they are timed."""
    contest.hello()
    for w in table if contest.checked and "compile" in contest.workers else []:
        folder = pathlib.Path(tempfile.mkdtemp(dir=contest.scratch))
        try:
            contest.must(contest.workers["eager"].ask(contest.limit("make"), do="make", workload=w.name, folder=str(folder), seed=contest.seed))
            contest.workers["compile"].ask(contest.limit("compile"), do="run", workload=w.name, folder=str(folder), how="compile", runs=0)
            print(f"compiled ahead: {w.name}", flush=True)
        except (OutOfTime, RuntimeError) as e:
            print(f"not compiled ahead: {w.name}: {e}", flush=True)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def arguments(given=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=["cuda", "emulator"], default="cuda")
    parser.add_argument("--dmir", default=str(ROOT / "build" / "dmir"))
    parser.add_argument("--compiled", help="folder of precompiled workloads; the others are compiled here")
    parser.add_argument("--sound", type=pathlib.Path, help="the log of the device suite")
    parser.add_argument("--warm", action="store_true", help="measure nothing: fill the caches of torch.compile")
    parser.add_argument("--resume", action="store_true", help="go on after the results in the folder")
    parser.add_argument("--target", default="h200")
    parser.add_argument("--machine", type=pathlib.Path, help="the machine that dmir calibrate --device cuda wrote")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--budget", type=float, default=570)
    parser.add_argument("--limit", type=float, default=HANG["dmir"], help="seconds after which a program counts as hung; scales the limits of the peers")
    parser.add_argument("--small", action="store_true", help="small sizes on a card too, as a rehearsal")
    parser.add_argument("--only", default="", help="workloads whose names match")
    parser.add_argument("--peers", default=",".join(["dmir", "eager", "cublas", "triton", "jax", "compile", "max-autotune"]))
    parser.add_argument("--passes", default=",".join(PASSES), help="passes to run: " + ", ".join(PASSES))
    parser.add_argument("--out", type=pathlib.Path, help="folder for lines, logs and the result")
    args = parser.parse_args(given)
    args.peers, args.passes = args.peers.split(","), args.passes.split(",")
    if unknown := [p for p in args.passes if p not in PASSES]:
        parser.error(f"unknown pass {unknown[0]}; the passes are {', '.join(PASSES)}")
    args.copy = None
    return args


def main():
    args = arguments()
    began = time.monotonic()
    end = began + args.budget
    emulated = args.device == "emulator"
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # run the finally clause, which writes the results so far
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="dmir-gpu-", dir=roomy()))
    if args.out is None:
        args.out, kept = scratch, False
    else:
        args.out.mkdir(parents=True, exist_ok=True)
        kept = True
    args.lines = args.out / "gpu.jsonl" if kept else None
    result = {"date": datetime.date.today().isoformat(), "command": " ".join(["bench/gpu/run.py", *sys.argv[1:]]), "target": args.target}
    log = open(args.out / "workers.log", "a", buffering=1)
    contest, expected = None, {}
    if args.warm:
        contest = Contest(args, scratch, log)
        try:
            warm(contest, [w for _, w, _ in plan(chosen(args.only, contest.small), ["compile"], ["compile"])])
        finally:
            contest.close()
            log.close()
            shutil.rmtree(scratch, ignore_errors=True)
        return
    try:
        contest = Contest(args, scratch, log)
        sound = passed(args.sound) if args.sound else set()
        contest.sound = {small_key(w) for w in workloads.table() if w.name in sound}
        if args.resume:
            contest.resume()
        hello = contest.hello()
        if emulated and not contest.checked:
            sys.exit("PyTorch is needed to check results")
        eager = hello.get("eager", {})
        result |= {"card": eager.get("card") or (args.device if emulated else smi(["name"]).get("name", "unknown card")),
                   "versions": {n: h["version"] for n, h in hello.items() if "version" in h}, "runs": contest.runs}  # fmt: skip
        if not emulated:
            if not contest.checked:
                print("PyTorch is not available: only dmir is timed, on random inputs")
            args.copy = result["copy_bytes_per_s"] = eager.get("copy_bytes_per_s")
            capability = eager.get("capability") or smi(["compute_cap"]).get("compute_cap", "").replace(".", "")
            contest.dmir.compiled = carried(args.compiled, capability, args.target)
            result |= {"driver": smi(["driver_version"]).get("driver_version"), "clocks_before": smi(report.CLOCKS)}
            expected = predictions.predict(contest.dmir.binary, args.target, args.machine, [w.at(contest.small) for w in chosen(args.only, contest.small)], scratch / "predictions", min(25, (end - time.monotonic()) / 8))
        lines(args.lines, result)
        report.head(result, emulated)
        for part, w, names in plan(chosen(args.only, contest.small), args.peers, args.passes):
            contest.one(part, w, names)
        if not emulated:
            result["clocks_after"] = smi(report.CLOCKS)
    finally:
        if contest:
            contest.close()
            rows = [r for r in contest.rows.values() if any(n in r for n in args.peers)]
            for r in rows:
                r["predicted"] = expected.get(r["name"], {})
            result |= {"workloads": rows, "left_out": contest.left_out, "seconds": round(time.monotonic() - began, 1)}
            result["targets"] = report.targets(rows, args.copy)
            report.end(result, emulated)
            if kept:
                whole = args.out / "gpu.json.new"
                whole.write_text(json.dumps(result, indent=1) + "\n")
                whole.rename(args.out / "gpu.json")
                print(f"  → {args.out}/gpu.json")
            lines(args.lines, {"ended": "gpu", "seconds": result["seconds"]})
        log.close()
        shutil.rmtree(scratch, ignore_errors=True)
    bad = [r["name"] for r in rows if "dmir" in r and (r["dmir"].get("wrong") or r["dmir"].get("failed"))]
    if bad:
        sys.exit(1)


def roomy():
    """Returns a folder in memory if it has enough space and no other is wanted, else None."""
    if os.environ.get("TMPDIR"):
        return None
    memory = pathlib.Path("/dev/shm")
    return memory if memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 8 << 30 else None


if __name__ == "__main__":
    main()
