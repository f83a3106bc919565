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
	"dmir/compile/interp"
	"dmir/compile/suite"
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
	archive string
	env     []string
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
	return stage{pack(t, root), append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "LD_LIBRARY_PATH="+lib, "CI=", "DMIR_NVRTC="+filepath.Join(bin, "none"))}
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// carry compiles a workload for the stand-in, as a file for dmir run and as a
// case of the suite.
func carry(t *testing.T, name, path, cases string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p := program.Load(source.New(path, string(text)), program.Options{})
	m, fn, err := driver.Pick(p, "")
	if err != nil {
		t.Fatal(err)
	}
	h100, _ := machine.Lookup("h100")
	built, err := driver.Build(t.Context(), m, fn, driver.BuildOptions{Machine: h100, Arch: cudatest.Arch})
	if err != nil {
		t.Fatal(err)
	}
	cudatest.Compile(t, built)
	var file bytes.Buffer
	if err := built.Write(&file); err != nil {
		t.Fatal(err)
	}
	write(t, strings.TrimSuffix(path, ".dmir")+".dmx", file.String(), 0o644)
	args, err := interp.Inputs(t.Context(), fn, nil, 7, nil)
	if err != nil {
		t.Fatal(err)
	}
	want, err := interp.Run(t.Context(), m, fn, args, interp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := suite.Make(suite.Source{
		Class: "workloads", Args: args, Want: want.Outputs, Build: func(string) (*artifact.Program, error) { return built, nil },
		Within: func(int) suite.Within { return suite.Within{Most: 0.05, Length: 0.02, Scaled: true} },
	}, 7, cudatest.Arch)
	if err != nil {
		t.Fatal(err)
	}
	c.Name = "WorkloadCases_" + name
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
	files  map[string]int64 // in $OUT, with their sizes
	suite  []map[string]any
	lines  []map[string]any
}

// play runs scripts/gpu.sh; the variables make the stand-in fail. If until is
// set, play kills the script once the lines of workloads satisfy it.
func (s stage) play(t *testing.T, until func(lines int) bool, wrong ...string) played {
	t.Helper()
	out := t.TempDir()
	cmd := exec.Command("bash", "../../scripts/gpu.sh", "--small", "--runs", "3", "--limit", "4", "--only", "^("+strings.Join(rehearsed, "|")+")$")
	cmd.Env = append(append(append([]string{}, s.env...), "OUT="+out, "GPU_ARCHIVE="+s.archive, "TMPDIR="+t.TempDir()), wrong...)
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
			if until == nil || !until(len(workloadsOf(gather(t, out).lines))) {
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
	p := played{files: map[string]int64{}}
	found, err := filepath.Glob(filepath.Join(out, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range found {
		info, err := os.Stat(path)
		if err != nil {
			continue // a temporary name
		}
		p.files[filepath.Base(path)] = info.Size()
		switch filepath.Base(path) {
		case "log.txt":
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			p.log = string(text)
		case "suite.jsonl":
			p.suite = whole(t, path)
		case "gpu.jsonl":
			p.lines = whole(t, path)
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
			out[name], _ = line["dmir"].(map[string]any)
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

// TestRehearsal runs the whole of scripts/gpu.sh on the stand-in for a driver,
// without PyTorch: the normal case and every failure.
func TestRehearsal(t *testing.T) {
	need.Long(t)
	if testing.Short() {
		t.Skip("it builds programs")
	}
	s := setStage(t)
	row, product := rehearsed[:3], rehearsed[3]
	t.Run("success, one program not precompiled, no compiler", func(t *testing.T) {
		t.Parallel()
		p := s.play(t, nil)
		got := workloadsOf(p.lines)
		for _, name := range append(row, product) {
			if d := got[name]; d["ns"] == nil || d["failed"] != nil || d["checked_small"] != true || outcomes(p.suite)[name] != suite.Passed {
				t.Errorf("%s: %v, suite %s", name, d, outcomes(p.suite)[name])
			}
		}
		if why := fmt.Sprint(got[rehearsed[4]]["failed"]); !strings.Contains(why, "does not compile") || !strings.Contains(why, "NVRTC") {
			t.Errorf("program that is not precompiled: %s", why)
		}
		for _, name := range []string{"log.txt", "workers.log", "suite.jsonl", "gpu.jsonl", "gpu.json"} {
			if _, ok := p.files[name]; !ok {
				t.Errorf("there is no %s", name)
			}
		}
		if len(p.files) != 5 || p.status != 1 {
			t.Errorf("files %v, status %d\n%s", p.files, p.status, p.log)
		}
		for _, text := range []string{"eager is not available", "only dmir is timed", "device suite on NVIDIA Stand-in: 4 passed", "4 at small sizes with the reference", "skipped: predictions for this card", "predicted and measured", "published    median error"} {
			if !strings.Contains(p.log, text) {
				t.Errorf("the log lacks %q:\n%s", text, p.log)
			}
		}
	})
	t.Run("hang", func(t *testing.T) { // in the kernels of rows
		t.Parallel()
		p := s.play(t, nil, "STANDIN_HANG=k0_y/6,k0_d_x_d_s")
		hung, alone := 0, 0
		for _, name := range row {
			d := workloadsOf(p.lines)[name]
			if d["hung"] == true {
				hung++
			}
			if d["left_alone"] == true {
				alone++
			}
		}
		if hung != 2 || alone != 1 || workloadsOf(p.lines)[product]["ns"] == nil {
			t.Errorf("%d hung, %d skipped\n%v\n%s", hung, alone, workloadsOf(p.lines), p.log)
		}
		if n := strings.Count(fmt.Sprint(outcomes(p.suite)), suite.Hung); n != 2 {
			t.Errorf("the suite: %v", outcomes(p.suite))
		}
	})
	t.Run("fault, and no times", func(t *testing.T) {
		t.Parallel()
		p := s.play(t, nil, "STANDIN_FAULT=k0_d_x_d_s", "STANDIN_TIMING=400")
		got := workloadsOf(p.lines)
		if d := got[row[2]]; d["fault"] != true || !strings.Contains(fmt.Sprint(d["failed"]), "the kernel d_x_d_s (k0_d_x_d_s) failed: an illegal memory access") {
			t.Errorf("a fault: %v", d)
		}
		if d := got[product]; d["failed"] != nil || d["ns"] != nil || !strings.Contains(fmt.Sprint(d["untimed"]), "cuEventElapsedTime") {
			t.Errorf("without times: %v", d)
		}
		if o := outcomes(p.suite); o[row[2]] != suite.Faulted || o[product] != suite.Passed || o[row[0]] != suite.Passed {
			t.Errorf("the suite: %v", o)
		}
		if !strings.Contains(fmt.Sprint(p.suite), "rms_norm_1024_backward.dmir:9: the kernel d_x_d_s (k0_d_x_d_s) failed") {
			t.Errorf("the kernel is not named: %v", p.suite)
		}
	})
	t.Run("no driver", func(t *testing.T) {
		t.Parallel()
		p := s.play(t, nil, "STANDIN_INIT=999")
		for _, name := range append(row, product) {
			if why := fmt.Sprint(workloadsOf(p.lines)[name]["failed"]); !strings.Contains(why, "cuInit") {
				t.Errorf("%s: %s", name, why)
			}
		}
		if len(p.suite) != 1 || !strings.Contains(fmt.Sprint(p.suite[0]["failed"]), "cuInit") || p.status != 1 {
			t.Errorf("the suite %v, status %d", p.suite, p.status)
		}
	})
	t.Run("killed", func(t *testing.T) {
		t.Parallel()
		p := s.play(t, func(lines int) bool { return lines >= 2 })
		if got := workloadsOf(p.lines); len(got) < 2 || len(got) == len(rehearsed) || got[product]["ns"] == nil {
			t.Errorf("%v\n%s", got, p.log)
		}
		if o := outcomes(p.suite); len(o) != 4 {
			t.Errorf("the suite %v", o)
		}
		if _, ok := p.files["gpu.json"]; ok {
			t.Error("the run was not killed")
		}
	})
}
