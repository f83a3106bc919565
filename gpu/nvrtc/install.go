package nvrtc

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"dmir/internal/local"
)

// wheels are Python packages as pip's requirements: one holds NVRTC and nothing
// else, one nvdisasm, which prints what it compiles. Their versions and hashes
// are pinned, so that any index that pip uses provides these files or none.
//
//go:embed wheels.txt
var wheels []byte

// InstallDir is the folder that Install fills. scripts/setup-nvrtc.sh uses the
// same.
func InstallDir() (string, error) { return local.CacheDir("cuda") }

// Install fetches the Python packages of NVRTC and nvdisasm with pip into
// InstallDir, and opens what it got. The packages are NVIDIA's, under NVIDIA's
// licence.
func Install(ctx context.Context) (*Compiler, error) {
	dir, err := InstallDir()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, err
	}
	// The folder is renamed when it is complete, since pip may be interrupted.
	fresh, err := os.MkdirTemp(filepath.Dir(dir), ".cuda-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(fresh)
	out, err := fetch(ctx, fresh)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("pip could not install NVRTC and nvdisasm on %s/%s: %s", runtime.GOOS, runtime.GOARCH, cmp.Or(firstLine(out), err.Error()))
	}
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if err := os.Rename(fresh, dir); err != nil {
		return nil, err
	}
	found := place{dirs: wheelDirs(dir)}.libraries()
	if len(found) == 0 {
		return nil, fmt.Errorf("NVIDIA's package holds no NVRTC library for %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	lib, err := openLibrary(found[0])
	if err != nil {
		return nil, err
	}
	version, err := lib.versionText()
	if err != nil {
		return nil, err
	}
	return &Compiler{Path: found[0], Version: version, Where: "installed by dmir doctor", lib: lib}, nil
}

// fetch runs pip to put the wheels into the folder to, and returns its output.
func fetch(ctx context.Context, to string) (output string, err error) {
	folder, err := local.NewWork()
	if err != nil {
		return "", err
	}
	defer folder.Remove()
	work := folder.Dir
	list := filepath.Join(work, "wheels.txt")
	if err := os.WriteFile(list, wheels, 0o600); err != nil {
		return "", err
	}
	if to, err = filepath.Abs(to); err != nil {
		return "", err
	}
	cmd, err := python(ctx, work, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "--no-deps",
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
func python(ctx context.Context, folder string, args ...string) (*exec.Cmd, error) {
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
	return nil, errors.New("pip is needed to fetch NVRTC: install Python 3")
}
