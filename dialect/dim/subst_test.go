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

// Bytes of half a byte each are rounded up, also where the size is known later.
func TestHalves(t *testing.T) {
	n := Sym("N")
	for _, c := range []struct {
		d         Dim
		text, at3 string
	}{
		{Const(6), "3", "3"},
		{Const(7), "4", "4"},
		{n.Scale(4), "2*N", "6"},
		{n, Halves(n).String(), "2"},
		{n.Scale(7), Halves(n.Scale(7)).String(), "11"},
		{n.Add(Const(1)), Halves(n.Add(Const(1))).String(), "2"},
	} {
		h := Halves(c.d)
		if h.String() != c.text || h.Eval(map[string]int64{"N": 3}).String() != c.at3 {
			t.Errorf("half of %s is %s, with N = 3 %s", c.d, h, h.Eval(map[string]int64{"N": 3}))
		}
	}
	if got := Halves(n).Eval(map[string]int64{"N": 4}).String(); got != "2" {
		t.Errorf("half of 4 is %s", got)
	}
}
