package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"dmir/bench/peer"
)

// environment is the Python program of the folder's virtual environment, which is
// created with the packages of requirements.txt if it is not there.
func environment(folder, here string) (string, error) {
	python := filepath.Join(folder, "bin", "python")
	if _, err := os.Stat(python); err == nil {
		return filepath.Abs(python)
	}
	fmt.Fprintf(os.Stderr, "installing PyTorch into %s (4 GB)\n", folder)
	for _, args := range [][]string{
		{"python3", "-m", "venv", folder},
		{python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-cache-dir", "-r", filepath.Join(here, "requirements.txt")},
	} {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		if err := cmd.Run(); err != nil {
			return "", errors.Join(fmt.Errorf("%v: %w", args, err), os.RemoveAll(folder))
		}
	}
	return filepath.Abs(python)
}

// cached is the environment of a process that compiles with PyTorch and keeps its
// files in the folder.
func cached(folder string) []string {
	return append(os.Environ(), "TORCHINDUCTOR_CACHE_DIR="+folder)
}

// start starts peer.py, whose messages are printed if verbose, and returns the version of
// its PyTorch.
func start(python, script string, verbose bool) (p *peer.Process, torch string, err error) {
	cmd := exec.Command(python, script)
	cmd.Env = cached(filepath.Join(filepath.Dir(filepath.Dir(python)), "cache"))
	if verbose {
		cmd.Args = append(cmd.Args, "-v")
		cmd.Stderr = os.Stderr
	}
	var about struct {
		Torch string `json:"torch"`
	}
	p, err = peer.Start(cmd, &about, errors.New("the peer ended: -v prints its messages"))
	return p, about.Torch, err
}

// argument describes an argument of a program for the peer.
type argument struct {
	Name string `json:"name"`
	Elem string `json:"elem"`
	Grad bool   `json:"grad"`
}

type question struct {
	Name       string     `json:"name"`
	Folder     string     `json:"folder"` // holds NAME.npy for each argument
	Args       []argument `json:"args"`
	Cotangents []string   `json:"cotangents"` // their element types
}

// moves is what one pass moves by Inductor's count.
type moves struct {
	Bytes    int64 `json:"bytes"`    // with whole buffers
	Distinct int64 `json:"distinct"` // with the parts that are accessed, where a fused node takes a part
	Kernels  int   `json:"kernels"`
}

type answer struct {
	Forward *moves `json:"forward"`
	Both    *moves `json:"both"`
	Error   string `json:"error"`
}
