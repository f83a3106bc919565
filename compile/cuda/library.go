package cuda

import (
	"slices"

	"dmir/compile/assemble"
	"dmir/compile/kernel"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
)

// library is the scheme of an op that a library kernel computes.
func (t Target) library(f *kernel.Form) (scheme, error) {
	return kernel.Library[scheme]{
		Attention:           func(f *kernel.Form) (scheme, error) { return t.attention(f) },
		AttentionGradient:   func(f *kernel.Form) (scheme, error) { return t.attentionGradient(f) },
		SegmentAttention:    func(f *kernel.Form) (scheme, error) { return t.segmentAttention(f) },
		SegmentDenseProduct: segmentDenseProduct,
		Running:             func(f *kernel.Form, kind string) scheme { return running(f, kind) },
		Argmax:              func(f *kernel.Form) scheme { return argmax(f) },
		Ordered:             func(f *kernel.Form, most int64, by kernel.Order) (scheme, error) { return t.ordered(f, most, by) },
	}.Of(f)
}

// singleLaunch is a plan with one launch.
type singleLaunch struct{ *launch }

func (s singleLaunch) temps() []*assemble.Temp { return nil }

func (s singleLaunch) launches() ([]*launch, error) { return []*launch{s.launch}, nil }

// line is a kernel.Line, of which code is generated.
type line struct{ kernel.Line }

func lineOfDim(o *ir.Op) line { return line{kernel.LineOf(o)} }

// The variables of these kernels.
const (
	lineVar ident = "r"
	from    ident = "from" // the start of the line
	elemA   ident = "a"
	elemB   ident = "b"
	atA     ident = "i"
	atB     ident = "j"
)

// base is the C++ expression for the start of the line of n elements.
func (l line) base(n int64) code {
	if l.Inner == 1 {
		return cpp("dm::i64(%s) * %d", lineVar, n)
	}
	return cpp("dm::i64(%s / %d) * %d + %s %% %d", lineVar, l.Inner, n*l.Inner, lineVar, l.Inner)
}

// at is the offset of element i of a line that starts at base.
func (l line) at(base ident, i any) code {
	if l.Inner == 1 {
		return cpp("%s + %s", base, i)
	}
	return cpp("%s + dm::i64(%s) * %d", base, i, l.Inner)
}

// libraryLaunch is a launch of f with a thread for each line or each element;
// write is called with the names of the first operand and of the results, ""
// for results that are not stored.
func libraryLaunch(f *kernel.Form, class string, threads int, blocks int64, write func(u *unit, x ident, results []ident)) singleLaunch {
	ns := namesOf(f.Inputs, f.Outputs, "a", "b", "e", "r", "to", "from", "rank", "m") // the variables of these kernels
	results := make([]ident, len(f.Main.Results))
	for i, v := range f.Main.Results {
		results[i] = ns.of[v]
	}
	return singleLaunch{&launch{
		Launch: assemble.Launch{Class: class, Block: artifact.Block{Threads: threads}, Grid: [3]int{int(blocks), 1, 1}, Params: ns.params},
		named:  ns.of,
		write: func(t *text) error {
			write(t.body, ns.of[f.Main.Operands[0]], results)
			return nil
		},
	}}
}

// running has one thread for each line, which joins its elements in order by the
// op called name.
func running(f *kernel.Form, name string) singleLaunch {
	o := f.Main
	l := lineOfDim(o)
	elem := o.Results[0].Elem()
	return libraryLaunch(f, "scan", blockThreads, ceil(l.Lines, blockThreads), func(u *unit, x ident, results []ident) {
		const s ident = "s"
		sum := register(elem)
		if sum == "float" && name != "max" {
			sum = "double" // long sums lose less precision; the reference does the same
		}
		i := cpp("%s", atA)
		if op.Bool(o, "reverse") {
			i = cpp("(%d - %s)", l.N-1, atA)
		}
		at := l.at(from, i)
		join := map[string]string{"add": "%s + %s", "mul": "%s * %s", "max": "dm::max(%s, %s)"}[name]
		next := cpp("%s = %s", s, cpp(join, s, cpp("%s(dm::wide(%s[%s]))", sum, x, at)))
		if op.Str(o, "accumulate") == "f16" {
			next = cpp("%s = %s(dm::wide(dm::narrow<dm::f16>(%s + dm::wide(%s[%s]))))", s, sum, s, x, at)
		}
		steps := []*stmt{{head: next}, {head: cpp("%s.store(%s, dm::narrow<%s>(%s))", results[0], at, storage(elem), s)}}
		if op.Bool(o, "exclusive") {
			slices.Reverse(steps)
		}
		u.line("const dm::i32 %s = dm::block() * %d + dm::thread()", def(lineVar), blockThreads)
		u.oneLine(cpp("return"), "if (%s >= %d)", lineVar, l.Lines)
		u.line("const dm::i64 %s = %s", def(from), l.base(l.N))
		first := "0"
		if name != "add" {
			num, integer := kernel.Identity(name, elem)
			first = number(&kernel.Expr{Elem: elem, Num: num, Int: integer})
		}
		u.line("%s %s = %s", sum, def(s), first)
		u.enter(block, "for (dm::i32 %s = 0; %s < %d; %s++)", def(atA), atA, l.N, atA)
		u.add(&stmt{style: inLine, body: steps})
		u.leave()
	})
}

// comesBefore is the C++ condition that element b with index j precedes a with
// index i in an order.
func comesBefore(elem types.Elem, by kernel.Order) code {
	precedes := func(b, a ident) code {
		less, first, second := "<", b, a
		if by.Falling {
			less = ">"
		}
		if !by.NaNFirst {
			first, second = a, b
		}
		if !elem.IsFloat() {
			return cpp("(%s %s %s)", b, cpp(less), a)
		}
		return cpp("(%s %s %s || (%s != %s && %s == %s))", b, cpp(less), a, first, first, second, second)
	}
	return cpp("(%s || (!%s && %s < %s))", precedes(elemB, elemA), precedes(elemA, elemB), atB, atA)
}

// argmax has one warp for each line.
func argmax(f *kernel.Form) singleLaunch {
	o := f.Main
	l := lineOfDim(o)
	elem := o.Operands[0].Elem()
	return libraryLaunch(f, "argmax", 128, ceil(l.Lines, 4), func(u *unit, x ident, results []ident) {
		const m ident = "m"
		better := comesBefore(elem, kernel.Greatest)
		reg := register(elem)
		take := &stmt{head: cpp("if (%s)", better), style: inBrace, body: []*stmt{{head: cpp("%s = %s", elemA, elemB)}, {head: cpp("%s = %s", atA, atB)}}}
		u.line("const dm::i32 %s = dm::block() * 4 + dm::warp()", def(lineVar))
		u.oneLine(cpp("return"), "if (%s >= %d)", lineVar, l.Lines)
		u.line("const dm::i64 %s = %s", def(from), l.base(l.N))
		u.line("dm::i32 %s = dm::lane() < %d ? dm::lane() : 0", def(atA), l.N)
		u.line("%s %s = dm::wide(%s[%s])", reg, def(elemA), x, l.at(from, atA))
		u.enter(block, "for (dm::i32 %s = dm::lane() + 32; %s < %d; %s += 32)", def(atB), atB, l.N, atB)
		u.line("const %s %s = dm::wide(%s[%s])", reg, def(elemB), x, l.at(from, atB))
		u.add(take)
		u.leave()
		word := cpp("%s", elemA)
		if elem.Bytes() < 4 && reg != "float" {
			word = cpp("dm::i32(%s)", elemA)
		}
		u.enter(block, "for (int %s = 16; %s > 0; %s /= 2)", def(m), m, m)
		u.line("const %s %s = %s(dm::shuffle_xor(%s, %s))", reg, def(elemB), reg, word, m)
		u.line("const dm::i32 %s = dm::shuffle_xor(%s, %s)", def(atB), atA, m)
		u.add(take)
		u.leave()
		u.oneLine(cpp("%s.store(%s, %s(%s))", results[0], lineVar, storage(o.Results[0].Elem()), atA), "if (dm::lane() == 0)")
	})
}
