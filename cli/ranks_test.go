package cli_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dmir/testkit/need"
)

const divided = `dm.mesh @pod {data = 2, model = 2}
func.func @step(%x: tensor<4x8xf32, #dm.at<split = @pod[{data}, {}]>>, %w: tensor<8x16xf32, #dm.at<split = @pod[{}, {model}]>> {dm.stddev = 0.1}, %v: tensor<16x8xf32>) -> (tensor<4x8xf32>, tensor<8x16xf32, #dm.at<split = @pod[{}, {model}]>> {dm.state = "w"}) {
  %0 = dm.matmul %x, %w : (tensor<4x8xf32, #dm.at<split = @pod[{data}, {}]>>, tensor<8x16xf32, #dm.at<split = @pod[{}, {model}]>>) -> tensor<4x16xf32>
  %1 = dm.gelu %0 : tensor<4x16xf32>
  %2 = dm.matmul %1, %v : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  %y = dm.softmax %2 : tensor<4x8xf32>
  %next = dm.add %w, %w : tensor<8x16xf32, #dm.at<split = @pod[{}, {model}]>>
  return %y, %next : tensor<4x8xf32>, tensor<8x16xf32, #dm.at<split = @pod[{}, {model}]>>
}
`

// checked is a program whose check fails.
const checked = `dm.mesh @pod {data = 2}
func.func @main() {
  %a = dm.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %b = dm.constant dense<[1.0, 3.0]> : tensor<2xf32>
  %c = dm.reshard %a : (tensor<2xf32>) -> tensor<2xf32, #dm.at<split = @pod[{data}]>>
  %d = dm.add %c, %c : tensor<2xf32, #dm.at<split = @pod[{data}]>>
  check.expect_eq %d, %b : tensor<2xf32>
  return
}
`

// job is the processes of one mpirun.
type job struct {
	out []byte
	err error
}

// onRanks runs a shell script on n processes in dir, in which $dmir is the command and $RANK the
// number of the process. No process of it is left.
func onRanks(t *testing.T, mpirun string, n int, dir, script string) job {
	t.Helper()
	dmir := need.Command(t)
	args := []string{"-n", fmt.Sprint(n), "sh", "-c", `RANK=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}; ` + script}
	if filepath.Base(mpirun) == "mpirun.openmpi" {
		args = append([]string{"--oversubscribe"}, args...)
	}
	cmd := exec.Command(mpirun, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "dmir="+dmir, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "DMIR_THREADS=1")
	var j job
	j.out, j.err = cmd.CombinedOutput()
	pids, _ := filepath.Glob(filepath.Join(dir, "pid.*"))
	for _, path := range pids {
		pid, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		os.Remove(path)
		gone(t, strings.TrimSpace(string(pid)))
	}
	return j
}

// gone waits for the end of a process that mpirun has ended.
func gone(t *testing.T, pid string) {
	t.Helper()
	for range 600 {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("process %s is left", pid)
}

func launchers(t *testing.T) []string {
	return []string{need.Tool(t, "mpirun.openmpi", "apt-get install openmpi-bin"), need.Tool(t, "mpirun.mpich", "apt-get install mpich")}
}

// launcherOf is the one of the launchers that case i of a table has in turn, or both.
func launcherOf(t *testing.T, i int) (own []string) {
	t.Helper()
	for k, mpirun := range launchers(t) {
		if need.Turn(t, i+k, 2) {
			own = append(own, mpirun)
		}
	}
	return own
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestRanks: a compiled file runs with a process for each device, with pieces from files and to
// files, and in steps with checkpoints that one process writes.
func TestRanks(t *testing.T) {
	need.Long(t)
	need.Tool(t, "clang", "apt-get install clang")
	dmir := need.Command(t)
	for _, mpirun := range launcherOf(t, 0) {
		t.Run(filepath.Base(mpirun), func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, "step.dmir", divided)
			alone := func(args ...string) {
				t.Helper()
				cmd := exec.Command(dmir, args...)
				cmd.Dir = dir
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%v: %v\n%s", args, err, out)
				}
			}
			ranks := func(script string) string {
				t.Helper()
				j := onRanks(t, mpirun, 4, dir, script)
				if j.err != nil {
					t.Fatalf("%s: %v\n%s", script, j.err, j.out)
				}
				return string(j.out)
			}
			same := func(a, b string) {
				t.Helper()
				x, err1 := os.ReadFile(filepath.Join(dir, a))
				y, err2 := os.ReadFile(filepath.Join(dir, b))
				if err1 != nil || err2 != nil || string(x) != string(y) {
					t.Errorf("%s and %s differ: %v %v", a, b, err1, err2)
				}
			}
			alone("compile", "--devices", "4", "--arch", "x86-64-v2", "-o", "step.dmx", "step.dmir")
			alone("run", "--runs", "0", "--output", "one", "step.dmx")
			out := ranks(`$dmir run --runs 0 --output whole step.dmx`)
			if n := strings.Count(out, "ran @step on"); n != 1 || !strings.Contains(out, "one process each, by mpirun") {
				t.Errorf("%d processes report:\n%s", n, out)
			}
			same("one/y.npy", "whole/y.npy")
			alone("run", "--runs", "0", "--pieces", "--output", "pieces", "step.dmx")
			ranks(`$dmir run --runs 0 --pieces --output parts step.dmx`)
			ranks(`$dmir run --pieces --output text step.dmir`)
			for k := range 4 {
				same(fmt.Sprintf("pieces/next.%d.npy", k), fmt.Sprintf("parts/next.%d.npy", k))
				same(fmt.Sprintf("text/next.%d.npy", k), fmt.Sprintf("parts/next.%d.npy", k))
			}
			ranks(`$dmir run --runs 0 --input w=parts/next.{device}.npy --pieces --output again step.dmx`)
			alone("run", "--devices", "4", "--input", "w=whole/next.npy", "--pieces", "--output", "once", "step.dmir")
			same("again/next.3.npy", "once/next.3.npy")
			for _, file := range []string{"step.dmir", "step.dmx"} {
				kept := "kept-" + filepath.Ext(file)
				ranks(`$dmir run --steps 2 --checkpoint ` + kept + ` ` + file)
				ranks(`$dmir run --steps 3 --checkpoint ` + kept + ` --resume --output ` + kept + `-end ` + file)
			}
			same("kept-.dmir-end/next.npy", "kept-.dmx-end/next.npy")
		})
	}
}

// tied is the binary, and a training step in four stages with tied weights.
func tied(t *testing.T) (dmir, text string) {
	t.Helper()
	dmir = need.Command(t)
	step, err := os.ReadFile("../compile/stages/testdata/tied.dmir")
	if err != nil {
		t.Fatal(err)
	}
	return dmir, string(step)
}

// TestPipelineRanks: the stages of a pipeline run in a process for each device, and make the state that they make in
// one process; a checkpoint and whole results are written by the first process. Of a loop over layers each process has a part of
// the stacked weights.
func TestPipelineRanks(t *testing.T) {
	need.Long(t)
	dmir, text := tied(t)
	loop, err := os.ReadFile("../compile/stages/testdata/layers.dmir")
	if err != nil {
		t.Fatal(err)
	}
	over := strings.NewReplacer("pipe = 4", "pipe = 2, data = 2", "1f1b", "zb-v", "!x = tensor<8x6xf64>", "!x = tensor<8x6xf64, #dm.at<split = @plan[{data}, {}]>>")
	cut := strings.NewReplacer("pipe = 4", "pipe = 2, data = 2", "dm.stages = 4", "dm.stages = 2", "(%x: !x, %y", "(%x: !x {dm.sharding = #dm.at<split = @plan[{data}, {}]>}, %y")
	states := []string{"loss", "next.0", "next.3", "m2.1", "n2"}
	stacks := []string{"loss", "in1", "w1", "db", "v1"}
	made := t.TempDir()
	put(t, made, "step.dmir", text)
	put(t, made, "data.dmir", over.Replace(text))
	put(t, made, "loop.dmir", string(loop))
	put(t, made, "cut.dmir", cut.Replace(string(loop)))
	alone := func(args ...string) {
		t.Helper()
		cmd := exec.Command(dmir, args...)
		cmd.Dir = made
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	alone("compile", "--devices", "4", "--arch", "x86-64-v2", "-o", "cut.dmx", "cut.dmir")
	alone("run", "--device", "reference", "--steps", "3", "--output", "whole", "loop.dmir")
	for i, c := range []struct {
		file, device string
		results      []string
		whole        bool // compared with what one device makes of the loop, too
	}{
		{"step.dmir", "reference", states, false}, {"data.dmir", "reference", states, false}, {"step.dmir", "cpu", states, false},
		{"loop.dmir", "reference", stacks, true}, {"cut.dmx", "cpu", stacks, true},
	} {
		one, ranked := c.file+"-"+c.device+"-one", c.file+"-"+c.device+"-ranks"
		args := []string{"run", "--device", c.device, "--steps", "3", "--output", one, c.file}
		if !strings.HasSuffix(c.file, ".dmx") {
			args = append(args, "--devices", "4")
		}
		alone(args...)
		for _, mpirun := range launcherOf(t, i) {
			t.Run(filepath.Base(mpirun)+"/"+c.file+" on "+c.device, func(t *testing.T) {
				dir := t.TempDir()
				if err := os.CopyFS(dir, os.DirFS(made)); err != nil {
					t.Fatal(err)
				}
				run := "$dmir run --checkpoint kept --device " + c.device
				for _, script := range []string{run + " --steps 2 " + c.file, run + " --steps 3 --resume --output " + ranked + " " + c.file} {
					if j := onRanks(t, mpirun, 4, dir, script); j.err != nil || strings.Count(string(j.out), "on "+c.device+" (4 devices, ") != 1 {
						t.Fatalf("%s: %v\n%s", script, j.err, j.out)
					}
				}
				for _, file := range c.results {
					got := filepath.Join(dir, ranked, file+".npy")
					want, err1 := os.ReadFile(filepath.Join(dir, one, file+".npy"))
					text, err2 := os.ReadFile(got)
					if err1 != nil || err2 != nil || string(want) != string(text) {
						t.Errorf("%s differs: %v %v", file, err1, err2)
					}
					if c.whole {
						near(t, filepath.Join(dir, "whole", file+".npy"), got, 1e-12)
					}
				}
			})
		}
	}
}

// near compares the numbers, of f64, in two files.
func near(t *testing.T, want, got string, within float64) {
	t.Helper()
	a, b := npy(t, want), npy(t, got)
	if len(a) == 0 || len(a) != len(b) {
		t.Fatalf("%s has %d bytes, %s %d", want, 4*len(a), got, 4*len(b))
	}
	for i := 0; i < len(a); i += 2 {
		x, y := math.Float64frombits(uint64(a[i+1])<<32|uint64(a[i])), math.Float64frombits(uint64(b[i+1])<<32|uint64(b[i]))
		if !(math.Abs(x-y) <= within) {
			t.Fatalf("%s: element %d is %v, want %v", got, i/2, y, x)
		}
	}
}

// TestPlannedRanks: a step with a plan in its text runs in a process for each device and makes what it makes
// without the plan on one.
func TestPlannedRanks(t *testing.T) {
	need.Long(t)
	dmir := need.Command(t)
	example, err := filepath.Abs("../examples/transformer_train.dmir")
	if err != nil {
		t.Fatal(err)
	}
	alone := func(t *testing.T, dir, line string) {
		t.Helper()
		cmd := exec.Command(dmir, strings.Fields(line)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
	whole := t.TempDir()
	alone(t, whole, "run --device reference --steps 3 --output one "+example)
	for i, setting := range []string{
		"--data 4 --states split",
		"--data 2 --tensor 2 --pipe 1 --microbatches 2",
		"--pipe 2 --data 2 --microbatches 2 --schedule 1f1b",
		"--pipe 2 --data 2 --microbatches 2 --schedule zb-h1 --states split",
		"--pipe 2 --tensor 2 --microbatches 4 --schedule gpipe --recompute full",
	} {
		if !need.Turn(t, i, 3) { // compile/differential runs planned steps on devices of one process
			continue
		}
		t.Run(setting, func(t *testing.T) {
			for _, mpirun := range launcherOf(t, i) {
				t.Run(filepath.Base(mpirun), func(t *testing.T) {
					dir := t.TempDir()
					alone(t, dir, "plan --devices 4 --target dgx-h100 -o step.dmir "+setting+" "+example)
					j := onRanks(t, mpirun, 4, dir, "$dmir run --device reference --steps 3 --output ranks step.dmir")
					if j.err != nil || strings.Count(string(j.out), "one process each, by mpirun") != 1 {
						t.Fatalf("%v\n%s", j.err, j.out)
					}
					files, err := filepath.Glob(filepath.Join(whole, "one", "*.npy"))
					if err != nil || len(files) != 29 {
						t.Fatalf("%d results: %v", len(files), err)
					}
					for _, file := range files {
						one, ranks := npy(t, file), npy(t, filepath.Join(dir, "ranks", filepath.Base(file)))
						if len(one) != len(ranks) || strings.HasPrefix(filepath.Base(file), "step") && !slices.Equal(one, ranks) {
							t.Fatalf("%s is %v, on one device %v", filepath.Base(file), ranks, one)
						}
						for i := range one {
							a, b := math.Float32frombits(one[i]), math.Float32frombits(ranks[i])
							if d := math.Abs(float64(a) - float64(b)); !(d <= 1e-4) {
								t.Errorf("%s: element %d is %v, on one device %v", filepath.Base(file), i, b, a)
								break
							}
						}
					}
				})
			}
		})
	}
}

// npy is the bits of the elements in a file, of 4 bytes each.
func npy(t *testing.T, path string) []uint32 {
	t.Helper()
	all, err := os.ReadFile(path)
	if err != nil || len(all) < 10 {
		t.Fatalf("%s: %d bytes, %v", path, len(all), err)
	}
	data := all[10+int(binary.LittleEndian.Uint16(all[8:])):]
	out := make([]uint32, len(data)/4)
	for i := range out {
		out[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	return out
}

// stopped sends a signal to process 2 when steps are made.
func stopped(signal string) string {
	return `[ $RANK = 2 ] && { own=$$; (while ! [ -s log.csv ]; do sleep 0.1; done; kill -` + signal + ` $own) & }; `
}

// TestRankFailures: whatever goes wrong, every process ends, and the command writes one
// diagnostic.
func TestRankFailures(t *testing.T) {
	need.Long(t)
	need.Tool(t, "clang", "apt-get install clang")
	dmir := need.Command(t)
	made := t.TempDir()
	put(t, made, "step.dmir", divided)
	put(t, made, "other.dmir", strings.Replace(divided, "gelu", "relu", 1))
	put(t, made, "bad.dmir", "func.func @f( {")
	put(t, made, "checked.dmir", checked)
	for _, args := range [][]string{
		{"compile", "--devices", "4", "--arch", "x86-64-v2", "-o", "step.dmx", "step.dmir"},
		{"run", "--devices", "4", "--pieces", "--output", "pieces", "step.dmir"},
	} {
		cmd := exec.Command(dmir, args...)
		cmd.Dir = made
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	os.Remove(filepath.Join(made, "pieces/next.2.npy"))
	const started = `echo $$ > pid.$RANK; `
	for i, c := range []struct {
		name, script, want string
		n                  int
	}{
		{"the same error of syntax", started + `exec $dmir run bad.dmir`, "bad.dmir:1:", 4},
		{"no such file", started + `exec $dmir run none.dmir`, "error[DM601]", 4},
		{"an unknown flag", started + `exec $dmir run --unknown step.dmir`, "unknown flag --unknown", 4},
		{"too few processes", started + `exec $dmir run step.dmir`, "error[DM830]", 2},
		{"too few processes for a compiled file", started + `exec $dmir run --runs 0 step.dmx`, "error[DM830]", 2},
		{"one process without its file", started + `[ $RANK = 2 ] && exec $dmir run none.dmir; exec $dmir run step.dmir`, "none.dmir: error[DM601]", 4},
		{"another program", started + `[ $RANK = 3 ] && exec $dmir run other.dmir; exec $dmir run step.dmir`, "rank 3 runs another program", 4},
		{"another compiled file", started + `[ $RANK = 1 ] && exec $dmir run --runs 0 --seed 2 step.dmx; exec $dmir run --runs 0 step.dmx`, "rank 1 runs another program", 4},
		{"a check that fails on all", started + `exec $dmir run checked.dmir`, "error[DM709]", 2},
		{"a piece that is missing", started + `exec $dmir run --input w=pieces/next.{device}.npy step.dmir`, "next.2.npy: error[DM601]", 4},
		{"a process that hangs", started + stopped("STOP") + `exec $dmir run --timeout 2s --steps 10000000 --log log.csv step.dmir`, "rank 2 has ended, hangs or takes too long", 4},
		{"a compiled process that hangs", started + stopped("STOP") + `exec $dmir run --timeout 2s --steps 10000000 --log log.csv step.dmx`, "rank 2 has ended, hangs or takes too long", 4},
		{"a process that is killed", started + stopped("KILL") + `exec $dmir run --steps 10000000 --log log.csv step.dmir`, "", 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, mpirun := range launcherOf(t, i) {
				t.Run(filepath.Base(mpirun), func(t *testing.T) {
					dir := t.TempDir()
					if err := os.CopyFS(dir, os.DirFS(made)); err != nil {
						t.Fatal(err)
					}
					j := onRanks(t, mpirun, c.n, dir, c.script)
					out := string(j.out)
					if j.err == nil || !strings.Contains(out, c.want) {
						t.Errorf("%v, want %q:\n%s", j.err, c.want, out)
					}
					if c.want == "" { // the launcher has ended the others before they found out
						if !strings.Contains(out, "signal 9") {
							t.Errorf("the launcher does not report it:\n%s", out)
						}
						return
					}
					if n := strings.Count(out, "error[") + strings.Count(out, "dmir: error: "); n != 1 {
						t.Errorf("%d diagnostics:\n%s", n, out)
					}
				})
			}
		})
	}
}

// TestRanksEndTogether: where one process is told to end, all do, after a checkpoint from which the run goes on to the
// same state; where one cannot write, all end with its report.
func TestRanksEndTogether(t *testing.T) {
	need.Long(t)
	dmir, text := tied(t)
	for _, mpirun := range launcherOf(t, 1) {
		t.Run(filepath.Base(mpirun), func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, "step.dmir", text)
			told := `if [ "$RANK" = 2 ]; then (until ls kept/*.npz >/dev/null 2>&1; do sleep 0.1; done; kill -TERM $$) & fi
exec $dmir run --timeout 2m --steps 1000000 --checkpoint kept --every 3 step.dmir`
			j := onRanks(t, mpirun, 4, dir, told)
			var at int
			_, after, found := strings.Cut(string(j.out), "interrupted after step ")
			if _, err := fmt.Sscan(after, &at); j.err == nil || !found || err != nil || strings.Contains(after, "interrupted") {
				t.Fatalf("%v\n%s", j.err, j.out)
			}
			steps := fmt.Sprint(at + 1)
			if j := onRanks(t, mpirun, 4, dir, "$dmir run --steps "+steps+" --checkpoint kept --resume --output again step.dmir"); j.err != nil {
				t.Fatalf("%v\n%s", j.err, j.out)
			}
			cmd := exec.Command(dmir, "run", "--devices", "4", "--steps", steps, "--output", "one", "step.dmir")
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, file := range []string{"one/next.1.npy", "one/m2.3.npy"} {
				want, err1 := os.ReadFile(filepath.Join(dir, file))
				got, err2 := os.ReadFile(filepath.Join(dir, "again", filepath.Base(file)))
				if err1 != nil || err2 != nil || string(want) != string(got) {
					t.Errorf("%s differs after step %s: %v %v", file, steps, err1, err2)
				}
			}
			j = onRanks(t, mpirun, 4, dir, "$dmir run --timeout 2m --steps 100 --log /dev/full step.dmir")
			if j.err == nil || strings.Count(string(j.out), "error[DM603]") != 1 || !strings.Contains(string(j.out), "no space left on device") {
				t.Errorf("%v\n%s", j.err, j.out)
			}
		})
	}
}

// The batch file of Slurm that a plan is exported as runs the step on as many processes as the plan has devices.
func TestSlurm(t *testing.T) {
	need.Long(t)
	dmir := need.Command(t)
	example, err := filepath.Abs("../examples/transformer_train.dmir")
	if err != nil {
		t.Fatal(err)
	}
	for _, mpirun := range launcherOf(t, 0) {
		t.Run(filepath.Base(mpirun), func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "mpirun"), []byte("#!/bin/sh\nexec "+mpirun+" \"$@\"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(example, filepath.Join(dir, "step.dmir")); err != nil {
				t.Fatal(err)
			}
			run := func(name string, args ...string) ([]byte, error) {
				cmd := exec.Command(name, args...)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "DMIR="+dmir, "SLURM_NTASKS=4", "STEPS=2", "OMPI_ALLOW_RUN_AS_ROOT=1",
					"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_rmaps_base_oversubscribe=1", "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe", "DMIR_THREADS=1")
				return cmd.CombinedOutput()
			}
			const plan = "plan --devices 4 --target dgx-h100 --data 2 --tensor 2 step.dmir "
			for _, more := range []string{"--export slurm -o run.sh", "-o step.planned.dmir"} {
				if out, err := run(dmir, strings.Fields(plan+more)...); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
			}
			out, err := run("bash", "run.sh")
			if err != nil || !strings.Contains(string(out), "made 2 steps of @train") || !strings.Contains(string(out), "one process each, by mpirun") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
