"""Tests without a card: the table, the order of workloads, and the report of times."""
import argparse
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
from contextlib import redirect_stdout

import contest
import plan
import predictions
import report
import run
import workloads
from contest import OutOfTime


def timed(**over):
    """Returns a row with times, as a run creates it."""
    step = {"name": "k", "flop": 0, "read_bytes": 50, "written_bytes": 50, "time_ns": 1000.0, "measured_ns": 1100.0}
    out = {"name": "w", "group": "row", "mode": "forward", "minimum_bytes": 4000000, "contraction_flop": 0,
           "dmir": {"ns": 1000.0, "predicted_ns": 1000.0, "moved_bytes": 4000, "error": 0.001, "wrong": None, "steps": [step]}, "eager": {"ns": 2000.0}}  # fmt: skip
    return out | over


class Table(unittest.TestCase):
    def test_names(self):
        names = [w.name for w in workloads.table()]
        self.assertEqual(len(names), len(set(names)))

    def test_minimum(self):
        w = next(w for w in workloads.table() if w.name == "softmax_1024_backward")
        self.assertEqual(w.minimum(), 3 * (1 << 25) * 2)
        w = next(w for w in workloads.table() if w.name == "cross_entropy_32000_both")
        self.assertEqual(w.minimum(), 2 * 2048 * 32000 * 2 + 2048 * 8 + 2)

    def test_most_value_first(self):
        """The common workloads come first, and each with dmir before its peers that take long."""
        table = workloads.table()
        order = run.plan(table, ["dmir", "eager", "cublas", "triton", "jax", "compile", "max-autotune"], list(run.PASSES))
        self.assertEqual((order[0][0], order[0][1].name, order[0][2]), ("first", table[0].name, ["dmir", "eager"]))
        self.assertIn("cublas", next(names for _, w, names in order if w.group == "gemm"))
        place = {(part, w.name): i for i, (part, w, _) in enumerate(order)}
        for w in table:
            self.assertLess(place["first", w.name], place["compile", w.name])
            self.assertLess(place["first", w.name], place["triton", w.name])
        common, rare = table[0].name, table[-1].name
        self.assertLess(place["triton", common], place["first", rare])
        self.assertLess(place["first", rare], place["jax", rare])
        self.assertGreater(min(i for (part, _), i in place.items() if part == "tune"), max(place["first", w.name] for w in table))

    def test_the_first_workloads_exist(self):
        self.assertLessEqual(set(plan.FIRST), {w.name for w in workloads.table()})

    def test_same_small_sizes_once(self):
        self.assertLess(len(run.chosen("", True)), len(run.chosen("", False)))


class Targets(unittest.TestCase):
    def of(self, rows, start):
        return next(t for t in report.targets(rows, 4e12) if t["target"].startswith(start))

    def test_copy(self):
        t = self.of([timed(), timed(name="slow", dmir=timed()["dmir"] | {"ns": 2000.0})], "memory-bound")
        self.assertEqual((t["met"], t["of"], t["reached"], t["worst_name"]), (1, 2, False, "slow"))

    def test_better_of_the_peers(self):
        t = self.of([timed(group="gemm", cublas={"ns": 900.0})], "GEMM against")
        self.assertEqual((t["worst"], t["reached"]), (0.9, False))

    def test_wrong_has_no_time(self):
        bad = timed(dmir={"wrong": "result 0 is not finite", "predicted_ns": 1.0, "moved_bytes": 1, "error": 0.0, "steps": []})
        self.assertEqual(self.of([bad], "memory-bound")["of"], 0)
        out = io.StringIO()
        with redirect_stdout(out):
            report.line(bad, 4e12, False)
        self.assertIn("WRONG: result 0 is not finite", out.getvalue())

    def test_last_sums_belong_to_their_kernel(self):
        step = timed()["dmir"]["steps"][0]
        d = timed()["dmir"] | {"steps": [step, step | {"name": "k_columns", "time_ns": 0, "measured_ns": 100.0}]}
        self.assertEqual(report.kernels(timed(dmir=d)), [["k", 1000.0, 1200.0]])

    def test_nine_in_ten(self):
        good, off = timed(), timed(name="off", dmir=timed()["dmir"] | {"steps": [timed()["dmir"]["steps"][0] | {"measured_ns": 2000.0}]})
        self.assertTrue(self.of([good] * 9 + [off], "prediction")["reached"])
        self.assertFalse(self.of([good] * 8 + [off] * 2, "prediction")["reached"])

    def test_line_and_summary(self):
        result = {"card": "Card", "versions": {"eager": "PyTorch"}, "copy_bytes_per_s": 4e12, "clocks_before": {}, "driver": "1", "target": "h200",
                  "workloads": [timed()], "left_out": [("w", "jax")], "seconds": 1.0, "targets": report.targets([timed()], 4e12)}  # fmt: skip
        out = io.StringIO()
        with redirect_stdout(out):
            report.head(result, False)
            report.line(timed(), 4e12, False)
            report.end(result, False)
        for text in ("100%", "2.00", "reached       memory-bound", "not measured  GEMM against cuBLAS", "skipped for lack of time: w (jax)"):
            self.assertIn(text, out.getvalue())


class Predictions(unittest.TestCase):
    def test_three_ways(self):
        with tempfile.TemporaryDirectory() as at:
            at = pathlib.Path(at)
            card, binary = at / "card.toml", at / "dmir"
            card.write_text('title = "card"\n')
            # Stands in for dmir: the machine decides the time, and the calibrated one must be where dmir looks for it.
            binary.write_text("""#!/bin/sh
case $6 in h100) ns=1000 ;; datasheet) ns=500 ;; local-cuda) grep -q card "$XDG_CONFIG_HOME/dmir/local-cuda.toml" && ns=1100 ;; esac
grep -q func.func "$7" && echo "{\\"functions\\": [{\\"time_ns\\": $ns}]}"
""")
            binary.chmod(0o755)
            w = workloads.table()[0].at(True)
            got = predictions.predict(str(binary), "h100", card, [w], at / "predictions", 60)
            self.assertEqual(got, {w.name: {"published": 1000, "datasheet": 500, "calibrated": 1100}})
            self.assertIn('bandwidth = "3.35 TB/s"', (at / "predictions" / "dmir.toml").read_text())
            out = io.StringIO()
            with redirect_stdout(out):
                predictions.summary([timed(name=w.name, predicted=got[w.name]), timed(name="none", predicted={})])
            for text in ("0.5 -50%", "1.1 +10%", "published    median error 0%, 1 of 1 within 15 %", "data sheet   median error 50%, 0 of 1"):
                self.assertIn(text, out.getvalue())


class Scripted:
    """A contestant that returns a list of answers in order, or raises those that are exceptions."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    def ask(self, timeout, **request):
        self.asked.append(request)
        if request["do"] in ("make", "check"):
            return {} if request["do"] == "make" else {"error": 0.001, "wrong": None}
        return self.next()

    def run(self, w, inputs, folder, runs, limit, left):
        self.asked.append(w.name)
        return self.next()

    def next(self):
        answer = self.answers.pop(0) if self.answers else {"ns": 1000.0, "predicted_ns": 1000.0, "moved_bytes": 1, "steps": []}
        if isinstance(answer, Exception):
            raise answer
        return dict(answer)

    def close(self):
        pass


class Play(unittest.TestCase):
    def contest(self, folder, dmir, workers):
        args = run.arguments(["--out", folder, "--budget", "500"])
        args.lines = pathlib.Path(folder) / "gpu.jsonl"
        c = run.Contest(args, pathlib.Path(folder), io.StringIO())
        c.dmir, c.workers = dmir, workers
        return c

    def play(self, dmir, workers, names=("dmir", "eager")):
        """Runs all workloads of norms and softmax. Returns the contest and the lines that it wrote."""
        with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
            c = self.contest(folder, dmir, workers)
            for w in workloads.table():
                if w.group == "row":
                    c.one("first", w, list(names))
            return c, [json.loads(line) for line in c.args.lines.read_text().splitlines()]

    def test_lines(self):
        c, lines = self.play(Scripted(), {"eager": Scripted()})
        self.assertEqual(len(lines), 34)
        self.assertEqual({"pass", "workload", "dmir", "eager"}, set(lines[0]) - {"clock"})
        self.assertEqual(lines[0]["dmir"]["ns"], 1000.0)
        self.assertEqual(c.left_out, [])

    def test_strikes(self):
        """After two hangs or faults in a group, dmir skips the rest of it; its peers continue."""
        dmir = Scripted(OutOfTime("it hangs"), {"failed": "the kernel x failed", "fault": True})
        _, lines = self.play(dmir, {"eager": Scripted()})
        self.assertEqual(len(dmir.asked), 2)
        self.assertTrue(lines[0]["dmir"]["hung"])
        self.assertTrue(all(line["dmir"]["left_alone"] and line["eager"]["ns"] for line in lines[2:]))

    def test_failures_are_no_strikes(self):
        dmir = Scripted(*[{"failed": "it does not compile"}] * 5)
        _, lines = self.play(dmir, {"eager": Scripted()})
        self.assertEqual((len(dmir.asked), len(lines)), (34, 34))

    def test_without_peers(self):
        """Without PyTorch there are no inputs from it and no check at full size."""
        dmir = Scripted()
        c, lines = self.play(dmir, {})
        self.assertEqual((len(lines), lines[0]["dmir"]["checked_small"], "eager" in lines[0]), (34, False, False))
        out = io.StringIO()
        with redirect_stdout(out):
            report.end({"workloads": list(c.rows.values()), "left_out": [], "seconds": 1, "targets": []}, False)
        self.assertIn("0 of 34 workloads agree with float32", out.getvalue())


    def test_compiled_ahead(self):
        """Every workload is compiled ahead and nothing is timed, whatever hangs."""
        with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()) as out:
            compiler = Scripted({}, OutOfTime("it hangs"), {})
            c = self.contest(folder, Scripted(), {"eager": Scripted(), "compile": compiler})
            c.hello = lambda: {}
            run.warm(c, workloads.table()[:3])
            self.assertFalse(c.args.lines.exists())
        self.assertEqual([(q["workload"], q["how"], q["runs"]) for q in compiler.asked], [(w.name, "compile", 0) for w in workloads.table()[:3]])
        self.assertIn("not compiled ahead: " + workloads.table()[1].name, out.getvalue())

    def test_resume(self):
        """What an earlier run has measured is not measured again, and its hangs count."""
        with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
            rows = [w for w in workloads.table() if w.group == "row"][:3]
            log = pathlib.Path(folder) / "gpu.jsonl"
            for w in rows[:2]:
                contest.lines(log, {"pass": "first", "workload": w.name, "dmir": {"failed": "it hangs", "hung": True}, "clock": "1980 MHz"})
            with open(log, "a") as f:
                f.write('{"pass": "first", "workl')
            dmir, eager = Scripted(), Scripted()
            c = self.contest(folder, dmir, {"eager": eager})
            c.resume()
            for w in rows:
                c.one("first", w, ["dmir", "eager"])
            self.assertEqual(dmir.asked, [])
            self.assertEqual([q["do"] for q in eager.asked].count("run"), 3)
            self.assertTrue(c.rows[rows[2].name]["dmir"]["left_alone"])


class Clock:
    """A clock that only steps move."""

    now = 0.0

    def __call__(self):
        return self.now


class Steps(unittest.TestCase):
    def play(self, minutes=12.0, **steps):
        """Runs a plan whose steps take the given seconds, or call the given functions with it. Returns the plan."""
        clock = Clock()
        with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
            folder = pathlib.Path(folder)
            args = argparse.Namespace(minutes=minutes, seconds={}, out=folder, archive="", dmir="dmir", python="", target="h100", limit=4, only="", card="Card")

            class Scripted(plan.Plan):
                def __getattribute__(self, name):
                    if name not in {s.name for s in plan.STEPS}:
                        return super().__getattribute__(name)

                    def step():
                        does = steps.get(name, 1.0)
                        if callable(does):
                            return does(self)
                        clock.now += min(does, self.until - clock.now)

                    return step

            p = Scripted(args, folder, clock)
            p.run()
            p.log = report.read(folder / "plan.jsonl")
            return p

    def rows(self, p):
        return {r["step"]: r for r in p.done}

    def test_limits_add_up(self):
        """If every step takes all that it may, the budget is used up and not exceeded, at every scale."""
        for minutes in (4, 12, 40):
            p = self.play(minutes, **{s.name: 1e9 for s in plan.STEPS})
            self.assertLessEqual(sum(r["used"] for r in p.done), 60 * minutes + 0.1)
            for s in plan.STEPS:
                if s.name != "find":
                    self.assertGreaterEqual(self.rows(p)[s.name]["limit"], s.seconds * (1 if s.fixed else (60 * minutes - 30) / 690) - 0.1)

    def test_what_is_left_goes_on(self):
        """Quick steps leave their time to those that take more, and to no other."""
        r = self.rows(self.play())
        self.assertEqual((r["smoke"]["limit"], r["calibrate"]["limit"], r["sanitizer"]["limit"]), (20, 60, 40))
        self.assertGreater(r["suite"]["limit"], 60 + 90)
        self.assertEqual(r["rest"]["limit"], 720 - 10 - sum(x["used"] for n, x in r.items() if n not in ("rest", "report")))

    def test_a_step_that_fails(self):
        def fault(_):
            raise OSError("the disk is full")

        p = self.play(calibrate=fault)
        self.assertEqual(self.rows(p)["calibrate"]["why"], "OSError: the disk is full")
        self.assertEqual([r["step"] for r in p.done], [s.name for s in plan.STEPS])
        self.assertEqual(p.status(), 1)
        self.assertEqual([r["step"] for r in p.log if "outcome" in r], [s.name for s in plan.STEPS])
        self.assertEqual(self.play().status(), 0)

    def test_search_comes_first(self):
        """Where a smoke program fails, the search and the suite come before calibration; a case that fails then is searched for too."""

        def red(path):
            def step(p):
                p.failing.append(pathlib.Path(path))
                raise plan.Ended(plan.RED, path)

            return step

        def find(p):
            searched.append([x.name for x in p.failing[p.seen :]])
            p.seen = len(p.failing)

        searched = []
        p = self.play(smoke=red("wgmma.case"), suite=red("row.case"), find=find)
        self.assertEqual([r["step"] for r in p.done], ["unpack", "smoke", "find", "suite", "find", "seed", "sanitizer", "calibrate", "measure", "gpt2", "rest", "report"])
        self.assertEqual(searched, [["wgmma.case"], ["row.case"]])

    def test_a_process_that_does_not_end(self):
        with tempfile.TemporaryDirectory() as folder:
            args = argparse.Namespace(minutes=1, seconds={}, dmir="", python="")
            p = plan.Plan(args, pathlib.Path(folder))
            p.until = p.clock() + 60
            code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('on', flush=True); time.sleep(600)"
            log = pathlib.Path(folder) / "log"
            self.assertIsNone(p.call([sys.executable, "-c", code], 3, log))
            self.assertEqual(log.read_text(), "on\n")
            self.assertEqual(p.call([sys.executable, "-c", "import sys; sys.exit(5)"]), 5)

    @unittest.skipUnless(sys.platform == "linux", "needs Linux")
    def test_killed(self):
        """A plan that is killed leaves no process on the card."""
        code = "import argparse, pathlib, plan; p = plan.Plan(argparse.Namespace(minutes=9, dmir='', python=''), pathlib.Path('.')); p.until = p.end; p.call(['sh', '-c', 'echo $$; exec sleep 600'])"
        p = subprocess.Popen([sys.executable, "-B", "-c", code], stdout=subprocess.PIPE, text=True, cwd=plan.HERE)
        child = pathlib.Path("/proc") / p.stdout.readline().strip() / "stat"
        p.kill()
        p.wait()
        p.stdout.close()
        try:
            while child.read_text().rpartition(")")[2].split()[0] != "Z":  # without end if it lives
                time.sleep(0.05)
        except OSError:  # it is gone
            pass

    def test_the_documented_table(self):
        text = (pathlib.Path(__file__).resolve().parents[1] / "README.md").read_text()
        self.assertTrue(plan.table() in text, "replace the table in bench/README.md by the output of bench/gpu/plan.py --table")


class Processes(unittest.TestCase):
    def worker(self, folder, code):
        log = open(pathlib.Path(folder) / "log", "a", buffering=1)
        w = contest.Worker("eager", "cpu", False, log)
        w.command = [sys.executable, "-c", "import sys, time\n" + code]
        return w, log

    def test_hang_and_again(self):
        with tempfile.TemporaryDirectory() as folder:
            once = pathlib.Path(folder) / "once"
            w, log = self.worker(folder, f"import pathlib\np = pathlib.Path({str(once)!r})\nif not p.exists():\n  p.touch(); time.sleep(600)\nfor l in sys.stdin: print('{{}}', flush=True)")
            with self.assertRaises(OutOfTime):
                w.ask(1, do="x")
            self.assertEqual(w.ask(60, do="x"), {})
            w.close()
            log.close()

    def test_log_and_end(self):
        with tempfile.TemporaryDirectory() as folder:
            w, log = self.worker(folder, "sys.stdin.readline()\nfor i in range(50): print('line', i, file=sys.stderr)\nsys.exit(3)")
            self.assertEqual(w.ask(60, do="x"), {"failed": "the process ended with status 3"})
            log.close()
            self.assertEqual(len((pathlib.Path(folder) / "log").read_text().splitlines()), 51)


class Carried(unittest.TestCase):
    def test_only_for_the_card(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "target").write_text("h200 sm_90a\n")
            self.assertEqual(run.carried(folder, "90", "h200"), pathlib.Path(folder))
            self.assertIsNone(run.carried(folder, "80", "h200"))
            self.assertIsNone(run.carried(folder, "90", "h100"))
        self.assertIsNone(run.carried(None, "90", "h200"))


if __name__ == "__main__":
    unittest.main()
