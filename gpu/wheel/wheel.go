// Package wheel installs and finds libraries that Python packages carry.
package wheel

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"dmir/base/local"
)

// Install fetches Python packages with pip into the folder dir, whose content it replaces. The
// requirements are pip's, with exact versions and hashes, so that any index that pip uses provides these
// files or none. The error of a failing pip names what.
func Install(ctx context.Context, dir, what string, requirements []byte) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	// The folder is renamed when it is complete, since pip may be interrupted.
	fresh, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+"-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh)
	out, err := fetch(ctx, fresh, what, requirements)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		line, _, _ := strings.Cut(strings.TrimSpace(out), "\n")
		return fmt.Errorf("pip could not install %s on %s/%s: %s", what, runtime.GOOS, runtime.GOARCH, cmp.Or(line, err.Error()))
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Rename(fresh, dir)
}

// fetch runs pip to put the packages into the folder to, and returns its output.
func fetch(ctx context.Context, to, what string, requirements []byte) (output string, err error) {
	folder, err := local.NewWork()
	if err != nil {
		return "", err
	}
	defer folder.Remove()
	work := folder.Dir
	list := filepath.Join(work, "wheels.txt")
	if err := os.WriteFile(list, requirements, 0o600); err != nil {
		return "", err
	}
	if to, err = filepath.Abs(to); err != nil {
		return "", err
	}
	cmd, err := python(ctx, work, what, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "--no-deps",
		"--only-binary=:all:", "--require-hashes", "--target", to, "--requirement", list)
	if err != nil {
		return "", err
	}
	b, err := cmd.CombinedOutput()
	return string(b), err
}

// python is a command of the Python on PATH. It is isolated (-I) and runs in its
// own folder, so that it imports no module from the current folder, PYTHONPATH or
// the user's site.
func python(ctx context.Context, folder, what string, args ...string) (*exec.Cmd, error) {
	for _, name := range []string{"python3", "python", "py"} {
		path, err := exec.LookPath(name)
		if err != nil { // a Python in the current folder is an error too
			continue
		}
		if path, err = filepath.Abs(path); err != nil {
			return nil, err
		}
		cmd := exec.CommandContext(ctx, path, append([]string{"-I"}, args...)...)
		cmd.Dir = folder
		return cmd, nil
	}
	return nil, fmt.Errorf("pip is needed to fetch %s: install Python 3", what)
}
