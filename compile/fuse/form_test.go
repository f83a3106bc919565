package fuse

import (
	"testing"

	"dmir/compile/target"
)

// Kernels have one form where they are equal up to the values that they read and how these are named.
func TestForms(t *testing.T) {
	const m, v = "tensor<4x8xf32>", "tensor<4xf32>"
	of := func(body, results, types string) string {
		return "func.func @f(%x: " + m + ", %y: " + m + ", %r: " + v + ") -> (" + types + ") {\n" + body + "  return " + results + " : " + types + "\n}\n"
	}
	scaled := func(number string) string {
		return of("  %c = dm.constant dense<"+number+"> : "+m+"\n  %a = dm.mul %x, %c : "+m+"\n", "%a", m)
	}
	reduced := func(kind, source, out string) string {
		return of("  %a = dm.exp %x : "+m+"\n  %b = dm.reduce "+kind+" "+source+", dims = [1] : ("+m+") -> "+v+"\n", out, m+", "+v)
	}
	view := func(source string) string {
		return of("  %v = dm.reshape "+source+" : ("+m+") -> "+m+"\n  %a = dm.add %v, %x : "+m+"\n", "%a", m)
	}
	exp := of("  %a = dm.exp %x : "+m+"\n", "%a", m)
	sub := of("  %a = dm.exp %x : "+m+"\n  %b = dm.sub %a, %y : "+m+"\n", "%b", m)
	for _, c := range []struct {
		name, a, b string
		same       bool
	}{
		{"another operand", exp, of("  %z = dm.exp %y : "+m+"\n", "%z", m), true},
		{"another op", exp, of("  %a = dm.tanh %x : "+m+"\n", "%a", m), false},
		{"another type", exp, of("  %a = dm.exp %r : "+v+"\n", "%a", v), false},
		{"another attribute", reduced("add", "%a", "%a, %b"), reduced("max", "%a", "%a, %b"), false},
		{"another number", scaled("2.0"), scaled("3.0"), false},
		{"operands exchanged", sub, of("  %a = dm.exp %x : "+m+"\n  %b = dm.sub %y, %a : "+m+"\n", "%b", m), false},
		{"an operand from outside", reduced("add", "%a", "%a, %b"), reduced("add", "%x", "%a, %b"), false},
		{"one operand twice", of("  %a = dm.mul %x, %x : "+m+"\n", "%a", m), of("  %a = dm.mul %x, %y : "+m+"\n", "%a", m), false},
		{"a view of another value", view("%x"), view("%y"), false},
		{"another result stored", of("  %a = dm.exp %x : "+m+"\n  %b = dm.tanh %a : "+m+"\n", "%a", m), of("  %a = dm.exp %x : "+m+"\n  %b = dm.tanh %a : "+m+"\n", "%b", m), false},
	} {
		legal := newLegalities()
		var forms [2]string
		for i, text := range []string{c.a, c.b} {
			g := graphOf(t, text, Kernels(target.Times{}))
			g.legal = legal
			var nodes, outs []int
			for n, x := range g.nodes {
				nodes = append(nodes, n)
				for _, r := range x.results {
					if g.values[r].out {
						outs = append(outs, r)
					}
				}
			}
			s := g.kernel(nodes, outs)
			s.read, s.written = 0, 0 // which alone may tell kernels apart
			forms[i], _ = g.form(s, g.surrounded(s), g.over(s))
		}
		if (forms[0] == forms[1]) != c.same {
			t.Errorf("%s: forms are %q and %q", c.name, forms[0], forms[1])
		}
	}
}
