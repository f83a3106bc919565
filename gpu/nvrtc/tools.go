package nvrtc

import (
	"os"
	"os/exec"
	"path/filepath"

	"dmir/gpu/wheel"
)

// toolPath finds one of NVIDIA's programs: on PATH, in the CUDA toolkit, in the
// folder that Install fills, among Python's packages. The error is
// exec.ErrNotFound if it is in none.
func toolPath(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	var dirs []string
	for _, root := range []string{os.Getenv("CUDA_HOME"), os.Getenv("CUDA_PATH"), "/usr/local/cuda"} {
		if root != "" {
			dirs = append(dirs, filepath.Join(root, "bin"))
		}
	}
	var sites []string
	if dir, err := InstallDir(); err == nil {
		sites = append(sites, dir)
	}
	for _, site := range append(sites, wheel.SitePackages()...) {
		for _, sub := range []string{"nvidia/cu13/bin", "nvidia/cuda_nvcc/bin", "nvidia/cuda_nvdisasm/bin"} {
			dirs = append(dirs, filepath.Join(site, filepath.FromSlash(sub)))
		}
	}
	for _, dir := range dirs {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", exec.ErrNotFound
}
