package cuda

import "testing"

// A constant goes if no statement behind it uses its name, or only constants that go do.
func TestPrune(t *testing.T) {
	const i, x, y, z ident = "i", "x", "y", "z"
	u := newUnit()
	u.line("const int %s = f()", def(x))
	u.line("const int %s = %s + 1", def(y), x)
	u.line("const int %s = 3", def(z))
	u.line("const int %s = %s[0]", def(y), ident("parameter"))
	u.line("int %s = 0", def(i))
	u.enter(block, "for (;;)")
	u.line("const int %s = %s", def(x), z)
	u.line("g(%s)", x)
	u.line("const int %s = %s", def(y), x)
	u.leave()
	u.line("const int %s = 4", def(x))
	u.line("h(%s)", i)
	u.prune()
	p := printer{}
	p.statements(u.statements(), 0)
	const want = `const int z = 3;
const int y = parameter[0];
int i = 0;
for (;;) {
  const int x = z;
  g(x);
}
h(i);
`
	if got := p.b.String(); got != want {
		t.Errorf("pruned:\n%s", got)
	}
}
