package dim

import "testing"

func TestAtLeast(t *testing.T) {
	n, b := Sym("n"), Sym("b")
	cases := []struct {
		d, e Dim
		want bool
	}{
		{Const(3), Const(3), true},
		{Const(2), Const(3), false},
		{n, Const(1), true},
		{n, Const(2), false},
		{n.Scale(4), Const(4), true},
		{n.Mul(n), n, true},
		{n, b, false},
		{n.Add(b), b, true},
		{b.Mul(n), b.Add(n).Sub(Const(1)), true}, // (b-1)(n-1) ≥ 0
		{b.Mul(n), b.Add(n), false},
		{Const(1), n, false},
	}
	for _, c := range cases {
		if got := c.d.AtLeast(c.e); got != c.want {
			t.Errorf("%v ≥ %v: %v, want %v", c.d, c.e, got, c.want)
		}
	}
}

func TestSubst(t *testing.T) {
	n, m := Sym("n"), Sym("m")
	d := n.Mul(n).Add(m.Scale(3)).Add(Const(7))
	got := d.Subst(map[string]Dim{"n": m.Scale(2)})
	if want := "4*m^2 + 3*m + 7"; got.String() != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := d.Subst(map[string]Dim{"n": Const(5), "m": Const(1)}); got.String() != "35" {
		t.Errorf("got %s, want 35", got)
	}
}
