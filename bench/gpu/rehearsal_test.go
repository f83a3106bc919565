//go:build unix

package gpu_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"dmir/compile/suite"
	"dmir/testkit/need"
)

// played is the output of a rehearsal.
type played struct {
	status int
	log    string
	report string
	files  map[string]int64 // in $OUT, with their sizes
	jsonl  map[string][]map[string]any
}

// steps returns the outcome of each step that has ended, and the seconds of all.
func (p played) steps() (outcomes map[string]string, used float64) {
	outcomes = map[string]string{}
	for _, line := range p.jsonl["plan.jsonl"] {
		if name, ok := line["step"].(string); ok {
			outcomes[name] = fmt.Sprint(line["outcome"])
			used += line["used"].(float64)
		}
	}
	return outcomes, used
}

// play runs scripts/gpu.sh with what a scene has. If until is set, play kills the
// script once the lines of workloads satisfy it.
func (s stage) play(t *testing.T, c scene, until func(lines int) bool) played {
	t.Helper()
	out := t.TempDir()
	args := append([]string{"../../scripts/gpu.sh", "--small", "--runs", "3", "--limit", "30", "--seconds", "smoke=120,rest=60"}, c.args...)
	cmd := exec.Command("bash", append(args, "--only", "^("+strings.Join(rehearsed[:len(rehearsed)-1], "|")+c.more+")$")...)
	python, path := s.peers, s.tools+string(os.PathListSeparator)
	if c.bare {
		python, path = s.bare, ""
	}
	archive := s.archive
	if c.archive != nil {
		archive = c.archive(t, s.archive)
	}
	cmd.Args = append(cmd.Args, "--python", python)
	cmd.Env = append(append(append([]string{}, s.env...), "OUT="+out, "GPU_ARCHIVE="+archive, "TMPDIR="+t.TempDir()), c.env...)
	for i, v := range cmd.Env {
		if strings.HasPrefix(v, "PATH=") {
			cmd.Env[i] = "PATH=" + path + strings.TrimPrefix(v, "PATH=")
		}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	done := make(chan error, 1)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { done <- cmd.Wait() }()
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true
		case <-time.After(20 * time.Millisecond):
			if until == nil || !until(len(workloadsOf(gather(t, out).jsonl["gpu.jsonl"]))) {
				continue
			}
			syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			<-done
			ended = true
		}
	}
	p := gather(t, out)
	p.status = cmd.ProcessState.ExitCode()
	return p
}

// gather reads the files in out.
func gather(t *testing.T, out string) played {
	t.Helper()
	p := played{files: map[string]int64{}, jsonl: map[string][]map[string]any{}}
	found, err := filepath.Glob(filepath.Join(out, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range found {
		info, err := os.Stat(path)
		if err != nil {
			continue // a temporary name
		}
		name := filepath.Base(path)
		p.files[name] = info.Size()
		switch {
		case name == "log.txt", name == "report.md":
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if name == "log.txt" {
				p.log = string(text)
			} else {
				p.report = string(text)
			}
		case filepath.Ext(name) == ".jsonl":
			p.jsonl[name] = whole(t, path)
		}
	}
	return p
}

// whole reads a file of JSON lines and checks that each is valid.
func whole(t *testing.T, path string) (out []map[string]any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1] // drop a line that is being written
	in := bufio.NewScanner(bytes.NewReader(text))
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var line map[string]any
		if err := json.Unmarshal(in.Bytes(), &line); err != nil {
			t.Errorf("%s: %v: %s", filepath.Base(path), err, in.Bytes())
		}
		out = append(out, line)
	}
	return out
}

// workloadsOf returns dmir's results by workload.
func workloadsOf(lines []map[string]any) map[string]map[string]any {
	out := map[string]map[string]any{}
	for _, line := range lines {
		if name, ok := line["workload"].(string); ok {
			if d, ok := line["dmir"].(map[string]any); ok {
				out[name] = d
			}
		}
	}
	return out
}

// outcomes returns the outcomes of the suite's cases.
func outcomes(lines []map[string]any) map[string]string {
	out := map[string]string{}
	for _, line := range lines {
		if name, ok := line["case"].(string); ok {
			out[strings.TrimPrefix(name, "WorkloadCases_")] = fmt.Sprint(line["outcome"])
		}
	}
	return out
}

// scene is a run of scripts/gpu.sh and what it must say. Whatever happens to a step, every other one writes its lines.
type scene struct {
	name    string
	args    []string
	env     []string
	more    string // workloads besides those that are precompiled
	bare    bool   // no PyTorch and no compute-sanitizer
	archive func(t *testing.T, path string) string
	status  int
	want    map[string]string // of steps whose outcome is another than in a good run
	says    []string          // in the report
	check   func(t *testing.T, p played)
}

// good are the outcomes where nothing is wrong and there is no compiler of CUDA.
var good = map[string]string{
	"unpack": "passed", "smoke": "passed", "calibrate": "skipped", "suite": "passed", "seed": "passed", "sanitizer": "passed", "find": "skipped",
	"measure": "passed", "gpt2": "passed", "rest": "passed", "report": "passed",
}

// slowly is an archive whose reader gets the first bytes, and then none for as long as the test runs.
func slowly(t *testing.T, path string) string {
	pipe := filepath.Join(t.TempDir(), "slow.tar")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(pipe, os.O_RDWR, 0) // which does not wait for the reader
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.Write(text[:bytes.Index(text, []byte("gpu/workloads/h100/gpt2_step.dmx"))])
	}()
	t.Cleanup(func() { f.Close(); <-done })
	return pipe
}

var scenes = []scene{
	{
		name: "all is well",
		says: []string{"| copy | passed |", "| graph | passed |", "| workloads | 4 |", "clean", "softmax_1024_forward", "| eager | 4.00 |", "together | 720"},
		check: func(t *testing.T, p played) {
			got := workloadsOf(p.jsonl["gpu.jsonl"])
			for _, name := range rehearsed[:4] {
				if d := got[name]; d["ns"] == nil || d["failed"] != nil || d["error"] == nil {
					t.Errorf("%s: %v", name, d)
				}
			}
			for _, name := range []string{"log.txt", "workers.log", "gpu.json", "gpt2.json", "plan.json", "report.md"} {
				if p.files[name] == 0 {
					t.Errorf("there is no %s", name)
				}
			}
			for _, text := range []string{"jax is not available", "predicted and measured", "published    median error", "GPT-2, compile: {'ns': 4000000.0"} {
				if !strings.Contains(p.log, text) {
					t.Errorf("the log lacks %q", text)
				}
			}
			if _, ok := p.files["warm.txt"]; !ok { // it may have ended before it wrote something
				t.Error("nothing is compiled ahead")
			}
			if n := len(p.jsonl["suite-seed.jsonl"]); n == 0 {
				t.Error("no second seed")
			}
		},
	},
	{
		name: "no PyTorch, no compute-sanitizer, no HOME, one program not precompiled", bare: true, more: "|" + rehearsed[4],
		env: []string{"HOME=/proc"}, status: 1,
		want: map[string]string{"sanitizer": "skipped", "measure": "red", "rest": "red"},
		says: []string{"compute-sanitizer is not installed", "does not compile", "No module named"},
		check: func(t *testing.T, p played) {
			got := workloadsOf(p.jsonl["gpu.jsonl"])
			for _, name := range rehearsed[:4] {
				if d := got[name]; d["ns"] == nil || d["checked_small"] != true {
					t.Errorf("%s: %v", name, d)
				}
			}
			if why := fmt.Sprint(got[rehearsed[4]]["failed"]); !strings.Contains(why, "does not compile") || !strings.Contains(why, "NVRTC") {
				t.Errorf("program that is not precompiled: %s", why)
			}
			if !strings.Contains(p.log, "only dmir is timed") || !strings.Contains(p.log, "4 at small sizes with the reference") {
				t.Error(p.log)
			}
		},
	},
	{
		name: "faults", env: []string{"STANDIN_FAULT=k0_tiles,k0_d_x_d_s", "SANITIZER_FINDS=Smoke-tma"}, status: 1,
		want: map[string]string{"smoke": "red", "suite": "red", "seed": "red", "find": "red", "measure": "red", "rest": "red"},
		says: []string{"| tma | faulted |", "| wgmma | passed |", "`WorkloadCases_rms_norm_1024_backward` faulted", "rms_norm_1024_backward.dmir:9: the kernel d_x_d_s (k0_d_x_d_s) failed", "`Smoke-tma`: alone faulted", "memcheck errors"},
		check: func(t *testing.T, p played) {
			got := workloadsOf(p.jsonl["gpu.jsonl"])
			if d := got[rehearsed[2]]; d["fault"] != true || !strings.Contains(fmt.Sprint(d["failed"]), "the kernel d_x_d_s (k0_d_x_d_s) failed: an illegal memory access") {
				t.Errorf("a fault: %v", d)
			}
			if d := got[rehearsed[3]]; d["ns"] == nil {
				t.Errorf("after a fault: %v", d)
			}
			var order []string
			for _, line := range p.jsonl["plan.jsonl"] {
				if name, ok := line["begin"].(string); ok {
					order = append(order, name)
				}
			}
			if s := strings.Join(order, " "); !strings.HasPrefix(s, "unpack smoke find suite find seed sanitizer calibrate measure") {
				t.Errorf("the order is %s", s)
			}
			if !strings.Contains(fmt.Sprint(p.jsonl["find.jsonl"]), "Invalid __global__ read") {
				t.Errorf("found: %v", p.jsonl["find.jsonl"])
			}
		},
	},
	{
		name: "hangs", env: []string{"STANDIN_HANG=k0_tiles,k0_y/6,k0_d_x_d_s", "STANDIN_PEER=sleep 600"}, args: []string{"--seconds", "smoke=120,rest=60,gpt2=6,find=8,seed=0", "--limit", "6"}, status: 1,
		want: map[string]string{"smoke": "red", "suite": "red", "seed": "skipped", "find": "red", "measure": "red", "rest": "red"},
		says: []string{"| tma | hung |", "| wgmma | passed |", "no time was left"},
		check: func(t *testing.T, p played) {
			hung, alone := 0, 0
			got := workloadsOf(p.jsonl["gpu.jsonl"])
			for _, name := range rehearsed[:3] {
				if got[name]["hung"] == true {
					hung++
				}
				if got[name]["left_alone"] == true {
					alone++
				}
			}
			if hung != 2 || alone != 1 || got[rehearsed[3]]["ns"] == nil {
				t.Errorf("%d hung, %d skipped: %v", hung, alone, got)
			}
			if n := strings.Count(fmt.Sprint(outcomes(p.jsonl["suite.jsonl"])), suite.Hung); n != 2 {
				t.Errorf("the suite: %v", outcomes(p.jsonl["suite.jsonl"]))
			}
		},
	},
	{
		name: "wrong numbers, no times", env: []string{"STANDIN_WRONG=k0_d_x_d_s", "STANDIN_OFF=" + rehearsed[2], "STANDIN_TIMING=400"}, status: 1,
		want: map[string]string{"smoke": "red", "suite": "red", "seed": "red", "find": "red", "measure": "red", "gpt2": "failed", "rest": "red"},
		says: []string{"| graph | failed | cuEventElapsedTime", "`WorkloadCases_rms_norm_1024_backward` wrong", "WRONG: result 0 is off", "racecheck clean"},
		check: func(t *testing.T, p played) {
			if d := workloadsOf(p.jsonl["gpu.jsonl"])[rehearsed[3]]; d["failed"] != nil || d["ns"] != nil || !strings.Contains(fmt.Sprint(d["untimed"]), "cuEventElapsedTime") {
				t.Errorf("without times: %v", d)
			}
		},
	},
	{
		name: "a slow disk", archive: slowly, args: []string{"--seconds", "smoke=120,rest=60,unpack=10"}, status: 1,
		want: map[string]string{"unpack": "hung", "gpt2": "skipped", "measure": "red", "rest": "red"},
		says: []string{"a part of the archive is unpacked", "| wgmma | passed |", "| workloads | 4 |"},
	},
	{
		name: "no driver", env: []string{"STANDIN_INIT=999"}, status: 1,
		want: map[string]string{"smoke": "red", "calibrate": "failed", "suite": "red", "seed": "red", "find": "red", "sanitizer": "failed", "measure": "red", "gpt2": "failed", "rest": "red"},
		says: []string{"cuInit"},
	},
}

// TestRehearsal runs the whole of scripts/gpu.sh on the stand-in for a driver: the normal case and, in turn, a third
// of the failures.
func TestRehearsal(t *testing.T) {
	need.Long(t)
	if testing.Short() {
		t.Skip("it builds programs")
	}
	s := setStage(t)
	for i, c := range scenes {
		if i > 0 && !need.Turn(t, i, 3) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := s.play(t, c, nil)
			got, used := p.steps()
			for name, want := range good {
				if other, ok := c.want[name]; ok {
					want = other
				}
				if got[name] != want {
					t.Errorf("%s %s, want %s", name, got[name], want)
				}
			}
			if p.status != c.status || used > 720 {
				t.Errorf("status %d, want %d; %g s", p.status, c.status, used)
			}
			for _, text := range c.says {
				if !strings.Contains(p.report, text) {
					t.Errorf("the report lacks %q", text)
				}
			}
			if c.check != nil {
				c.check(t, p)
			}
			if t.Failed() {
				t.Logf("%s\n%s", p.log, p.report)
			}
		})
	}
	t.Run("killed", func(t *testing.T) {
		t.Parallel()
		p := s.play(t, scene{}, func(lines int) bool { return lines >= 2 })
		got, _ := p.steps()
		if w := workloadsOf(p.jsonl["gpu.jsonl"]); len(w) < 2 || got["seed"] != "passed" || got["report"] != "" {
			t.Errorf("%v, %v\n%s", got, w, p.log)
		}
	})
}
