// Package budget bounds what a text may grow to where calls, gradients and composites
// are written out: thirty lines can stand for more ops than there is memory. All that
// write out share the one bound, so that a program which one tool refuses no other
// accepts.
package budget

import (
	"fmt"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/syntax/diag"
)

// Code is the diagnostic of what exceeds the bound.
const Code = "DM808"

// Codes are registered for all that write out.
var Codes = diag.Register([]diag.Code{
	{Code: Code, Name: "too-large", Doc: "Written out, the functions that are called and the gradients that are taken are more ops than any tool accepts: each call of a call, and each gradient of a gradient, multiplies them.", Help: "call fewer functions, take fewer gradients of gradients, or use a loop (dm.while, dm.scan)"},
})

const (
	least   = 1 << 18 // ops that any text may grow to,
	perText = 16      // and for each op that it has
)

// Most is how many ops the functions of m may grow to.
func Most(m *ir.Module) int {
	n := 0
	if m != nil {
		for _, f := range m.Funcs {
			if f.Body != nil {
				n += len(f.Body.Ops)
			}
		}
	}
	return least + perText*n
}

// Message says that name, a function, is too large.
func Message(m *ir.Module, name string) string {
	return fmt.Sprintf("written out, @%s and what it calls are more than %d ops", name, Most(m))
}

// Left is what remains of a budget; nil has no end.
type Left struct{ ops int }

// New is the whole budget of m, less what is spent.
func New(m *ir.Module, spent int) *Left { return &Left{Most(m) - spent} }

// Spend takes n ops; it reports whether there were so many.
func (l *Left) Spend(n int) bool {
	if l == nil {
		return true
	}
	l.ops -= n
	return l.ops >= 0
}

// Sizes counts what functions grow to without writing them out.
type Sizes struct {
	m     *ir.Module
	most  int
	grown map[*ir.Func]int // 0 while it is being counted
}

// SizesOf counts functions of m.
func SizesOf(m *ir.Module) *Sizes {
	return &Sizes{m: m, most: Most(m), grown: map[*ir.Func]int{}}
}

// Of is the number of ops that f grows to, at least: a gradient counts as much as what
// it is taken of.
func (s *Sizes) Of(f *ir.Func) int {
	if n, known := s.grown[f]; known || f.Body == nil {
		return n
	}
	s.grown[f] = 0
	n := 0
	ir.Walk(f.Body.Ops, func(o *ir.Op) bool {
		n++
		if o.Name == op.Call || o.Name == op.Grad {
			if callee := s.m.Func(o.Str("callee")); callee != nil {
				n += s.Of(callee)
			}
		}
		n = min(n, s.most+1)
		return true
	})
	s.grown[f] = n
	return n
}

// Exceeds reports whether f grows to more than m's budget.
func (s *Sizes) Exceeds(f *ir.Func) bool { return s.Of(f) > s.most }
