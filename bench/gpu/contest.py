"""The contestants as this process sees them: dmir, a process for each run, and workers, a process for each peer."""
import json
import os
import pathlib
import select
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent


class OutOfTime(Exception):
    pass


class Worker:
    """A process of worker.py. It is ended when it takes too long, and begun anew when it is next asked."""

    def __init__(self, name, device, small):
        self.command = [sys.executable, str(HERE / "worker.py"), name, "--device", device] + (["--small"] if small else [])
        self.log = open(os.devnull, "w")
        self.process, self.name = None, name

    def send(self, **request):
        if self.process is None or self.process.poll() is not None:
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
            self.process.kill()
            self.process.wait()
            self.process = None


class Dmir:
    """dmir compile and dmir run."""

    compiled = None  # a folder of programs for this very device, if there is one

    def __init__(self, binary, device, target, scratch):
        self.binary, self.device, self.target, self.scratch = str(pathlib.Path(binary).resolve()), device, target, scratch

    def program(self, w, timeout):
        """The compiled file: a carried one of the same text, or made here. Then what went wrong, if something did."""
        if self.compiled and (path := self.compiled / f"{w.name}.dmx").exists() and path.with_suffix(".dmir").read_text() == w.text():
            return path, None
        source, path = self.scratch / f"{w.name}.dmir", self.scratch / f"{w.name}.dmx"
        source.write_text(w.text())
        arch = ["--arch", "none"] if self.device == "emulator" else []
        command = [self.binary, "compile", "--target", self.target, *arch, "-o", str(path), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
        return path, None if done.returncode == 0 else "does not compile: " + first(done.stderr)

    def run(self, w, folder, runs, timeout):
        """Runs on the folder's inputs; results are files, times those of the device."""
        try:
            start = time.monotonic()
            path, wrong = self.program(w, timeout)
            if wrong:
                return {"failed": wrong}
            out = folder / "dmir"
            command = [self.binary, "run", str(path), "--device", self.device, "--output", str(out), "--output-format", "json"]
            command += ["--runs", str(runs), "--cold"] if runs else []
            for i in w.inputs():
                command += ["--input", f"{i.name}={folder / (i.name + '.npy')}"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=max(1, timeout - (time.monotonic() - start)))
        except subprocess.TimeoutExpired:
            raise OutOfTime(f"dmir took more than {timeout:.0f} s") from None
        if done.returncode != 0:
            return {"failed": first(done.stderr)}
        got = json.loads(done.stdout)
        steps = got["steps"]
        counted = [s["counted_read_bytes"] + s["counted_written_bytes"] for s in steps if s["counted_read_bytes"] is not None]
        answer = {
            "results": [o["file"] for o in got["outputs"]],
            "predicted_ns": sum(s["time_ns"] for s in steps),
            "moved_bytes": sum(s["read_bytes"] + s["written_bytes"] for s in steps),
            "peak_bytes": got["peak_bytes"],
            "steps": [{k: s[k] for k in ("name", "flop", "read_bytes", "written_bytes", "time_ns", "measured_ns")} for s in steps],
        }
        if counted:
            answer["counted_bytes"] = sum(counted)
        if runs:
            answer |= {"ns": got["elapsed_ns"], "graph": True}
        return answer


def first(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return (lines[0] if lines else "it says nothing")[:300]
