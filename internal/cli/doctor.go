package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"context"
)

type doctorCmd struct{}

// tool is something dmir can use but does not need.
type tool struct {
	name  string
	adds  string
	get   string
	probe func(context.Context) (found string)
}

func tools() []tool {
	return []tool{
		{"CUDA driver", "a GPU to run on", "install the NVIDIA driver", library(driverNames)},
		{"NVRTC", "compilation of CUDA kernels without a toolkit", "pip install nvidia-cuda-nvrtc", library(nvrtcNames())},
		{"clang", "optimised native code on the CPU", "apt-get install clang", onPath("--version", "clang", "clang-22", "clang-19", "clang-16", "clang-14")},
		{"mlir-opt", "the interoperability tests with MLIR", "apt-get install mlir-22-tools", onPath("--version", "mlir-opt-22", "mlir-opt")},
	}
}

// Run lists the tools. None is needed, so the status is 0 whatever is missing.
func (doctorCmd) Run(a *app) error {
	fmt.Fprintf(a.stdout, "dmir %s on %s/%s, %d cores\n\n", version, runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "reference executor\tready\tbuilt in: runs every op, accumulates in f32 or wider\n")
	for _, t := range tools() {
		ctx, cancel := context.WithTimeout(a.ctx, 10*time.Second)
		found := t.probe(ctx)
		cancel()
		if found != "" {
			fmt.Fprintf(w, "%s\tfound\t%s\n", t.name, found)
		} else {
			fmt.Fprintf(w, "%s\tnot found\twould add %s: %s\n", t.name, t.adds, t.get)
		}
	}
	return w.Flush()
}

// onPath probes for the first of names on PATH and gives its version line.
func onPath(flag string, names ...string) func(context.Context) string {
	return func(ctx context.Context) string {
		for _, n := range names {
			path, err := exec.LookPath(n)
			if err != nil {
				continue
			}
			out, _ := exec.CommandContext(ctx, path, flag).Output()
			for line := range strings.Lines(string(out)) {
				if line = strings.TrimSpace(line); strings.Contains(strings.ToLower(line), "version") {
					return path + " (" + line + ")"
				}
			}
			return path
		}
		return ""
	}
}

var driverNames = []string{"libcuda.so.1", "nvcuda.dll"}

func nvrtcNames() []string {
	return []string{"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", "nvrtc64_130_0.dll", "nvrtc64_120_0.dll"}
}

// library probes the folders in which the dynamic linker and Python's wheels
// keep libraries.
func library(names []string) func(context.Context) string {
	return func(context.Context) string {
		var dirs []string
		for _, v := range []string{"LD_LIBRARY_PATH", "PATH"} {
			dirs = append(dirs, filepath.SplitList(os.Getenv(v))...)
		}
		dirs = append(dirs, "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib",
			"/usr/local/nvidia/lib64", "/usr/local/cuda/lib64", "/usr/lib/wsl/lib")
		for _, pattern := range []string{
			"/usr/lib/python3*/*-packages", "/usr/local/lib/python3*/*-packages",
			os.ExpandEnv("$HOME/.local/lib/python3*/site-packages"), os.ExpandEnv("$VIRTUAL_ENV/lib/python3*/site-packages"),
			os.ExpandEnv("$HOME/.pyenv/versions/*/lib/python3*/site-packages"),
		} {
			for _, sub := range []string{"nvidia/cuda_nvrtc/lib", "nvidia/cu13/lib"} {
				found, _ := filepath.Glob(filepath.Join(pattern, sub))
				dirs = append(dirs, found...)
			}
		}
		for _, d := range dirs {
			for _, n := range names {
				path := filepath.Join(d, n)
				if info, err := os.Stat(path); err == nil && !info.IsDir() {
					return path
				}
			}
		}
		return ""
	}
}
