package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"dmir/bench/peer"
	"dmir/compile/tensor"
	"dmir/dialect/types"
)

// jax is peer.py, a process of JAX with as many CPU devices as the mesh has.
type jax struct {
	*peer.Process
	version string
	devices int
	folder  string // for the files that it reads and writes
}

// startJAX starts script with python; its messages are printed if verbose.
func startJAX(python, script, folder string, devices int, verbose bool) (*jax, error) {
	cmd := exec.Command(python, script, strconv.Itoa(devices))
	if verbose {
		cmd.Stderr = os.Stderr
	}
	var about struct {
		JAX string `json:"jax"`
	}
	p, err := peer.Start(cmd, &about, errors.New("the peer ended: -v prints its messages"))
	return &jax{p, about.JAX, devices, folder}, err
}

type question struct {
	Program string `json:"program"`
	Inputs  string `json:"inputs,omitempty"`
	Outputs string `json:"outputs,omitempty"`
}

// run compiles and runs a program in StableHLO, and returns its results, of the types given, and what
// XLA has made of it.
func (j *jax) run(name, text string, args []*tensor.Tensor, results []types.Type) (out []*tensor.Tensor, hlo string, err error) {
	file := func(ext string) string { return filepath.Join(j.folder, name+ext) }
	q := question{file(".mlir"), file(".in.npz"), file(".out.npz")}
	if err := os.WriteFile(q.Program, []byte(text), 0o644); err != nil {
		return nil, "", err
	}
	if err := saved(q.Inputs, args); err != nil {
		return nil, "", err
	}
	var a struct {
		HLO   string `json:"hlo"`
		Error string `json:"error"`
	}
	if err := j.Ask(q, &a); err != nil {
		return nil, "", err
	}
	if a.Error != "" {
		return nil, "", fmt.Errorf("%s: %s", name, a.Error)
	}
	z, err := tensor.OpenNPZ(q.Outputs)
	if err != nil {
		return nil, "", err
	}
	defer z.Close()
	for i, t := range results {
		shape, err := sizes(t)
		if err != nil {
			return nil, "", err
		}
		x, err := z.Read(strconv.Itoa(i), t.(*types.Tensor).Elem, shape)
		if err != nil {
			return nil, "", err
		}
		out = append(out, x)
	}
	return out, a.HLO, nil
}

func sizes(t types.Type) ([]int, error) {
	x, ok := t.(*types.Tensor)
	if !ok {
		return nil, fmt.Errorf("%s is no tensor", t)
	}
	shape := make([]int, x.Rank())
	for i, d := range x.Shape {
		n, ok := d.Int()
		if !ok {
			return nil, fmt.Errorf("the size %s is no number", d)
		}
		shape[i] = int(n)
	}
	return shape, nil
}

func saved(path string, args []*tensor.Tensor) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	z := tensor.NewWriter(f)
	for i, x := range args {
		if err := z.Array(strconv.Itoa(i), x); err != nil {
			return err
		}
	}
	return z.Close()
}
