#!/usr/bin/env python3
"""One budget of minutes on a card: the steps in order, each in processes of its own with a limit of its own.

usage: plan.py --minutes N --archive FILE|--dmir FILE --target NAME --out FOLDER [--python FILE] [--seconds STEP=S,...]
               [--only REGEX] [--small] [--runs N] [--limit S] [--peers LIST]
       plan.py --table      prints the steps and their seconds, as bench/README.md has them

A step writes its lines as it goes: plan.jsonl has one when a step begins and one when it ends, the other files are named in the
table. What it does not use is left to later steps; what fails, faults or hangs ends that step alone. If a smoke program or the suite
fails, the search for the fault comes next, and the rest after it. Needs only Python's standard library.
"""
import argparse
import concurrent.futures
import ctypes
import dataclasses
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import report
from contest import lines
from report import read

HERE = pathlib.Path(__file__).resolve().parent
MINUTES = 12  # what the seconds of the table add up to
SANITIZED = [r"WorkloadCases_gemm_.*", r"WorkloadCases_attention_l\d+_both", r"WorkloadCases_layer_norm_\d+_backward"]  # the first case of each
# The workloads that are measured first, beside cuBLAS, eager and torch.compile: with the step of GPT-2 there are twelve.
FIRST = [
    "bert_b8_l512_both", "bert_b8_l512_forward", "gemm_bert_up_f16", "gemm_llama_up_bf16", "silu_gate_llama_up_bf16", "attention_l4096_forward",
    "attention_l4096_both", "attention_causal_l2048_both", "softmax_1024_forward", "softmax_262144_forward", "layer_norm_1024_backward",
]  # fmt: skip
LANES = 4  # classes of the suite at a time: the host prepares inputs while the card computes
CALIBRATED = "card.toml"


@dataclasses.dataclass(frozen=True)
class Step:
    name: str
    seconds: int  # its limit, with a budget of MINUTES
    expected: int  # what it should take
    what: str
    needs: str
    writes: str
    more: bool = False  # takes what earlier steps have left
    fixed: bool = False  # needs its seconds whatever the minutes are


STEPS = [
    Step("unpack", 20, 8, "the archive, in the order of the steps; the Python with PyTorch is found", "", "log.txt", fixed=True),
    Step("smoke", 20, 12, "a copy, mma, TMA, wgmma and a captured graph, one process each", "", "smoke.jsonl"),
    Step("calibrate", 60, 50, "the constants of the card: `dmir calibrate`", "NVRTC or nvcc", "card.toml, calibrate.txt"),
    Step("suite", 60, 40, "the device suite, one process for each class", "", "suite.jsonl", True),
    Step("seed", 50, 40, "the same with inputs of another seed", "", "suite-seed.jsonl", True),
    Step("sanitizer", 40, 30, "three kernels under compute-sanitizer", "compute-sanitizer", "sanitizer.jsonl"),
    Step("find", 60, 0, "where a smoke program or a case fails: that case alone, under compute-sanitizer; else nothing", "", "find.jsonl"),
    Step("measure", 190, 170, "eleven workloads beside cuBLAS, eager and torch.compile", "peers: PyTorch", "gpu.jsonl, gpu.json", True),
    Step("gpt2", 50, 35, "a training step of GPT-2 by kernel, beside eager and torch.compile", "peers: PyTorch", "gpt2.json"),
    Step("rest", 160, 160, "the other workloads and peers, most value for each second first", "peers: PyTorch, Triton, JAX", "gpu.jsonl, gpu.json", True),
    Step("report", 10, 2, "the table of all results", "", "report.md", fixed=True),
]
assert sum(s.seconds for s in STEPS) == 60 * MINUTES

UNTIMED = ("suite", "seed", "sanitizer", "find")  # beside these torch.compile may fill its caches
SEARCHED = ("suite", "seed", "sanitizer")  # where something failed these come before all else: they show how far it reaches
PASSED, RED, SKIPPED, FAILED, HUNG = "passed", "red", "skipped", "failed", "hung"
BAD = (RED, FAILED, HUNG)
EXTRACT = """
import os, sys, tarfile
with tarfile.open(sys.argv[1], "r|*") as t:
    for m in t:
        path = os.path.join(sys.argv[2], m.name)
        if not os.path.abspath(path).startswith(os.path.abspath(sys.argv[2]) + os.sep) or not (m.isdir() or m.isreg()):
            sys.exit(f"{m.name} does not belong into the archive")
        if m.isdir():
            os.makedirs(path, exist_ok=True)
            continue
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + ".part", "wb") as f:
            src = t.extractfile(m)
            while block := src.read(1 << 20):
                f.write(block)
        os.chmod(path + ".part", m.mode)
        os.rename(path + ".part", path)
"""


class Ended(Exception):
    """A step ends with this outcome."""

    def __init__(self, outcome, why=""):
        super().__init__(why)
        self.outcome, self.why = outcome, why


class Plan:
    """The steps that are left, and what is known so far."""

    def __init__(self, args, scratch, clock=time.monotonic):
        self.args, self.scratch, self.clock = args, scratch, clock
        self.began = clock()
        self.end = self.began + 60 * args.minutes
        self.left = list(STEPS)
        self.done = []  # of each step: name, limit, expected, used, outcome, why
        self.gpu = scratch / "gpu"  # where the archive is unpacked
        self.dmir = pathlib.Path(args.dmir) if args.dmir else self.gpu / "dmir"
        self.python = args.python or sys.executable
        self.result = {"smoke": {}, "suites": {}, "sanitizer": {}, "find": {}}
        self.failing = []  # files of cases for find
        self.seen = 0  # of these, what find has had
        self.finding = 0  # the seconds that it took
        self.lock = threading.Lock()
        self.processes = set()  # that run
        self.warming = None  # the one that compiles ahead

    def seconds(self, step):
        own = self.args.seconds.get(step.name, step.seconds) * self.scale(step)
        return max(0, own - self.finding) if step.name == "find" else own

    def scale(self, step):
        fixed = sum(self.args.seconds.get(s.name, s.seconds) for s in STEPS if s.fixed)
        return 1 if step.fixed else max(0, (60 * self.args.minutes - fixed) / (60 * MINUTES - fixed))

    def limit(self, step):
        """What the step may take: what is its own, and, of those that take more, what is left if later steps keep theirs."""
        free = self.end - self.clock() - sum(self.seconds(s) for s in self.left)
        return max(0, free if step.more else min(free, self.seconds(step)))

    def run(self):
        while self.left:
            step = self.left.pop(0)
            if step.name == "find" and self.seen == len(self.failing):
                if not any(r["step"] == "find" for r in self.done):
                    self.note(step, 0, 0, Ended(SKIPPED, "nothing failed"))
                continue
            if self.args.seconds.get(step.name) == 0:
                self.note(step, 0, 0, Ended(SKIPPED, "its limit is 0"))
                continue
            if step.name not in UNTIMED:
                self.cool()
            limit, start = self.limit(step), self.clock()
            print(f"\n== {step.name}: {step.what} (at most {limit:.0f} s, {self.end - start:.0f} s left)", flush=True)
            lines(self.args.out / "plan.jsonl", {"begin": step.name, "limit": round(limit, 1)})
            self.until = start + limit
            try:
                ended = Ended(FAILED, "no time is left") if limit < 1e-3 else getattr(self, step.name)() or Ended(PASSED)
            except Ended as e:
                ended = e
            except Exception as e:  # of this step alone
                ended = Ended(FAILED, f"{type(e).__name__}: {e}")
            self.note(step, limit, self.clock() - start, ended)
            if step.name == "find":
                self.finding += self.clock() - start
                self.left = [s for s in self.left if s.name in SEARCHED] + [step] + [s for s in self.left if s.name not in SEARCHED]
            elif self.seen < len(self.failing):
                self.left.sort(key=lambda s: (s.name != "find", s.name not in SEARCHED))

    def note(self, step, limit, used, ended):
        row = {"step": step.name, "limit": round(limit, 1), "expected": round(step.expected * self.scale(step), 1), "used": round(used, 1), "outcome": ended.outcome, "why": ended.why}
        self.done.append(row)
        lines(self.args.out / "plan.jsonl", row)
        print(f"   {step.name} {ended.outcome} in {used:.1f} s, {row['expected']:g} s expected{': ' if ended.why else ''}{ended.why}", flush=True)

    # The processes of a step.

    def call(self, command, limit=None, log=None, beyond=False):
        """Runs a process within the step's time, or the limit if that is less, and returns its status, None if it took longer. Its
        output goes to the log. A process whose kernel hangs may not end at once, and nothing waits for it. One that may go beyond
        its limit goes on beside the next steps."""
        limit = min(limit or self.until, self.until - self.clock())
        if limit <= 0:
            return None
        grace = min(2, limit / 10)
        out = open(log, "a") if log else None
        try:
            process = subprocess.Popen([str(c) for c in command], stdout=out, stderr=subprocess.STDOUT if out else None, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=dies_with_this)
        finally:
            if out:
                out.close()
        self.processes.add(process)
        try:
            status = process.wait(limit - grace)
        except subprocess.TimeoutExpired:
            if beyond:
                return None
            self.stop(process, signal.SIGTERM, grace / 2)
            self.stop(process, signal.SIGKILL, grace / 2)
            status = None
        self.processes.discard(process)
        return status

    @staticmethod
    def stop(process, how=signal.SIGKILL, wait=0.0):
        """Ends a process and those that it has started. It waits no longer than that for a process whose kernel hangs."""
        try:
            os.killpg(process.pid, how)
            process.wait(wait)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass

    def suited(self, cases, log, limit, *more, under=()):
        """Runs cases in a process of the suite, which appends its reports to the log."""
        run = min(self.args.limit, max(1, limit * 0.6))
        return self.call([*under, self.gpu / "suite", "-cases", cases, "-device", "cuda", "-log", log, "-limit", f"{run:.3g}s", "-budget", f"{max(0.5, limit - 1):.3g}s", *map(str, more)], limit)

    def alone(self, path, log, limit, *more, under=()):
        """Runs one case and returns its report with the status of the process."""
        before = len(read(log))
        status = self.suited(path, log, limit, *more, under=under)
        got = read(log)[before:]
        for row in got:
            if "case" in row:
                return row | {"status": status}
        why = next((r["failed"] for r in got if r.get("failed")), "the process did not end" if status is None else f"status {status}")
        row = {"case": path.stem, "outcome": HUNG if status is None else FAILED, "why": why, "status": status}
        lines(log, row)
        return row

    # The steps. Each returns None if it passed, or raises Ended.

    def unpack(self):
        late = None
        if self.args.archive:
            status = self.call([sys.executable, "-W", "ignore", "-c", EXTRACT, self.args.archive, self.scratch], 0.7 * (self.until - self.clock()), beyond=True)
            if status not in (0, None) and not self.dmir.exists():  # a Python without lzma
                status = self.call(["tar", "-xf", self.args.archive, "-C", self.scratch])
            if not self.dmir.exists():
                raise Ended(HUNG if status is None else FAILED, "the archive was not unpacked")
            if status != 0:
                late = Ended(HUNG if status is None else FAILED, "a part of the archive is unpacked, and the steps use what is there when they begin")
        if not self.args.python:
            self.python = found_python(self.until - self.clock()) or sys.executable
        print(f"   Python of the peers: {self.python}")
        self.call([self.dmir, "doctor"], 10)
        if late:
            raise late

    def smoke(self):
        cases = sorted((self.gpu / "cases" / "smoke").glob("*.case"), key=lambda p: SMOKE.index(short(p)))
        if not cases:
            raise Ended(SKIPPED, "the archive has no smoke programs")
        each = (self.until - self.clock()) / len(cases)
        for path in cases:
            got = self.alone(path, self.args.out / "smoke.jsonl", each, *(["-runs", "3"] if short(path) == "graph" else []))
            self.result["smoke"][short(path)] = got
            print(f"   {short(path)}: {got['outcome']} {got.get('why', '')}", flush=True)
            if got["outcome"] != "passed":
                self.failing.append(path)
        bad = [n for n, r in self.result["smoke"].items() if r["outcome"] != "passed"]
        if bad:
            raise Ended(RED, ", ".join(f"{n} {self.result['smoke'][n]['outcome']}" for n in bad))

    def calibrate(self):
        log = self.args.out / "calibrate.txt"
        status = self.call([self.dmir, "calibrate", "--device", "cuda", "--base", self.args.target, "--timeout", f"{0.9 * (self.until - self.clock()):.0f}s", "-o", self.args.out / CALIBRATED], log=log)
        text = log.read_text(errors="replace") if log.exists() else ""
        print(text, end="", flush=True)
        if status is None:
            raise Ended(HUNG, "it did not end; predictions are those of the data sheet and of published figures")
        if status != 0:
            last = (text.strip().splitlines() or [f"status {status}"])[0]
            raise Ended(SKIPPED if "NVRTC" in text else FAILED, last)
        if "not measured" in text:
            raise Ended(FAILED, "a part was not measured, as it says above")

    def warm(self):
        """Starts to compile the first workloads with torch.compile, on cores that the suite leaves idle."""
        command = [self.python, HERE / "run.py", "--warm", "--peers", "dmir,compile", "--only", self.only(), "--dmir", self.dmir, "--budget", f"{self.end - self.clock():.0f}", *(["--small"] if self.args.small else [])]
        with open(self.args.out / "warm.txt", "a") as log:
            self.warming = subprocess.Popen([str(c) for c in command], stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=dies_with_this)
        self.processes.add(self.warming)

    def cool(self):
        """Ends that."""
        if self.warming:
            self.stop(self.warming, wait=2)
            self.processes.discard(self.warming)
            self.warming = None

    def only(self):
        return self.args.only or f"^({'|'.join(FIRST)})$"

    def suite(self):
        if not self.failing:
            self.warm()
        return self.classes("suite.jsonl", 0)

    def seed(self):
        return self.classes("suite-seed.jsonl", 1)

    def classes(self, name, which):
        """Runs each class of cases in a process, several at a time, those with most cases first. Cases that need most of the card's
        memory run after them, alone."""
        log, late = self.args.out / name, []
        sizes = {p: len(list(p.glob("*.case"))) for p in (self.gpu / "cases").glob("*") if p.is_dir() and p.name != "smoke"}
        if not sizes:
            raise Ended(SKIPPED, "the archive has no cases")
        apart = [p for p in sizes if p.name == "wide"]
        queue = sorted((p for p in sizes if p not in apart), key=lambda p: (-sizes[p], p.name))
        until = self.until - 0.15 * (self.until - self.clock()) if apart else self.until

        def one(folder, share):
            status = self.suited(folder, log, share, "-set", which)
            if status not in (0, 1):
                late.append(f"{folder.name}: {'did not end' if status is None else f'status {status}'}")

        def lane():
            while True:
                with self.lock:
                    if not queue:
                        return
                    waiting = sum(sizes[p] for p in queue)
                    folder = queue.pop(0)
                left = until - self.clock()
                one(folder, min(left, max(left / 6, 2 * LANES * left * sizes[folder] / waiting)))

        with concurrent.futures.ThreadPoolExecutor(LANES) as pool:
            jobs = [pool.submit(lane) for _ in range(LANES)]
            try:
                for job in jobs:
                    job.result()
            except BaseException:
                queue.clear()
                for process in list(self.processes):
                    self.stop(process)
                raise
        for folder in apart:
            one(folder, self.until - self.clock())
        counts = report.outcomes(read(log))
        self.result["suites"][name] = counts
        bad = [r for r in read(log) if r.get("outcome") in ("wrong", "failed", "faulted", "hung")]
        bad.sort(key=lambda r: ("faulted", "hung", "failed", "wrong").index(r["outcome"]))
        known = {p.stem for p in self.failing}
        self.failing += [self.gpu / "cases" / r["class"] / (r["case"] + ".case") for r in bad if r["case"] not in known][:6]
        unavailable = [r["failed"] for r in read(log) if r.get("failed")]
        if unavailable:
            raise Ended(RED, unavailable[0])
        if bad or late:
            raise Ended(RED, "; ".join([f"{len(bad)} cases: {bad[0]['case']} {bad[0]['outcome']}"] * bool(bad) + late))
        if not counts:
            raise Ended(SKIPPED, "no case has a second set of inputs" if which else "no case ran")
        total, left = sum(sum(c.values()) for c in counts.values()), sum(c.get("skipped", 0) for c in counts.values())
        raise Ended(PASSED, f"{total - left} of {total} cases ran" if left else f"{total} cases")

    def sanitizer(self):
        tool = sanitizer()
        if not tool:
            raise Ended(SKIPPED, "compute-sanitizer is not installed")
        cases = sorted((self.gpu / "cases").glob("*/*.case"))
        chosen = [next((p for p in cases if re.fullmatch(name, p.stem)), None) for name in SANITIZED]
        chosen = [p for p in chosen if p]
        if not chosen:
            raise Ended(SKIPPED, "the archive has none of its cases")
        bad = []
        for i, path in enumerate(chosen):
            outcome = self.checked(tool, "memcheck", path, (self.until - self.clock()) / (len(chosen) - i), "sanitizer")
            self.result["sanitizer"][path.stem] = outcome
            if outcome["outcome"] != "clean":
                bad.append(f"{path.stem}: {outcome['outcome']}")
                if outcome["outcome"] == "errors":
                    self.failing.append(path)
        if bad:
            raise Ended(RED if any(r["outcome"] == "errors" for r in self.result["sanitizer"].values()) else FAILED, ", ".join(bad))

    def checked(self, tool, kind, path, limit, name):
        """Runs a case under a tool of compute-sanitizer, which sees the process that the suite starts for it only as it is told."""
        log = f"{name}-{path.stem}-{kind}-"
        under = [tool, "--target-processes", "all", "--tool", kind, "--error-exitcode", "77", "--print-limit", "20", "--log-file", self.scratch / (log + "%p.txt")]
        got = self.alone(path, self.scratch / "checked.jsonl", limit, under=under)
        text = [t for p in sorted(self.scratch.glob(log + "*.txt")) for t in p.read_text(errors="replace").splitlines()]
        bad = got["status"] == 77 or any(re.search(r"ERROR SUMMARY: [1-9]", t) for t in text)  # the suite's own status has precedence
        errors = [t for t in text if t.strip("= ") and "COMPUTE-SANITIZER" not in t and "ERROR SUMMARY" not in t]
        ran = "seconds" in got  # a case's report, and not one of why there is none
        outcome = "errors" if bad else "did not end" if got["status"] is None else "clean" if ran else "did not run"
        row = {"case": path.stem, "tool": kind, "outcome": outcome, "run": got["outcome"], "text": errors[:20]}
        lines(self.args.out / f"{name}.jsonl", row)
        print(f"   {path.stem} under {kind}: {outcome}" + "".join("\n     " + e for e in errors[:6]), flush=True)
        return row

    def find(self):
        """Runs what failed alone, and under the tools that show why."""
        cases, self.seen = self.failing[self.seen :], len(self.failing)
        tool, found = sanitizer(), []
        for i, path in enumerate(cases):
            each = (self.until - self.clock()) / (len(cases) - i)
            got = self.alone(path, self.args.out / "find.jsonl", each / 3 if tool else each)
            row = {"alone": got["outcome"], "why": got.get("why", "")}
            if tool:
                for kind in {"wrong": ("memcheck", "racecheck"), HUNG: ("synccheck",)}.get(got["outcome"], ("memcheck", "synccheck")):
                    row[kind] = self.checked(tool, kind, path, each / 3, "find")["outcome"]
            self.result["find"][path.stem] = row
            found.append(f"{path.stem} alone: {got['outcome']}")
        raise Ended(RED, "; ".join(found))

    def measured(self, *more):
        machine, left = self.args.out / CALIBRATED, self.until - self.clock()
        budget = max(0.8 * left, left - 8)  # the rest is for its end
        command = [self.python, HERE / "run.py", "--dmir", self.dmir, "--target", self.args.target, "--out", self.args.out, "--budget", f"{budget:.1f}",
                   "--limit", f"{self.args.limit:g}", "--runs", self.args.runs, "--resume", *more]  # fmt: skip
        command += ["--compiled", self.gpu / "workloads" / self.args.target] if self.args.archive else []
        command += ["--sound", self.args.out / "suite.jsonl", *(["--machine", machine] if machine.exists() else []), *(["--small"] if self.args.small else [])]
        status = self.call(command)
        if status is None:
            raise Ended(HUNG, "what was measured until then is in gpu.jsonl")
        if status != 0:
            bad = report.bad(read(self.args.out / "gpu.jsonl"))
            raise Ended(RED if bad else FAILED, f"dmir's results: {', '.join(bad[:4])}" if bad else f"status {status}")

    def measure(self):
        self.measured("--peers", "dmir,eager,cublas,compile", "--only", self.only())

    def gpt2(self):
        program = self.gpu / "workloads" / self.args.target / "gpt2_step.dmx"
        if not program.exists():
            raise Ended(SKIPPED, "the archive has no gpt2_step.dmx for " + self.args.target)
        budget = f"{self.until - self.clock() - 2:.1f}"
        status = self.call([self.python, HERE / "gpt2.py", "--dmir", self.dmir, "--program", program, "--out", self.args.out / "gpt2.json", "--runs", self.args.runs, "--budget", budget])
        if status is None:
            raise Ended(HUNG)
        if status != 0:
            raise Ended(FAILED, f"status {status}")

    def rest(self):
        self.measured("--peers", self.args.peers, "--only", self.args.only)

    def report(self):
        (self.args.out / "report.md").write_text(report.markdown(self.args, self.done, self.result, self.args.out))
        (self.args.out / "plan.json").write_text(json.dumps({"steps": self.done} | self.result, indent=1) + "\n")

    def status(self):
        return 1 if any(r["outcome"] in BAD for r in self.done) else 0


try:
    prctl = ctypes.CDLL(None).prctl
except (OSError, AttributeError):  # not Linux
    prctl = None


def dies_with_this():
    """Ends the calling process when this one is killed, so that none is left on the card."""
    if prctl:
        prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


SMOKE = ["copy", "mma", "tma", "wgmma", "graph"]


def short(path):
    return path.stem.rpartition("-")[2]


def sanitizer():
    """Returns the path of compute-sanitizer, if it is installed."""
    places = [*pathlib.Path("/usr/local").glob("cuda*/bin"), *pathlib.Path("/usr/local").glob("cuda*/compute-sanitizer"), *pathlib.Path("/opt").glob("cuda*/bin")]
    return shutil.which("compute-sanitizer", path=os.pathsep.join([os.environ.get("PATH", ""), *map(str, places)]))


PROBE = "import importlib.util as u, sys; print(sys.version_info >= (3, 9), u.find_spec('torch') is not None)"


def found_python(seconds):
    """Returns the first Python with PyTorch, or else the first one that runs."""
    names = [os.path.join(p, n) for p in os.environ.get("PATH", "").split(os.pathsep) for n in ("python3", "python")]
    for base in (os.environ.get("VIRTUAL_ENV"), os.environ.get("CONDA_PREFIX")):
        names[:0] = [os.path.join(base, "bin", "python")] if base else []
    for pattern in ("usr/bin/python3", "usr/local/bin/python3", "opt/conda/bin/python", "opt/conda/envs/*/bin/python", "opt/*/bin/python3", "venv/bin/python", "root/*conda*/bin/python",
                    "home/*/*conda*/bin/python", "workspace/*/bin/python", "root/.venv/bin/python", "root/venv/bin/python"):  # fmt: skip
        names += sorted(map(str, pathlib.Path("/").glob(pattern)))
    first, end = None, time.monotonic() + max(0, seconds)
    for name in dict.fromkeys(names):
        if time.monotonic() > end:
            break
        if not os.access(name, os.X_OK):
            continue
        try:
            got = subprocess.run([name, "-c", PROBE], capture_output=True, text=True, timeout=5, stdin=subprocess.DEVNULL).stdout.split()
        except (OSError, subprocess.TimeoutExpired):
            continue
        if got == ["True", "True"]:
            return name
        if got == ["True", "False"]:
            first = first or name
    return first


def scratch():
    """Returns a new folder: in $TMPDIR, or in memory if that has room and runs programs, or where temporary files are."""
    for at in (os.environ.get("TMPDIR") or "/dev/shm", None):
        if at == "/dev/shm" and not (os.path.isdir(at) and os.access(at, os.W_OK) and shutil.disk_usage(at).free > 8 << 30):
            continue
        folder = pathlib.Path(tempfile.mkdtemp(prefix="dmir-gpu-", dir=at))
        probe = folder / "probe"
        probe.write_text("#!/bin/sh\n")
        probe.chmod(0o755)
        try:
            subprocess.run([probe], check=True, timeout=5)
            return folder
        except (OSError, subprocess.SubprocessError):
            if at is None:
                return folder
            shutil.rmtree(folder, ignore_errors=True)


def settle(folder):
    """Sets the environment so that caches are in the folder, whether or not the user's are writable."""
    for name in ("DMIR_CACHE", "CUDA_CACHE_PATH", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "TMPDIR"):
        at = folder / name.lower()
        at.mkdir()
        os.environ[name] = str(at)
    home = os.path.expanduser("~")
    if not os.access(home, os.W_OK):
        os.environ.setdefault("PYTHONUSERBASE", os.path.join(home, ".local"))  # packages are found all the same
        os.environ["HOME"] = os.environ["TMPDIR"]
    os.environ |= {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1", "TORCHINDUCTOR_FX_GRAPH_CACHE": "1", "TORCHINDUCTOR_AUTOGRAD_CACHE": "1"}
    tempfile.tempdir = None


def seconds(text):
    out = {}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        if name not in {s.name for s in STEPS}:
            raise argparse.ArgumentTypeError(f"there is no step {name}")
        out[name] = float(value)
    return out


def table():
    """The steps as a table in Markdown."""
    out = ["| step | at most, s | expected, s | what it does | needs | writes |", "|---|--:|--:|---|---|---|"]
    for s in STEPS:
        writes = ", ".join(f"`{w}`" for w in s.writes.split(", "))
        out.append(f"| `{s.name}` | {s.seconds}{' and more' if s.more else ''} | {s.expected or '–'} | {s.what} | {s.needs or '–'} | {writes} |")
    out.append(f"| together | {sum(s.seconds for s in STEPS)} | {sum(s.expected for s in STEPS)} | {MINUTES} minutes | | |")
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", action="store_true", help="print the steps and their seconds")
    parser.add_argument("--minutes", type=float, default=MINUTES, help=f"for all steps; their limits scale, but for unpack and report (default {MINUTES})")
    parser.add_argument("--seconds", type=seconds, default={}, help="other limits of steps, as STEP=S,..., with a budget of 12 minutes")
    parser.add_argument("--archive", help="what scripts/gpu-prepare.sh has built")
    parser.add_argument("--dmir", help="without an archive: the program")
    parser.add_argument("--python", help="the Python of the peers (default: one with PyTorch)")
    parser.add_argument("--target", default="h200", help="the machine with the data sheet of the card")
    parser.add_argument("--card", default="")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--only", default="", help="workloads whose names match")
    parser.add_argument("--peers", default="dmir,eager,cublas,triton,jax,compile,max-autotune")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--limit", type=float, default=15, help="seconds after which a program counts as hung")
    parser.add_argument("--small", action="store_true", help="small sizes, as a rehearsal")
    args = parser.parse_args()
    if args.table:
        print(table())
        return
    if not args.out or not (args.archive or args.dmir):
        parser.error("it needs --out, and --archive or --dmir")
    over = sum(args.seconds.get(s.name, s.seconds) for s in STEPS) - 60 * MINUTES
    if over > 0:
        parser.error(f"with these limits the steps take {over:g} s more than {MINUTES} minutes: shorten others")
    folder = scratch()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    plan = Plan(args, folder)
    try:
        settle(folder)
        plan.run()
        status = plan.status()
    finally:
        for process in list(plan.processes):
            plan.stop(process)
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(status)


if __name__ == "__main__":
    main()
