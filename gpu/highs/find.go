package highs

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"dmir/base/local"
	"dmir/gpu/wheel"
)

// wheels is the Python package that carries HiGHS, as pip's requirements.
//
//go:embed wheels.txt
var wheels []byte

// envLibrary names the environment variable that overrides the search: a library, or a folder with one.
const envLibrary = "DMIR_HIGHS"

// Hint describes how to get HiGHS.
const Hint = "dmir doctor --install-highs fetches HiGHS with pip"

// NotFound reports that there is no library here, and what was tried.
type NotFound struct {
	Tried []string // libraries that are there and could not be opened, with the reason
}

// Error is one line.
func (e *NotFound) Error() string {
	if len(e.Tried) > 0 {
		return "HiGHS could not be opened: " + strings.Join(e.Tried, "; ")
	}
	return "HiGHS is not installed (" + Hint + ")"
}

// InstallDir is the folder that Install fills. scripts/setup-highs.sh uses the same.
func InstallDir() (string, error) { return local.CacheDir("highs") }

// Install fetches the Python package of HiGHS with pip into InstallDir, and opens the library.
func Install(ctx context.Context) (*Library, error) {
	dir, err := InstallDir()
	if err != nil {
		return nil, err
	}
	if err := wheel.Install(ctx, dir, "HiGHS", wheels); err != nil {
		return nil, err
	}
	found := libraries(packageDirs(dir))
	if len(found) == 0 {
		return nil, fmt.Errorf("the package holds no HiGHS library for %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	return Open(found[0])
}

// Find finds HiGHS, once for the process: where the environment variable DMIR_HIGHS points, in the folder
// that Install fills, among Python's packages, and where the system's linker looks.
var Find = sync.OnceValues(find)

func find() (*Library, error) {
	none := &NotFound{}
	try := func(paths []string) *Library {
		for _, path := range paths {
			lib, err := Open(path)
			if err == nil {
				return lib
			}
			none.Tried = append(none.Tried, err.Error())
		}
		return nil
	}
	if path := os.Getenv(envLibrary); path != "" {
		if lib := try(libraries([]string{path})); lib != nil {
			return lib, nil
		}
		if len(none.Tried) == 0 {
			none.Tried = append(none.Tried, fmt.Sprintf("%s=%s names no HiGHS library", envLibrary, path))
		}
		return nil, none
	}
	var dirs []string
	if dir, err := InstallDir(); err == nil {
		dirs = append(dirs, packageDirs(dir)...)
	}
	for _, site := range wheel.SitePackages() {
		dirs = append(dirs, packageDirs(site)...)
	}
	if lib := try(libraries(dirs)); lib != nil {
		return lib, nil
	}
	for _, name := range names() {
		if lib, err := Open(name); err == nil { // the system need not have it
			return lib, nil
		}
	}
	return nil, none
}

// libraries lists the libraries in folders. A path of a file stands for itself.
func libraries(paths []string) []string {
	var out []string
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			continue
		}
		if !info.IsDir() {
			out = append(out, p)
			continue
		}
		for _, name := range names() {
			file := filepath.Join(p, name)
			if _, err := os.Stat(file); err == nil && !slices.Contains(out, file) {
				out = append(out, file)
			}
		}
	}
	return out
}

// names are the file names of HiGHS.
func names() []string {
	switch runtime.GOOS {
	case "windows":
		return []string{"highs.dll"}
	case "darwin":
		return []string{"libhighs.dylib", "libhighs.1.dylib"}
	}
	return []string{"libhighs.so", "libhighs.so.1"}
}

// packageDirs are the folders of HiGHS in a folder of Python packages.
func packageDirs(site string) []string {
	dist := filepath.Join(site, "highsbox", "highs_dist")
	return []string{filepath.Join(dist, "lib"), filepath.Join(dist, "lib64"), filepath.Join(dist, "bin")}
}
