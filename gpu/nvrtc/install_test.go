package nvrtc

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// Python modules of the current folder and of PYTHONPATH are not run.
func TestPythonIsIsolated(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("needs Python 3")
	}
	here := t.TempDir()
	t.Chdir(here)
	t.Setenv("PYTHONPATH", here)
	t.Setenv("PYTHONSTARTUP", filepath.Join(here, "pip.py"))
	mark := filepath.Join(here, "ran")
	for _, name := range []string{"pip.py", "sitecustomize.py", "usercustomize.py", "os.py", "runpy.py"} {
		if err := os.WriteFile(name, fmt.Appendf(nil, "open(%q, 'a').write(%q)\n", mark, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll("pip", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("pip/__main__.py", fmt.Appendf(nil, "open(%q, 'a').write('pip')\n", mark), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, err := python(t.Context(), t.TempDir(), "-c", "import sys; print([p for p in sys.path if p in ('', '.')], sys.flags.isolated)")
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "[] 1" {
		t.Errorf("Python prints %s, %v", out, err)
	}
	if cmd, err = python(t.Context(), t.TempDir(), "-m", "pip", "--version"); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Run() // it may have no pip
	if ran, err := os.ReadFile(mark); err == nil {
		t.Errorf("%s of this folder ran", ran)
	}
}

// pip is called for these wheels by their hashes, and uses nothing of the current
// folder. A script replaces Python.
func TestFetch(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	bin, here := t.TempDir(), t.TempDir()
	log := filepath.Join(bin, "log")
	script := "#!/bin/sh\n{ pwd; echo \"$@\"; for a; do :; done; cat \"$a\"; } >" + log + "\necho 'no such wheel' >&2\nexit 1\n"
	if err := os.WriteFile(filepath.Join(bin, "python3"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":/bin:/usr/bin")
	t.Setenv("DMIR_CACHE", filepath.Join(here, "cache"))
	t.Chdir(here)
	if _, err := Install(t.Context()); err == nil || !strings.Contains(err.Error(), "no such wheel") {
		t.Errorf("error %v", err)
	}
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	folder, rest, _ := strings.Cut(string(b), "\n")
	args, list, _ := strings.Cut(rest, "\n")
	if folder == here || !strings.HasPrefix(args, "-I -m pip install ") || list != string(wheels) {
		t.Errorf("in %s: %s\n%s", folder, args, list)
	}
	for _, flag := range []string{" --require-hashes ", " --no-deps ", " --only-binary=:all: ", " --no-input "} {
		if !strings.Contains(args, flag) {
			t.Errorf("without %s: %s", flag, args)
		}
	}
	if _, err := os.Stat(folder); err == nil {
		t.Errorf("%s is left", folder)
	}
	if left, _ := os.ReadDir(filepath.Join(here, "cache")); len(left) > 0 {
		t.Errorf("the cache holds %v", left)
	}
}

// Every package is one version with the hashes of three platforms' wheels, and
// the script takes its packages from the same lists.
func TestWheels(t *testing.T) {
	entry := regexp.MustCompile(`(?m)^nvidia-[a-z-]+==[0-9.]+( \\\n    --hash=sha256:[0-9a-f]{64}){3}\n`)
	versions := map[string]bool{}
	for file, n := range map[string]int{"wheels.txt": 2, "wheels-nvcc.txt": 4} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := entry.FindAllString(string(b), -1)
		if len(found) != n || strings.Count(string(b), "==") != n {
			t.Errorf("%s holds %d packages: %q", file, len(found), found)
		}
		for _, f := range found {
			_, version, _ := strings.Cut(f, "==")
			version, _, _ = strings.Cut(version, " ")
			versions[version] = true
		}
	}
	if len(versions) != 1 {
		t.Errorf("they are of several versions: %v", versions)
	}
	script, err := os.ReadFile("../../scripts/setup-nvrtc.sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"gpu/nvrtc/wheels.txt", "gpu/nvrtc/wheels-nvcc.txt", "--require-hashes", "python3 -I -m pip"} {
		if !strings.Contains(string(script), want) {
			t.Errorf("setup-nvrtc.sh: no %s", want)
		}
	}
	if strings.Contains(string(script), "==") || strings.Contains(string(script), ">=13") {
		t.Error("setup-nvrtc.sh names versions of its own")
	}
}
