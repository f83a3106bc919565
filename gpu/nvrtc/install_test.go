package nvrtc

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

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
	for _, want := range []string{"gpu/nvrtc/wheels.txt", "gpu/nvrtc/wheels-nvcc.txt", "pip_folder"} {
		if !strings.Contains(string(script), want) {
			t.Errorf("setup-nvrtc.sh: no %s", want)
		}
	}
	if strings.Contains(string(script), "==") || strings.Contains(string(script), ">=13") {
		t.Error("setup-nvrtc.sh names versions of its own")
	}
}
