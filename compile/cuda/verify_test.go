package cuda

import (
	"strings"
	"testing"

	"dmir/compile/assemble"
)

// Names in the statements of a kernel, and which of them are used where nothing
// declares them.
func TestUndefined(t *testing.T) {
	const i, k, p, x, y, t1 ident = "i", "k1", "p", "x", "y", "t1"
	store := func(u *unit, at ident) { u.line("%s.store(%s, 0.0f)", y, at) }
	for _, c := range []struct {
		name, want string
		write      func(u *unit)
	}{
		{"parameters and variables", "i i", func(u *unit) {
			u.line("const float %s = dm::wide(%s[%s])", def(t1), x, i)
			u.line("%s.store(%s, %s)", y, i, t1)
		}},
		{"a loop's variable", "", func(u *unit) {
			u.enter(block, "for (dm::i32 %s = 0; %s < 4; %s++)", def(k), k, k)
			store(u, k)
			u.leave()
		}},
		{"a loop's variable behind it", "k1", func(u *unit) {
			u.enter(block, "for (dm::i32 %s = 0; %s < 4; %s++)", def(k), k, k)
			u.leave()
			store(u, k)
		}},
		{"a loop without braces", "p", func(u *unit) {
			u.add(count(p, 1, 4, &stmt{head: cpp("%s.store(%s, %s[%s])", y, p, x, p)}))
			store(u, p)
		}},
		{"what a block declared", "t1", func(u *unit) {
			u.enter(block, "if (true)")
			u.line("const dm::i32 %s = 1", def(t1))
			u.leave()
			store(u, t1)
		}},
		{"operands of operands", "k1 p", func(u *unit) {
			u.line("%s = %s", y, cpp("%s + %s", cpp("f(%s)", []code{cpp("%s", x), cpp("%s", k)}), p))
		}},
		{"before its declaration", "t1", func(u *unit) {
			store(u, t1)
			u.line("const dm::i32 %s = 3", def(t1))
		}},
		{"in its own declaration", "t1", func(u *unit) { u.line("const dm::i32 %s = %s + 1", def(t1), t1) }},
		{"what a function takes and a struct holds", "i", func(u *unit) {
			u.enter(closed, "struct %s", local("_A"))
			u.line("dm::In<float> %s", def(t1))
			u.function(cpp("%s[%s]", t1, k), "DM_FN float at(dm::i32 %s) const", def(k))
			u.function(cpp("%s[%s]", t1, i), "DM_FN float other(dm::i32 %s) const", def(k))
			u.leave()
		}},
	} {
		u := newUnit()
		c.write(u)
		var got []string
		for _, m := range undefined(u.statements(), map[string]bool{"x": true, "y": true}) {
			got = append(got, strings.Fields(m)[2])
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: %q, want %q", c.name, s, c.want)
		}
	}
}

// A kernel reads exactly the parameters in its plan.
func TestTextFollowsPlan(t *testing.T) {
	const x, y, z ident = "x", "y", "z"
	l := &launch{Launch: assemble.Launch{Params: []assemble.Param{{Name: "x"}, {Name: "y", Idle: true}, {Name: "z"}}}, write: func(t *text) error {
		t.body.line("%s.store(0, %s[0])", z, x)
		return nil
	}}
	for _, c := range []struct {
		idle []bool
		want string
	}{
		{[]bool{false, true, false}, ""},
		{[]bool{false, false, false}, "whether y is read"},
		{[]bool{true, true, false}, "whether x is read"},
	} {
		for i, idle := range c.idle {
			l.Params[i].Idle = idle
		}
		_, err := texts([]*launch{l})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v: %v, want %q", c.idle, err, c.want)
		}
	}
}
