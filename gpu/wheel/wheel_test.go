package wheel

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	cmd, err := python(t.Context(), t.TempDir(), "it", "-c", "import sys; print([p for p in sys.path if p in ('', '.')], sys.flags.isolated)")
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "[] 1" {
		t.Errorf("Python prints %s, %v", out, err)
	}
	if cmd, err = python(t.Context(), t.TempDir(), "it", "-m", "pip", "--version"); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Run() // it may have no pip
	if ran, err := os.ReadFile(mark); err == nil {
		t.Errorf("%s of this folder ran", ran)
	}
}
