package record

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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

var noName = regexp.MustCompile(`[^A-Za-z0-9]+`)

// Named is path with a processor and a day in place of MODEL and DATE.
func Named(path, processor, date string) string {
	model := strings.Trim(noName.ReplaceAllString(strings.ReplaceAll(processor, "(R)", ""), "-"), "-")
	return strings.NewReplacer("MODEL", strings.ToLower(model), "DATE", date).Replace(path)
}

// Load is how many processes have run on average over the last minute, those of a benchmark included; "" where the system does not say.
func Load() string {
	text, _ := os.ReadFile("/proc/loadavg")
	minute, _, _ := strings.Cut(string(text), " ")
	return minute
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
