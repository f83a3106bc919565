package loc

import (
	"slices"
	"strings"
)

// Frame is a place in a function of the program that was traced.
type Frame struct {
	File            string
	Line, Col       int // from 1; 0 where not known
	EndLine, EndCol int // 0 where not stated
	Function        string
}

// Trace is how a program that was traced came to an op.
type Trace struct {
	Frames []Frame  // the innermost first
	Scopes []string // the names around, the outermost first: paths such as "jit(step)/jvp(Net)/Dense_0/dot_general"
}

// TraceOf is the trace of l, which is no Fused one.
func TraceOf(l Loc) Trace {
	var t Trace
	t.add(l, true)
	return t
}

// add adds l. A name right before a place is that of the function around it; only at the top it may be a path of scopes too.
func (t *Trace) add(l Loc, top bool) {
	for ; l != nil; l = l.A {
		switch l.Kind {
		case File:
			t.Frames = append(t.Frames, l.frame(""))
			return
		case Name:
			if l.A != nil && l.A.Kind == File && !(top && strings.ContainsAny(l.Text, "/(")) {
				t.Frames = append(t.Frames, l.A.frame(l.Text))
				return
			}
			t.Scopes = append(t.Scopes, l.Text)
		case Call:
			var outer Trace
			outer.add(l.B, false)
			t.add(l.A, false)
			t.Frames = append(t.Frames, outer.Frames...)
			t.Scopes = append(outer.Scopes, t.Scopes...)
			return
		case Opaque:
			return
		}
	}
}

func (n *Node) frame(function string) Frame {
	return Frame{File: n.Text, Line: int(n.Line), Col: int(n.Col), EndLine: int(n.EndLine), EndCol: int(n.EndCol), Function: function}
}

// Inside reports whether the op is one of a function, of a module or of an op of the framework with name in its own.
func (t Trace) Inside(name string) bool {
	return slices.ContainsFunc(t.Scopes, func(s string) bool { return strings.Contains(s, name) }) ||
		slices.ContainsFunc(t.Frames, func(f Frame) bool { return strings.Contains(f.Function, name) })
}

// Stack is the location of a call stack, the innermost frame first; nil for an empty one.
func Stack(frames []Frame) Loc {
	var l Loc
	for i := len(frames) - 1; i >= 0; i-- {
		f := frames[i]
		n := At(f.File, f.Line, f.Col)
		n.EndLine, n.EndCol = int32(f.EndLine), int32(f.EndCol)
		if f.Function != "" {
			n = Named(f.Function, n)
		}
		l = Called(n, l)
	}
	return l
}

// Gradient is the name under which the ops stand that differentiation makes of those at a location, as JAX writes it.
const Gradient = "transpose(jvp())"

// Recomputed is the name under which the ops stand that compute again, for the derivative, what was computed before.
const Recomputed = "rematted_computation"

// Backward reports whether the op is one that differentiation has made, by its scopes.
func (t Trace) Backward() bool {
	for _, s := range t.Scopes {
		if strings.Contains(s, "transpose(") || strings.Contains(s, Recomputed) {
			return true
		}
	}
	return false
}

// Forward reports whether the op is one that differentiation has kept, by its scopes.
func (t Trace) Forward() bool {
	for _, s := range t.Scopes {
		if strings.Contains(s, "jvp(") && !strings.Contains(s, "transpose(") {
			return true
		}
	}
	return false
}
