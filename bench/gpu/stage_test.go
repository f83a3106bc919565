//go:build unix

package gpu_test

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/compile/driver"
	"dmir/compile/suite"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
	"dmir/gpu/cuda/cudatest"
	"dmir/syntax/source"
	"dmir/testkit/need"
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
	if out, err := exec.Command("cp", need.Command(t), filepath.Join(root, "dmir")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.Command("go", "build", "-o", filepath.Join(root, "suite"), "dmir/bench/gpu/suite").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
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
status=$?
log=${log/\%p/$$}
echo "========= COMPUTE-SANITIZER" >"$log"
if [ -n "${SANITIZER_FINDS:-}" ] && [[ $* =~ $SANITIZER_FINDS ]]; then
  echo "========= Invalid __global__ read of size 4 bytes" >>"$log"
  echo "========= ERROR SUMMARY: 1 error" >>"$log"
  [ $status = 0 ] && exit 77
fi
exit $status
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
