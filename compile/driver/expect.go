package driver

import (
	"errors"

	"dmir/compile/interp"
	"dmir/compile/tensor"
	"dmir/gpu/artifact"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// CheckError is a check of a compiled program that failed.
type CheckError struct {
	File string
	Line int // of the check in File, 0 where it is unknown
	Msg  string
}

func (e *CheckError) Error() string { return e.Msg }

// placed is err with its place in src, the text of the program: a check that fails is
// the same error on all devices.
func placed(err error, src *source.File) error {
	var failed *CheckError
	if src == nil || !errors.As(err, &failed) {
		return err
	}
	return &interp.Error{Span: lineSpan(src, failed.Line), Code: interp.CheckFailed, Msg: failed.Msg, Help: diag.Find(interp.CheckFailed).Help}
}

// Checked makes the checks of p on all its results, and gives those of the function.
// A check that fails is a *CheckError.
func Checked(p *artifact.Program, all []Output) ([]Output, error) {
	if err := expected(p, all); err != nil {
		return nil, err
	}
	return all[:p.Own()], nil
}

// expected makes the checks of p on all its results. Of those that fail the error is
// about the one that the program reached first.
func expected(p *artifact.Program, all []Output) error {
	first := -1
	var index int
	for i := range p.Checks {
		if at, ok := holds(&p.Checks[i], all); !ok && (first < 0 || before(&p.Checks[i], &p.Checks[first], all)) {
			first, index = i, at
		}
	}
	if first < 0 {
		return nil
	}
	c := &p.Checks[first]
	e := &CheckError{File: p.File, Line: c.Line}
	var places []interp.Place
	counts := counted(c, all)
	for _, a := range c.Around {
		place := interp.Place{Func: a.Func, Line: a.Line}
		if a.Func == "" {
			place.Iteration = a.First + a.Step*counts[0]
			counts = counts[1:]
		}
		places = append(places, place)
	}
	got, want := all[c.Got].Tensor, all[c.Want].Tensor
	switch {
	case len(c.Types) > 0:
		e.Msg = interp.MismatchedTypes(c.Types[0], c.Types[1], places)
	case c.Kept:
		e.Msg = interp.Mismatch(c.Member, c.Room, interp.Index(index, extents(c.Shape)), interp.Element(got, 0), interp.Element(got, 1), places)
	default:
		e.Msg = interp.Mismatch(c.Member, c.Room, interp.Index(index, got.Shape), interp.Element(got, index), interp.Element(want, index), places)
	}
	return e
}

// counted is how many iterations came before, for each loop around c, the innermost
// first.
func counted(c *artifact.Check, all []Output) []int64 {
	var out []int64
	if c.Kept {
		for i := 1; i < all[c.Want].Tensor.Len(); i++ {
			out = append(out, all[c.Want].Tensor.Integer(i))
		}
	}
	return out
}

func extents(shape []int64) []int {
	out := make([]int, len(shape))
	for i, n := range shape {
		out[i] = int(n)
	}
	return out
}

// holds reports whether c does, and otherwise the first element that differs.
func holds(c *artifact.Check, all []Output) (at int, ok bool) {
	if !c.Kept {
		at = interp.Differs(all[c.Got].Tensor, all[c.Want].Tensor, c.Tolerance, c.ULPs)
		return at, at < 0
	}
	n, _ := tensor.Count(extents(c.Shape))
	at = int(all[c.Want].Tensor.Integer(0))
	return at, at < 0 || at >= n
}

// before reports whether a, which comes after b in the text, failed in an earlier
// iteration of a loop around both.
func before(a, b *artifact.Check, all []Output) bool {
	x, y := loops(a), loops(b)
	m, n := counted(a, all), counted(b, all)
	for i, j := len(x)-1, len(y)-1; i >= 0 && j >= 0 && x[i] == y[j]; i, j = i-1, j-1 {
		if m[i] != n[j] {
			return m[i] < n[j]
		}
	}
	return false
}

// loops are the numbers of those around c, the innermost first.
func loops(c *artifact.Check) []int {
	var out []int
	for _, a := range c.Around {
		if a.Func == "" {
			out = append(out, a.Loop)
		}
	}
	return out
}
