package record

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Processor is what this machine's processor calls itself.
func Processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimSpace(strings.TrimLeft(name, "\t :"))
		}
	}
	return runtime.GOARCH
}

// Version is what a program says of its version, after its name: "mlir-opt, LLVM version 22.1.0".
func Version(path string) string {
	out, _ := exec.Command(path, "--version").Output()
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "version") {
			return filepath.Base(path) + ", " + strings.TrimSpace(line)
		}
	}
	return filepath.Base(path)
}
