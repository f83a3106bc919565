package cuda

import (
	"testing"

	"dmir/dialect/ir"
	"dmir/syntax/source"
)

// Rendered statements in all styles, with the lines of their ops.
func TestPrinter(t *testing.T) {
	const i, x, y ident = "i", "x", "y"
	at := func(line int) *ir.Op { return &ir.Op{Span: source.Span{Start: line, End: line + 1}} }
	u := newUnit()
	u.of(at(2))
	u.enter(closed, "struct %s", local("_A"))
	u.line("dm::In<float> %s", def(x))
	u.function(cpp("%s[%s]", x, i), "DM_FN float at(dm::i32 %s) const", def(i))
	u.leave()
	u.lineOf(at(3), "const auto %s = %s{%s}", def(y), local("_A"), []code{cpp("%s", x), cpp("%d", 4)})
	u.add(&stmt{head: cpp("DM_UNROLL"), style: bare})
	u.enter(block, "for (int %s = 0; %s < 4; %s++)", def(i), i, i)
	u.oneLine(cpp("return"), "if (%s)", cpp("%s %% %d == 0", i, 2))
	u.leave()
	u.enter(block, "if (%s)", y)
	u.lineOf(&ir.Op{}, "f()") // its op has no line
	u.leave()
	u.enter(elseBlock, "else")
	u.lineOf(at(2), "g()")
	u.leave()
	u.add(&stmt{head: cpp("if (%s)", y), style: inBrace, body: []*stmt{{head: cpp("a()")}, {head: cpp("b()")}}})
	p := printer{kernel: "k0", line: func(o *ir.Op) int { return o.Span.Start }, file: "f.dmir"}
	p.statements(u.statements(), 0)
	const want = `#line 2 "f.dmir"
struct k0_A {
  dm::In<float> x;
  DM_FN float at(dm::i32 i) const { return x[i]; }
};
#line 3 "f.dmir"
const auto y = k0_A{x, 4};
DM_UNROLL
for (int i = 0; i < 4; i++) {
  if (i % 2 == 0) return;
}
if (y) {
  f();
} else {
#line 2 "f.dmir"
  g();
}
if (y) { a(); b(); }
`
	if got := p.b.String(); got != want {
		t.Errorf("rendered:\n%s", got)
	}
}
