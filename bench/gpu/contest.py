"""Interfaces to the contestants: dmir, one process for each run, and workers, one process for each peer."""
import json
import os
import pathlib
import select
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent


class OutOfTime(Exception):
    """The time budget is used up, or a contestant hung."""


def end(process):
    """Kills a process. If its kernel hangs the device, the process may take long to exit; the caller does not wait for it."""
    process.kill()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        pass


def lines(path, line):
    """Appends a line of JSON and syncs it to disk."""
    if path:
        with open(path, "a") as f:
            f.write(json.dumps(line) + "\n")
            f.flush()
            os.fsync(f.fileno())


class Worker:
    """A process of worker.py. A timeout kills it, and the next request starts it again. The log contains the output of the
    process and its libraries."""

    def __init__(self, name, device, small, log):
        self.command = [sys.executable, str(HERE / "worker.py"), name, "--device", device] + (["--small"] if small else [])
        self.log, self.process, self.name = log, None, name

    def send(self, **request):
        if self.process is None or self.process.poll() is not None:
            self.log.write(f"== {self.name}\n")
            self.log.flush()
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True)
            self.rest = ""
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()

    def answer(self, timeout):
        end = time.monotonic() + timeout
        while "\n" not in self.rest:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))
            if not ready:
                self.close()
                raise OutOfTime(f"{self.name} took more than {timeout:.0f} s")
            more = os.read(self.process.stdout.fileno(), 1 << 16).decode()
            if not more:
                code = self.process.wait()
                self.process = None
                return {"failed": f"the process ended with status {code}"}
            self.rest += more
        line, self.rest = self.rest.split("\n", 1)
        return json.loads(line)

    def ask(self, timeout, **request):
        try:
            self.send(**request)
        except BrokenPipeError:
            self.process = None
            return {"failed": "the process ended"}
        return self.answer(timeout)

    def close(self):
        if self.process:
            end(self.process)
            self.process = None


class Dmir:
    """dmir compile and dmir run, each in a process."""

    compiled = None  # the folder of programs compiled for this device, if any

    def __init__(self, binary, device, target, scratch, log):
        self.binary, self.device, self.target, self.scratch, self.log = str(pathlib.Path(binary).resolve()), device, target, scratch, log

    def call(self, args, timeout):
        """Returns status, standard output and standard error. Also logs the command and its standard error."""
        process = subprocess.Popen([self.binary, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            end(process)
            self.log.write(f"== dmir {' '.join(args)}\ntimeout after {timeout:.0f} s\n")
            raise OutOfTime(f"dmir took more than {timeout:.0f} s") from None
        finally:
            self.log.flush()
        if err or process.returncode:
            self.log.write(f"== dmir {' '.join(args)}\n{err}status {process.returncode}\n")
            self.log.flush()
        return process.returncode, out, err

    def program(self, w, timeout):
        """Returns the compiled file, precompiled from the same text or compiled here, and an error message or None."""
        if self.compiled and (path := self.compiled / f"{w.name}.dmx").exists() and path.with_suffix(".dmir").read_text() == w.text():
            return path, None
        source, path = self.scratch / f"{w.name}.dmir", self.scratch / f"{w.name}.dmx"
        source.write_text(w.text())
        arch = ["--arch", "none"] if self.device == "emulator" else []
        status, _, err = self.call(["compile", "--target", self.target, *arch, "-o", str(path), str(source)], timeout)
        return path, None if status == 0 else "does not compile: " + first(err)

    def run(self, w, inputs, folder, runs, limit, left):
        """Runs on inputs, files by name; other inputs are random. Results are files, times are device times. The program has
        `limit` seconds; compilation, if the program is not precompiled, has the remaining time."""
        path, wrong = self.program(w, left)
        if wrong:
            return {"failed": wrong}
        args = ["run", str(path), "--device", self.device, "--output-format", "json"]
        args += ["--output", str(folder / "dmir")] if folder else []
        args += ["--runs", str(runs)] + (["--cold"] if runs else [])
        for name, file in inputs.items():
            args += ["--input", f"{name}={file}"]
        status, out, err = self.call(args, limit)
        if status != 0:
            return {"failed": first(err), "fault": "DM618" in err}
        got = json.loads(out)
        steps = got["steps"]
        counted = [s["counted_read_bytes"] + s["counted_written_bytes"] for s in steps if s["counted_read_bytes"] is not None]
        answer = {
            "predicted_ns": sum(s["time_ns"] for s in steps),
            "moved_bytes": sum(s["read_bytes"] + s["written_bytes"] for s in steps),
            "peak_bytes": got["peak_bytes"],
            "steps": [{k: s[k] for k in ("name", "flop", "read_bytes", "written_bytes", "time_ns", "measured_ns")} for s in steps],
        }
        if folder:
            answer["results"] = [o["file"] for o in got["outputs"]]
        if odd := sum(o["nans"] + o["infs"] for o in got["outputs"]):
            answer["not_finite"] = odd
        if counted:
            answer["counted_bytes"] = sum(counted)
        if got.get("untimed"):
            answer["untimed"] = got["untimed"]
        elif runs:
            answer |= {"ns": got["elapsed_ns"], "graph": True}
        return answer


def first(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[0] if lines else "no error message"
