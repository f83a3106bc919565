package nvrtc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"sync"

	"dmir/gpu/artifact"
	"dmir/gpu/wheel"
)

// Compiler is a compiler that was found.
type Compiler struct {
	Path    string // of the library or the program
	Version string // "NVRTC 13.5", "nvcc 12.8"
	Where   string // how it was found, for a person: "DMIR_NVRTC", "Python package", …
	lib     *library
}

// build is the version with the size of the file, which builds of one version
// differ in.
func (c *Compiler) build() string {
	info, err := os.Stat(c.Path)
	if err != nil { // a name that the system's linker found
		return c.Version
	}
	return fmt.Sprintf("%s, %d bytes", c.Version, info.Size())
}

// Archs lists the architectures that the compiler makes code for, as numbers
// (80, 90, 100); nil if it does not report them.
func (c *Compiler) Archs() []int {
	if c.lib == nil {
		return nil
	}
	return c.lib.supported()
}

// NotFound reports that there is no compiler here, and what was tried.
type NotFound struct {
	Tried []string // libraries that are there and could not be opened, with the reason
}

// Error is one line.
func (e *NotFound) Error() string {
	if len(e.Tried) > 0 {
		return "no CUDA compiler could be opened: " + strings.Join(e.Tried, "; ")
	}
	return "no CUDA compiler is installed (" + Hint + ")"
}

// Failure reports that the compiler is missing.
func (e *NotFound) Failure() artifact.Failure {
	return artifact.Failure{Reason: artifact.MissingTool, Help: "dmir doctor --install-nvrtc; or --arch none, for a file without machine code"}
}

// Hint describes how to get a compiler.
const Hint = "dmir doctor --install-nvrtc fetches NVRTC with pip; no GPU or toolkit is needed"

// Find finds a compiler, once for the process: NVRTC where the environment
// variable DMIR_NVRTC points (a library, or a folder with one), in the folder
// that Install fills, among Python's packages, in the CUDA toolkit, where the
// system's linker looks; then nvcc.
var Find = sync.OnceValues(find)

func find() (*Compiler, error) {
	var tried []string
	for _, p := range places() {
		for _, path := range p.libraries() {
			lib, err := openLibrary(path)
			if err == nil {
				var version string
				if version, err = lib.versionText(); err == nil {
					return &Compiler{Path: path, Version: version, Where: p.where, lib: lib}, nil
				}
			}
			if p.mayMiss {
				continue
			}
			tried = append(tried, err.Error())
		}
		if p.must && len(tried) == 0 {
			tried = append(tried, fmt.Sprintf("%s=%s names no NVRTC library", envLibrary, os.Getenv(envLibrary)))
		}
		if p.must {
			return nil, &NotFound{tried}
		}
	}
	if c, err := FindNvcc(); err == nil {
		return c, nil
	} else if !errors.Is(err, exec.ErrNotFound) {
		tried = append(tried, err.Error())
	}
	return nil, &NotFound{tried}
}

// envLibrary names the environment variable that overrides the search.
const envLibrary = "DMIR_NVRTC"

// place is a place to search.
type place struct {
	where   string
	dirs    []string
	names   []string // bare names for the system's linker; then dirs is empty
	must    bool     // nothing else is tried
	mayMiss bool     // failing to open is not reported
}

// libraries lists the libraries at the place, newest first.
func (p place) libraries() []string {
	if len(p.dirs) == 0 {
		return p.names
	}
	var out []string
	for _, d := range p.dirs {
		if info, err := os.Stat(d); err == nil && !info.IsDir() {
			out = append(out, d)
			continue
		}
		var here []string
		for _, pattern := range patterns() {
			found, _ := filepath.Glob(filepath.Join(d, pattern))
			for _, f := range found {
				if !strings.Contains(filepath.Base(f), "builtins") && !strings.Contains(filepath.Base(f), ".alt.") {
					here = append(here, f)
				}
			}
		}
		sort.Sort(sort.Reverse(sort.StringSlice(here)))
		out = append(out, here...)
	}
	return out
}

// patterns are the file names of NVRTC.
func patterns() []string {
	if runtime.GOOS == "windows" {
		return []string{"nvrtc64_*.dll"}
	}
	return []string{"libnvrtc.so.[0-9]*", "libnvrtc.so"}
}

// systemNames are the names of NVRTC for the system's linker.
func systemNames() []string {
	if runtime.GOOS == "windows" {
		return []string{"nvrtc64_130_0.dll", "nvrtc64_120_0.dll"}
	}
	return []string{"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}
}

// places lists where NVRTC is looked for, in order.
func places() []place {
	if path := os.Getenv(envLibrary); path != "" {
		return []place{{where: envLibrary, dirs: []string{path}, must: true}}
	}
	var out []place
	if dir, err := InstallDir(); err == nil {
		out = append(out, place{where: "installed by dmir doctor", dirs: wheelDirs(dir)})
	}
	var python []string
	for _, site := range wheel.SitePackages() {
		python = append(python, wheelDirs(site)...)
	}
	var toolkit []string
	for _, v := range []string{"CUDA_HOME", "CUDA_PATH"} {
		if dir := os.Getenv(v); dir != "" {
			toolkit = append(toolkit, toolkitDirs(dir)...)
		}
	}
	if nvcc, err := exec.LookPath("nvcc"); err == nil {
		toolkit = append(toolkit, toolkitDirs(filepath.Dir(filepath.Dir(nvcc)))...)
	}
	if dir := os.Getenv("CONDA_PREFIX"); filepath.IsAbs(dir) {
		toolkit = append(toolkit, toolkitDirs(dir)...)
	}
	toolkit = append(toolkit, toolkitDirs("/usr/local/cuda")...)
	return append(out,
		place{where: "Python package", dirs: python},
		place{where: "CUDA toolkit", dirs: toolkit},
		place{where: "system", names: systemNames(), mayMiss: true})
}

// wheelDirs are the folders of NVRTC in a folder of Python packages: those of
// the packages nvidia-cuda-nvrtc for CUDA 13, and nvidia-cuda-nvrtc-cu12.
func wheelDirs(site string) []string {
	var out []string
	for _, sub := range []string{"nvidia/cu13", "nvidia/cuda_nvrtc"} {
		for _, leaf := range []string{"lib", "bin", "bin/x86_64", "bin/x64"} {
			out = append(out, filepath.Join(site, filepath.FromSlash(sub), filepath.FromSlash(leaf)))
		}
	}
	return out
}

func toolkitDirs(root string) []string {
	return []string{filepath.Join(root, "lib64"), filepath.Join(root, "lib"), filepath.Join(root, "bin"), filepath.Join(root, "bin", "x64")}
}
