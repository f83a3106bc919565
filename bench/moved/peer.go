package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
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

// peer is the process that runs peer.py.
type peer struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
	// Torch is PyTorch's version.
	Torch string `json:"torch"`
}

func start(python, script string, verbose bool) (*peer, error) {
	p := &peer{cmd: exec.Command(python, script)}
	p.cmd.Env = cached(filepath.Join(filepath.Dir(filepath.Dir(python)), "cache"))
	if verbose {
		p.cmd.Args = append(p.cmd.Args, "-v")
		p.cmd.Stderr = os.Stderr
	}
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewScanner(out)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	return p, p.answer(p)
}

func (p *peer) answer(to any) error {
	if !p.out.Scan() {
		return errors.Join(errors.New("the peer ended: -v prints its messages"), p.out.Err())
	}
	return json.Unmarshal(p.out.Bytes(), to)
}

// ask sends a question and waits for the answer.
func (p *peer) ask(question, answer any) error {
	data, err := json.Marshal(question)
	if err != nil {
		return err
	}
	if _, err := p.in.Write(append(data, '\n')); err != nil {
		return err
	}
	return p.answer(answer)
}

func (p *peer) close() error {
	return errors.Join(p.in.Close(), p.cmd.Wait())
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
