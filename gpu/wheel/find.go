package wheel

import (
	"os"
	"os/exec"
	"path/filepath"
	"sort"
)

// environments lists roots of Python environments: the active ones, that of the
// Python on PATH, and where people, package managers and images keep them. No
// Python is run, and the current folder is not searched, since its files are not
// trusted.
func environments() []string {
	var out []string
	for _, v := range []string{"VIRTUAL_ENV", "UV_PROJECT_ENVIRONMENT", "CONDA_PREFIX"} {
		if dir := os.Getenv(v); filepath.IsAbs(dir) {
			out = append(out, dir)
		}
	}
	for _, name := range []string{"python3", "python"} {
		path, err := exec.LookPath(name)
		if err != nil || !filepath.IsAbs(path) {
			continue
		}
		out = append(out, filepath.Dir(filepath.Dir(path))) // sys.prefix, of an environment too
		if real, err := filepath.EvalSymlinks(path); err == nil {
			out = append(out, filepath.Dir(filepath.Dir(real)))
		}
	}
	patterns := []string{"/opt/*/.venv", "/opt/*/venv", "/opt/venvs/*", "/opt/*/envs/*", "/opt/*", "/venv", "/.venv", "/app/.venv", "/workspace/.venv", "/usr/local", "/usr"}
	if home, err := os.UserHomeDir(); err == nil {
		var own []string
		for _, p := range []string{
			".local", ".venv", "venv", ".venvs/*", ".virtualenvs/*", ".pyenv/versions/*", ".local/share/uv/tools/*", ".local/share/uv/python/*",
			"miniconda3", "miniconda3/envs/*", "anaconda3", "anaconda3/envs/*", "miniforge3", "miniforge3/envs/*", ".conda/envs/*", "AppData/Local/Programs/Python/Python3*",
		} {
			own = append(own, filepath.Join(home, filepath.FromSlash(p)))
		}
		patterns = append(own, patterns...)
	}
	for _, p := range patterns {
		found, _ := filepath.Glob(p)
		sort.Sort(sort.Reverse(sort.StringSlice(found)))
		out = append(out, found...)
	}
	return out
}

// SitePackages lists folders in which Python keeps packages: those of the
// active environment first, each once.
func SitePackages() []string {
	var patterns []string
	for _, root := range environments() {
		patterns = append(patterns, filepath.Join(root, "lib/python3*/*-packages"), filepath.Join(root, "Lib/site-packages"))
	}
	if home, err := os.UserHomeDir(); err == nil {
		patterns = append(patterns, filepath.Join(home, "AppData/Roaming/Python/Python3*/site-packages"))
	}
	var out []string
	seen := map[string]bool{}
	for _, p := range patterns {
		found, _ := filepath.Glob(p)
		sort.Sort(sort.Reverse(sort.StringSlice(found)))
		for _, f := range found {
			real, err := filepath.EvalSymlinks(f)
			if err != nil || seen[real] {
				continue
			}
			seen[real] = true
			out = append(out, f)
		}
	}
	return out
}
