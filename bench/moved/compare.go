package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"dmir/analysis/cost"
	"dmir/bench/peer"
	"dmir/compile/interp"
	"dmir/compile/tensor"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

// output runs dmir.
func output(dmir string, args ...string) ([]byte, error) {
	out, err := exec.Command(dmir, args...).Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil, fmt.Errorf("dmir %s: %s", args[0], exit.Stderr)
	}
	return out, err
}

var scratchBytes = regexp.MustCompile(` dm\.scratch_(?:read|written) = (\d+)`)

// plan fills in what dmir's plan of the text's public function moves.
func (p *pair) plan(dmir, text, file string) error {
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	planned, err := output(dmir, "opt", "--emit", "schedule", file)
	if err != nil {
		return err
	}
	to := strings.TrimSuffix(file, ".dmir") + "_planned.dmir"
	if err := os.WriteFile(to, planned, 0o600); err != nil {
		return err
	}
	data, err := output(dmir, "cost", "--output-format", "json", to)
	if err != nil {
		return err
	}
	var r cost.Report
	if err := json.Unmarshal(data, &r); err != nil {
		return err
	}
	p.Ours = *r.Functions[0].Moved
	for _, o := range r.Functions[0].Ops {
		if o.Name == op.Kernel {
			p.Kernels++
		}
	}
	for _, m := range scratchBytes.FindAllSubmatch(planned, -1) {
		n, err := strconv.ParseInt(string(m[1]), 10, 64)
		if err != nil {
			return err
		}
		p.Scratch += n
	}
	return nil
}

// compare compares values, then bytes.
func (s *step) compare(dmir string, p *peer.Process) (*row, []string, error) {
	dir, err := os.MkdirTemp("", "moved-")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(dir)
	q, err := s.inputs(dir)
	if err != nil {
		return nil, nil, err
	}
	var a answer
	if err := p.Ask(q, &a); err != nil {
		return nil, nil, err
	}
	if a.Error != "" {
		return nil, nil, errors.New(a.Error)
	}
	var problems []string
	problem := func(format string, args ...any) {
		problems = append(problems, s.name+": "+fmt.Sprintf(format, args...))
	}
	if err := s.values(dmir, dir); err != nil {
		problem("%v", err)
	}
	one := func(what, text string, theirs *moves, reason string) (*pair, error) {
		pr := &pair{Inductor: *theirs, Reason: reason}
		if err := pr.plan(dmir, text, filepath.Join(dir, what+".dmir")); err != nil {
			return nil, err
		}
		if pr.more() != (reason != "") {
			problem("%s moves %d bytes, %d of scratch memory, and Inductor %d; the reason in the list is %q", what, pr.Ours, pr.Scratch, theirs.Distinct, reason)
		}
		return pr, nil
	}
	r := &row{Program: s.name}
	forward, err := one("forward", s.text, a.Forward, s.forward)
	if err != nil {
		return nil, nil, err
	}
	r.Forward = *forward
	if a.Both != nil {
		if r.Both, err = one("forward–backward", s.train, a.Both, s.both); err != nil {
			return nil, nil, err
		}
	}
	return r, problems, nil
}

// inputs writes the arguments and the cotangents.
func (s *step) inputs(dir string) (*question, error) {
	q := &question{Name: s.name, Folder: dir, Cotangents: []string{}}
	args, err := interp.Inputs(context.Background(), s.fn, nil, 1, nil)
	if err != nil {
		return nil, err
	}
	for i, a := range s.args {
		q.Args = append(q.Args, argument{Name: a.Name[1:], Elem: args[i].Elem.String(), Grad: s.wanted[i]})
		if err := tensor.SaveNPY(filepath.Join(dir, a.Name[1:]+".npy"), args[i]); err != nil {
			return nil, err
		}
	}
	for i, t := range s.cotangent {
		t := t.(*types.Tensor)
		x := tensor.Random(t.Elem, shape(t), 2, uint64(i))
		q.Cotangents = append(q.Cotangents, t.Elem.String())
		if err := tensor.SaveNPY(filepath.Join(dir, fmt.Sprintf("cotangent_%d.npy", i)), x); err != nil {
			return nil, err
		}
	}
	return q, nil
}

func shape(t *types.Tensor) []int {
	var out []int
	for _, d := range t.Shape {
		n, _ := d.Int()
		out = append(out, int(n))
	}
	return out
}

// values runs the program on the reference executor, its dropout off, and compares
// results and gradients with the peer's.
func (s *step) values(dmir, dir string) error {
	text, fn := s.train, "train"
	resultTypes := append([]types.Type(nil), s.fn.Results...)
	if text == "" {
		text, fn = s.text, "forward"
	}
	file := filepath.Join(dir, "values.dmir")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "rate = 0.1", "rate = 0.0")), 0o600); err != nil {
		return err
	}
	args := []string{"run", "--device", "reference", "--output-format", "json", "--func", fn, "--output", filepath.Join(dir, "out")}
	for i, a := range s.args {
		args = append(args, "--input", a.Name[1:]+"="+filepath.Join(dir, a.Name[1:]+".npy"))
		if s.wanted[i] {
			resultTypes = append(resultTypes, a.Type)
		}
	}
	for i := range s.cotangent {
		name := fmt.Sprintf("cotangent_%d", i)
		args = append(args, "--input", name+"="+filepath.Join(dir, name+".npy"))
	}
	data, err := output(dmir, append(args, file)...)
	if err != nil {
		return err
	}
	var ran struct {
		Outputs []struct{ Name, File string }
	}
	if err := json.Unmarshal(data, &ran); err != nil {
		return err
	}
	if len(ran.Outputs) != len(resultTypes) {
		return fmt.Errorf("%d results, want %d", len(ran.Outputs), len(resultTypes))
	}
	var scale float64 // the largest root mean square
	wanted := make([]*tensor.Tensor, len(ran.Outputs))
	for i := range ran.Outputs {
		want, err := tensor.LoadNPY(filepath.Join(dir, fmt.Sprintf("expected_%d.npy", i)), types.F32, shape(resultTypes[i].(*types.Tensor)))
		if err != nil {
			return err
		}
		wanted[i], scale = want, max(scale, rms(want.Len(), want.Float))
	}
	for i, o := range ran.Outputs {
		t := resultTypes[i].(*types.Tensor)
		got, err := tensor.LoadNPY(o.File, t.Elem, shape(t))
		if err != nil {
			return err
		}
		tolerance := 1e-3
		if t.Elem != types.F32 {
			tolerance = 0.03
		}
		// A gradient may be 0 by cancellation: that of attention's key bias.
		want := wanted[i]
		off := rms(got.Len(), func(i int) float64 { return got.Float(i) - want.Float(i) })
		if of := max(rms(want.Len(), want.Float), scale/20); !(off <= tolerance*of) {
			return fmt.Errorf("%s differs from PyTorch's by %.2g of its root mean square", o.Name, off/of)
		}
	}
	return nil
}

// rms is the root mean square of n elements.
func rms(n int, at func(i int) float64) float64 {
	var sum float64
	for i := range n {
		sum += at(i) * at(i)
	}
	return math.Sqrt(sum / float64(n))
}
