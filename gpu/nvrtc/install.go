package nvrtc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"dmir/internal/local"
)

// wheels are Python packages: one holds NVRTC and nothing else, one nvdisasm,
// which prints what it compiles.
var wheels = []string{"nvidia-cuda-nvrtc>=13,<14", "nvidia-cuda-nvdisasm>=13,<14"}

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
	// A folder that is renamed when it is whole: pip is stopped half way otherwise.
	fresh, err := os.MkdirTemp(filepath.Dir(dir), ".cuda-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(fresh)
	python := ""
	for _, name := range []string{"python3", "python", "py"} {
		if python, err = exec.LookPath(name); err == nil {
			break
		}
	}
	if err != nil {
		return nil, errors.New("pip is needed to fetch NVRTC: install Python 3")
	}
	cmd := exec.CommandContext(ctx, python, append([]string{"-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input",
		"--no-deps", "--only-binary=:all:", "--target", fresh}, wheels...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("pip could not install %s on %s/%s: %s", strings.Join(wheels, " and "), runtime.GOOS, runtime.GOARCH, firstLine(out.String()))
	}
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if err := os.Rename(fresh, dir); err != nil {
		return nil, err
	}
	found := place{dirs: wheelDirs(dir)}.libraries()
	if len(found) == 0 {
		return nil, fmt.Errorf("the package %s holds no NVRTC library for %s/%s", wheels[0], runtime.GOOS, runtime.GOARCH)
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
