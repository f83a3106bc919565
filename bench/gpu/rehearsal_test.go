//go:build unix

package gpu_test

import (
	"archive/tar"
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/compile/driver"
	"dmir/compile/suite"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
	"dmir/gpu/cuda/cudatest"
	"dmir/internal/need"
	"dmir/syntax/source"
)

// rehearsed lists the workloads of the rehearsal, at small sizes. The last one has no
// precompiled program.
var rehearsed = []string{"softmax_1024_forward", "rms_norm_1024_forward", "rms_norm_1024_backward", "gemm_bert_out_f16", "bias_gelu_bert_up_f16"}

// stage is the environment of a machine with a card, built for the stand-in.
type stage struct {
	archive     string
	peers, bare string // a Python with a stand-in for PyTorch, and one without packages
	tools       string // the folder of compute-sanitizer
	env         []string
}

// setStage builds dmir and the suite's runner, compiles the workloads for the
// stand-in, and packs them into an archive as scripts/gpu-prepare.sh does.
func setStage(t *testing.T) stage {
	t.Helper()
	for _, tool := range []string{"bash", "python3", "tee"} {
		_, err := exec.LookPath(tool)
		need.OK(t, err)
	}
	lib := cudatest.Driver(t)
	root := filepath.Join(t.TempDir(), "gpu")
	workloads, cases := filepath.Join(root, "workloads", "h100"), filepath.Join(root, "cases")
	if err := os.MkdirAll(cases, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, pkg := range map[string]string{"dmir": "dmir", "suite": "dmir/bench/gpu/suite"} {
		if out, err := exec.Command("go", "build", "-o", filepath.Join(root, name), pkg).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	python(t, "workloads.py", "--small", "--write", workloads)
	texts, err := filepath.Glob(filepath.Join(workloads, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range texts {
		name := strings.TrimSuffix(filepath.Base(path), ".dmir")
		if !strings.Contains(strings.Join(rehearsed, " "), name) {
			os.Remove(path)
			continue
		}
		if name != rehearsed[len(rehearsed)-1] {
			carry(t, name, path, cases)
		}
	}
	for _, x := range smoke {
		built := tiles()
		if x.text != "" {
			m, fn := picked(t, x.name+".dmir", x.text)
			built = standIn(t, m, fn)
			carryCase(t, "Smoke-"+x.name, "smoke", built, suite.Reference(t.Context(), m, fn, nil, nil), cases)
			continue
		}
		cudatest.Compile(t, built)
		y := tensor.Random(types.F16, []int{200, 136}, 7, 0)
		carryCase(t, "Smoke-"+x.name, "smoke", built, func(uint64) (args, want []*tensor.Tensor, err error) {
			return []*tensor.Tensor{y}, []*tensor.Tensor{y}, nil
		}, cases)
	}
	m, fn := picked(t, "gpt2_step.dmir", stepText)
	keepProgram(t, standIn(t, m, fn), filepath.Join(workloads, "gpt2_step.dmx"))
	write(t, filepath.Join(workloads, "target"), "h100 sm_90a\n", 0o644)
	// The output of nvidia-smi.
	bin := t.TempDir()
	write(t, filepath.Join(bin, "nvidia-smi"), `#!/bin/sh
case "$*" in
*=name*) echo 'NVIDIA H100 Stand-in' ;;
*=compute_cap*) echo 9.0 ;;
*=driver_version*) echo 580.1 ;;
*clocks.sm,*) echo '1980 MHz, 2619 MHz, 1980 MHz, 700.00 W, 30' ;;
*) echo '1980 MHz' ;;
esac
`, 0o755)
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	// A Python with PyTorch, whose workers are testdata/worker.py.
	peers := filepath.Join(bin, "peers")
	write(t, peers, `#!/bin/bash
case $1 in
*/worker.py) shift && exec python3 '`+here+`/testdata/worker.py' "$@" ;;
*/gpt2.py)
  if [ "$2" = --peer ]; then
    [ -z "${STANDIN_PEER:-}" ] || exec $STANDIN_PEER
    echo '{"ns": 4e6, "graph": true}'
    exit
  fi ;;
esac
PYTHONPATH='`+bin+`' exec python3 "$@"
`, 0o755)
	write(t, filepath.Join(bin, "sitecustomize.py"), "import sys\nsys.executable = '"+peers+"'\n", 0o644)
	write(t, filepath.Join(bin, "bare"), "#!/bin/sh\nexec python3 -S \"$@\"\n", 0o755)
	// What compute-sanitizer finds in the cases that $SANITIZER_FINDS matches.
	tools := t.TempDir()
	write(t, filepath.Join(tools, "compute-sanitizer"), `#!/bin/bash
while :; do
  case $1 in
  --log-file) log=$2 && shift 2 ;;
  --*) shift 2 ;;
  *) break ;;
  esac
done
"$@"
echo "========= COMPUTE-SANITIZER" >"$log"
if [ -n "${SANITIZER_FINDS:-}" ] && [[ $* =~ $SANITIZER_FINDS ]]; then
  echo "========= Invalid __global__ read of size 4 bytes" >>"$log"
  exit 77
fi
`, 0o755)
	return stage{
		archive: pack(t, root), peers: peers, bare: filepath.Join(bin, "bare"), tools: tools,
		env: append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "LD_LIBRARY_PATH="+lib, "CI=", "DMIR_NVRTC="+filepath.Join(bin, "none")),
	}
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// stepText takes what gpt2.py gives to a step of GPT-2.
const stepText = `func.func @train(%ids: tensor<4x1024xi64>, %labels: tensor<4x1024xi64>, %step: tensor<i64>) -> tensor<4xi64> {
  %s = dm.add %ids, %labels : tensor<4x1024xi64>
  %t = dm.add %s, %step : (tensor<4x1024xi64>, tensor<i64>) -> tensor<4x1024xi64>
  %y = dm.reduce max %t, dims = [1] : (tensor<4x1024xi64>) -> tensor<4xi64>
  return %y : tensor<4xi64>
}
`

func picked(t *testing.T, name, text string) (*ir.Module, *ir.Func) {
	t.Helper()
	m, fn, err := driver.Pick(program.Load(source.New(name, text), program.Options{}), "")
	if err != nil {
		t.Fatal(err)
	}
	return m, fn
}

// standIn is the program with machine code of the stand-in.
func standIn(t *testing.T, m *ir.Module, fn *ir.Func) *artifact.Program {
	t.Helper()
	h100, _ := machine.Lookup("h100")
	built, err := driver.Build(t.Context(), m, fn, driver.BuildOptions{Machine: h100, Arch: cudatest.Arch})
	if err != nil {
		t.Fatal(err)
	}
	cudatest.Compile(t, built)
	return built
}

func keepProgram(t *testing.T, built *artifact.Program, path string) {
	t.Helper()
	var file bytes.Buffer
	if err := built.Write(&file); err != nil {
		t.Fatal(err)
	}
	write(t, path, file.String(), 0o644)
}

// carry compiles a workload for the stand-in, as a file for dmir run and as a
// case of the suite.
func carry(t *testing.T, name, path, cases string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	m, fn := picked(t, path, string(text))
	built := standIn(t, m, fn)
	keepProgram(t, built, strings.TrimSuffix(path, ".dmir")+".dmx")
	carryCase(t, "WorkloadCases_"+name, "workloads", built, suite.Reference(t.Context(), m, fn, nil, nil), cases)
}

// carryCase writes a case with inputs of two seeds.
func carryCase(t *testing.T, name, class string, built *artifact.Program, reference func(uint64) (args, want []*tensor.Tensor, err error), cases string) {
	t.Helper()
	args, want, err := reference(7)
	if err != nil {
		t.Fatal(err)
	}
	c, err := suite.Make(suite.Source{
		Name: name, Class: class, Args: args, Want: want, Again: reference, Build: func(string) (*artifact.Program, error) { return built, nil },
		Within: func(int) suite.Within { return suite.Within{Most: 0.05, Length: 0.02, Scaled: true} },
	}, 7, cudatest.Arch)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Write(cases); err != nil {
		t.Fatal(err)
	}
}

// pack archives the folder in a format that Python's tarfile opens.
func pack(t *testing.T, root string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gpu.tar")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(f)
	err = filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		head, err := tar.FileInfoHeader(info, "")
		if err != nil {
			return err
		}
		if head.Name, err = filepath.Rel(filepath.Dir(root), path); err != nil {
			return err
		}
		if err := w.WriteHeader(head); err != nil {
			return err
		}
		in, err := os.Open(path)
		if err != nil {
			return err
		}
		defer in.Close()
		_, err = io.Copy(w, in)
		return err
	})
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

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
	args := append([]string{"../../scripts/gpu.sh", "--small", "--runs", "3", "--limit", "4", "--seconds", "smoke=120,rest=60"}, c.args...)
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
		name: "hangs", env: []string{"STANDIN_HANG=k0_tiles,k0_y/6,k0_d_x_d_s", "STANDIN_PEER=sleep 600"}, args: []string{"--seconds", "smoke=120,rest=60,gpt2=6,find=8,seed=0", "--limit", "3"}, status: 1,
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
		says: []string{"a part of the archive was unpacked", "| wgmma | passed |", "| workloads | 4 |"},
	},
	{
		name: "no driver", env: []string{"STANDIN_INIT=999"}, status: 1,
		want: map[string]string{"smoke": "red", "calibrate": "failed", "suite": "red", "seed": "red", "find": "red", "sanitizer": "failed", "measure": "red", "gpt2": "failed", "rest": "red"},
		says: []string{"cuInit"},
	},
}

// TestRehearsal runs the whole of scripts/gpu.sh on the stand-in for a driver: the normal case and every failure.
func TestRehearsal(t *testing.T) {
	need.Long(t)
	if testing.Short() {
		t.Skip("it builds programs")
	}
	s := setStage(t)
	for _, c := range scenes {
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
