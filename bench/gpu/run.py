#!/usr/bin/env python3
"""Every workload on the local card: dmir beside its peers, checked first, timed in the same run.

usage: run.py --target h200 [--json FILE] [--budget 570] [--only REGEX] [--suite build/devicetest.test]
       run.py --device emulator [--only REGEX]      small sizes, no times: dmir's kernels in the emulator against PyTorch

Ends by itself within the budget, in seconds, and says what was left out. Exit status 1 where dmir gave a wrong result, did
not run, or fails the device suite; targets that are missed are no failure.
"""
import argparse
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import report
import workloads
from contest import Dmir, OutOfTime, Worker

ROOT = pathlib.Path(__file__).resolve().parents[2]
QUICK = ["dmir", "eager", "cublas", "triton", "jax"]
GUESS = {"make": 1.5, "dmir": 4, "eager": 1, "cublas": 1, "triton": 6, "jax": 5, "compile": 15, "max-autotune": 60}  # seconds, until some were seen


def plan(table, peers):
    """Pairs of workloads and contestants, the most worthwhile first."""
    out = []

    def add(chosen, names):
        for w in chosen:
            fit = [n for n in names if n in peers and (n != "cublas" or w.group == "gemm")]
            if fit:
                out.append((w, fit))

    for tier in (0, 1):
        add([w for w in table if w.tier == tier], QUICK + ["compile"])
    add([w for w in table if w.tune], ["max-autotune"])
    add([w for w in table if w.tier == 2], QUICK)
    add([w for w in table if w.tier == 2], ["compile"])
    return out


class Contest:
    def __init__(self, args, scratch):
        self.args, self.scratch, self.end = args, scratch, time.monotonic() + args.budget
        self.small = args.device == "emulator"
        device = "cpu" if self.small else "cuda"
        self.workers = {n: Worker(n, device, self.small) for n in ("eager", "compile", "triton", "jax") if n == "eager" or n in args.peers or (n == "compile" and "max-autotune" in args.peers)}
        self.dmir = Dmir(args.dmir, args.device, args.target, scratch)
        self.runs = 0 if self.small else args.runs
        self.seen, self.left_out, self.rows = {}, [], {}
        self.seed = int.from_bytes(os.urandom(4), "little")

    def left(self):
        return self.end - time.monotonic()

    def expected(self, what):
        seen = self.seen.get(what)
        return max(seen[-5:]) if seen else GUESS[what]

    def hello(self):
        """Starts all workers at once; who cannot start is out of the contest."""
        out = {}
        for w in self.workers.values():
            w.send(do="hello")
        for name, w in list(self.workers.items()):
            try:
                out[name] = w.answer(min(120, self.left()))
            except OutOfTime as e:
                out[name] = {"failed": str(e)}
            if "failed" in out[name]:
                print(f"no {name} here: {out[name]['failed']}")
                del self.workers[name]
        return out

    def worker(self, how):
        return self.workers.get({"cublas": "eager", "max-autotune": "compile"}.get(how, how))

    def one(self, w, names):
        """A workload with some contestants, as time allows."""
        names = [n for n in names if n == "dmir" or self.worker(n)]
        fit, cost = [], self.expected("make")
        for n in names:
            cost += self.expected(n)
            if cost > self.left():
                break
            fit.append(n)
        self.left_out += [(w.name, n) for n in names if n not in fit]
        if not fit:
            return
        w = w.at(self.small)
        row = self.rows.setdefault(w.name, report.row(w))
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.scratch))
        try:
            self.timed("make", lambda: self.must(self.workers["eager"].ask(self.left(), do="make", workload=w.name, folder=str(folder), seed=self.seed)))
            self.seed += 1
            for n in fit:
                row[n] = self.timed(n, lambda: self.contestant(w, folder, n))
                if n == "dmir" and not self.small:
                    row["clock"] = smi(["clocks.sm"]).get("clocks.sm")
        except OutOfTime as e:
            self.left_out += [(w.name, n) for n in fit if n not in row]
            print(f"{w.name}: {e}")
        except RuntimeError as e:
            self.left_out += [(w.name, n) for n in fit if n not in row]
            print(f"{w.name}: no inputs: {e}")
        finally:
            shutil.rmtree(folder)
        report.line(row, self.args.copy)

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
        """Runs one and has its results checked. A wrong one has no time."""
        limit = min(self.left(), 120)
        if name == "dmir":
            got = self.dmir.run(w, folder, self.runs, limit)
        else:
            got = self.worker(name).ask(limit, do="run", workload=w.name, folder=str(folder), how=name, runs=self.runs)
        files = got.pop("results", None)
        if files is None:
            return got
        verdict = self.workers["eager"].ask(self.left(), do="check", workload=w.name, results=files)
        got |= verdict
        if got.get("wrong") or got.get("failed"):
            got.pop("ns", None)
        for f in files:
            os.remove(f)
        return got

    def close(self):
        for w in self.workers.values():
            w.close()


def suite(binary, limit):
    """The device suite on the card."""
    start = time.monotonic()
    command = [str(pathlib.Path(binary).resolve()), "-test.run", "^TestDevices$/^cuda$", "-test.v", f"-test.timeout={int(limit)}s"]
    try:
        done = subprocess.run(command, cwd=ROOT / "compile" / "driver", capture_output=True, text=True, timeout=limit + 10)
        text, code = done.stdout + done.stderr, done.returncode
    except subprocess.TimeoutExpired as e:
        text, code = (e.stdout or b"").decode(errors="replace"), 1
    counts = {k: len(re.findall(rf"^ {{8}}--- {k}", text, re.M)) for k in ("PASS", "FAIL", "SKIP")}
    skipped = "--- SKIP: TestDevices" in text or counts["PASS"] + counts["FAIL"] == 0
    out = {"outcome": "failed" if code else "did not run" if skipped else "passed", "seconds": round(time.monotonic() - start, 1)} | counts
    if code or skipped:
        out["says"] = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith(("=== ", "---"))][:20]
    return out


def smi(what):
    command = ["nvidia-smi", f"--query-gpu={','.join(what)}", "--format=csv,noheader", "--id=0"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return dict(zip(what, (v.strip() for v in done.stdout.strip().split(",")))) if done.returncode == 0 else {}


def carried(folder, capability, target):
    """The folder of compiled workloads, if they are for this card and this target."""
    try:
        folder = pathlib.Path(folder or "")
        got, arch = (folder / "target").read_text().split()
    except (OSError, ValueError):
        return None
    return folder if re.sub("[a-z_]", "", arch) == capability and got == target else None


def chosen(only, small):
    """The workloads of that name; those that are the same at small sizes once."""
    out = [w for w in workloads.table() if re.search(only, w.name)]
    if small:
        out = list({(w.kind, w.mode, w.elem, *w.small.items()): w for w in reversed(out)}.values())[::-1]
    return out


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=["cuda", "emulator"], default="cuda")
    parser.add_argument("--dmir", default=str(ROOT / "build" / "dmir"))
    parser.add_argument("--compiled", help="folder of workloads that were compiled before; the others are compiled here")
    parser.add_argument("--suite", help="the device suite's binary")
    parser.add_argument("--target", default="h200")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--budget", type=float, default=570)
    parser.add_argument("--only", default="", help="workloads whose names match")
    parser.add_argument("--peers", default=",".join(QUICK + ["compile", "max-autotune"]))
    parser.add_argument("--json")
    args = parser.parse_args()
    args.peers = args.peers.split(",")
    args.copy = None
    return args


def main():
    args = arguments()
    began = time.monotonic()
    emulated = args.device == "emulator"
    result = {"date": datetime.date.today().isoformat(), "command": " ".join(["bench/gpu/run.py", *sys.argv[1:]]), "target": args.target}
    if args.suite and not emulated:
        result["suite"] = suite(args.suite, 120)
        print(f"device suite: {report.suite(result['suite'])}")
    memory = pathlib.Path("/dev/shm")
    roomy = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 8 << 30
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="dmir-gpu-", dir=memory if roomy else None))
    args.budget -= time.monotonic() - began
    contest = Contest(args, scratch)
    try:
        hello = contest.hello()
        if "eager" not in contest.workers:
            sys.exit("PyTorch is needed to check results")
        card = hello["eager"].get("card", "emulator")
        result |= {"card": card, "versions": {n: h["version"] for n, h in hello.items() if "version" in h}, "runs": contest.runs}
        if not emulated:
            args.copy = result["copy_bytes_per_s"] = hello["eager"]["copy_bytes_per_s"]
            contest.dmir.compiled = carried(args.compiled, hello["eager"]["capability"], args.target)
            result |= {"driver": smi(["driver_version"]).get("driver_version"), "clocks_before": smi(report.CLOCKS)}
        report.head(result)
        for w, names in plan(chosen(args.only, emulated), args.peers):
            contest.one(w, names)
        if not emulated:
            result["clocks_after"] = smi(report.CLOCKS)
    finally:
        contest.close()
        shutil.rmtree(scratch)
    rows = list(contest.rows.values())
    result |= {"workloads": rows, "left_out": contest.left_out, "seconds": round(time.monotonic() - began, 1)}
    result["targets"] = report.targets(rows, args.copy)
    report.end(result)
    if args.json:
        whole = pathlib.Path(args.json + ".new")
        whole.write_text(json.dumps(result, indent=1) + "\n")
        whole.rename(args.json)
        print(f"  → {args.json}")
    bad = [r["name"] for r in rows if "dmir" in r and (r["dmir"].get("wrong") or r["dmir"].get("failed"))]
    if bad or result.get("suite", {}).get("outcome") == "failed":
        sys.exit(1)


if __name__ == "__main__":
    main()
