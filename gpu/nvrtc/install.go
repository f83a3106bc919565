package nvrtc

import (
	"context"
	_ "embed"
	"fmt"
	"runtime"

	"dmir/base/local"
	"dmir/gpu/wheel"
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
	if err := wheel.Install(ctx, dir, "NVRTC and nvdisasm", wheels); err != nil {
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
