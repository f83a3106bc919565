"""What can be held without a card: the table, the order of work, and what is said of times."""
import io
import pathlib
import tempfile
import unittest
from contextlib import redirect_stdout

import report
import run
import workloads


def timed(**over):
    """A row with times, as a run leaves it."""
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

    def test_every_peer_of_the_first(self):
        all_peers = ["dmir", "eager", "cublas", "triton", "jax", "compile", "max-autotune"]
        order = run.plan(workloads.table(), all_peers, list(run.PASSES))
        table = workloads.table()
        self.assertEqual([(part, w.name) for part, w, _ in order[: len(table)]], [("first", w.name) for w in table])
        self.assertEqual(order[0][2], ["dmir", "eager"])
        self.assertIn("cublas", next(names for _, w, names in order if w.group == "gemm"))
        self.assertEqual(order[len(table)][0], "triton")
        compiled = [w.name for _, w, names in order if "compile" in names]
        self.assertEqual(sorted(compiled), sorted(w.name for w in table))

    def test_same_small_sizes_once(self):
        self.assertLess(len(run.chosen("", True)), len(run.chosen("", False)))


class Targets(unittest.TestCase):
    def of(self, rows, start):
        return next(t for t in report.targets(rows, 4e12) if t["target"].startswith(start))

    def test_copy(self):
        t = self.of([timed(), timed(name="slow", dmir=timed()["dmir"] | {"ns": 2000.0})], "memory-bound")
        self.assertEqual((t["met"], t["of"], t["reached"], t["worst_name"]), (1, 2, False, "slow"))

    def test_better_of_the_peers(self):
        t = self.of([timed(group="gemm", cublas={"ns": 900.0})], "GEMM beside")
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
        for text in ("100%", "2.00", "reached       memory-bound", "not measured  GEMM beside cuBLAS", "left out for time: w (jax)"):
            self.assertIn(text, out.getvalue())


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
