package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"dmir/bench/peer"
	"dmir/compile/tensor"
	"dmir/dialect/types"
)

// peers are the programs that dmir is compared with, without those that are missing.
type peers struct {
	blas        *openblas
	torch, onnx *python
}

// newPeers starts all peers. A missing one is a line of the report.
func newPeers(o *options, r *report) *peers {
	p := &peers{}
	var err error
	if p.blas, err = openBLAS(os.Getenv(libraryVar)); err != nil {
		p.blas = nil
		r.Missing["OpenBLAS"] = err.Error()
	} else {
		r.Peers["OpenBLAS"] = p.blas.Config() + ", kernels of " + p.blas.Core()
	}
	start := func(name string) *python {
		q, err := startPython(o, name)
		if err != nil {
			r.Missing[name] = err.Error()
			return nil
		}
		r.Peers[name] = q.About
		return q
	}
	p.torch, p.onnx = start("torch"), start("onnxruntime")
	return p
}

func (p *peers) close() {
	for _, q := range []*python{p.torch, p.onnx} {
		if q != nil {
			q.Close()
		}
	}
}

// python is a process that runs peers.py.
type python struct {
	*peer.Process
	name  string
	About string `json:"about"`
}

// heap keeps memory that a peer frees in its process: it does not pay for new pages in
// each run, as dmir, whose results lie in the same memory in all runs, does not either.
var heap = []string{"MALLOC_MMAP_MAX_=0", "MALLOC_TRIM_THRESHOLD_=1000000000000", "MALLOC_TOP_PAD_=268435456", "PYTHONDONTWRITEBYTECODE=1"}

func startPython(o *options, name string) (*python, error) {
	if _, err := os.Stat(o.python); err != nil {
		return nil, err
	}
	cmd := exec.Command(o.python, filepath.Join(o.here, "peers.py"), name)
	cmd.Env = append(os.Environ(), heap...)
	cmd.Stderr = os.Stderr
	p := &python{name: name}
	var err error
	p.Process, err = peer.Start(cmd, p, fmt.Errorf("%s ended", name))
	return p, err
}

// ask sends a question; the answer's field "error" is an error.
func (p *python) ask(question any) (seconds float64, err error) {
	var a struct {
		Seconds float64 `json:"seconds"`
		Error   string  `json:"error"`
	}
	if err := p.Ask(question, &a); err != nil {
		return 0, err
	}
	if a.Error != "" {
		return 0, errors.New(a.Error)
	}
	return a.Seconds, nil
}

// prepared is a row in a peer's process.
type prepared struct {
	*python
	b       *built
	kind    string
	folder  string
	threads int
}

func (p *prepared) results() ([]*tensor.Tensor, error) {
	args := []string{}
	for _, a := range p.b.fn.Args {
		args = append(args, a.Name[1:])
	}
	attrs := p.b.attrs
	if attrs == nil {
		attrs = map[string]any{}
	}
	if _, err := p.ask(map[string]any{"do": "prepare", "kind": p.kind, "folder": p.folder, "args": args, "attrs": attrs, "threads": p.threads}); err != nil {
		return nil, err
	}
	var list []*tensor.Tensor
	for i, b := range p.b.out.Outputs {
		elem, _ := types.ElemByName(p.b.out.Buffers[b].Elem)
		var shape []int
		for _, n := range p.b.out.ResultView(i).Shape {
			shape = append(shape, int(n))
		}
		t, err := tensor.LoadNPY(filepath.Join(p.folder, fmt.Sprintf("%s_%d.npy", p.name, i)), elem, shape)
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	return list, nil
}

func (p *prepared) sample(runs int) (time.Duration, error) {
	s, err := p.ask(map[string]any{"do": "sample", "kind": p.kind, "runs": runs})
	return time.Duration(s * 1e9), err
}

// drop frees the rows of a peer.
func (p *python) drop() error {
	_, err := p.ask(map[string]any{"do": "drop"})
	return err
}
