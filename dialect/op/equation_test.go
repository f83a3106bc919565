package op_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dmir/dialect/op"
)

func TestParseEquation(t *testing.T) {
	cases := []struct {
		text    string
		n       int
		want    *op.Equation
		message string
	}{
		{"bln,nu->blu", 2, &op.Equation{Inputs: []string{"bln", "nu"}, Output: "blu", Letters: "blun"}, ""},
		{" i j , j k -> i k ", -1, &op.Equation{Inputs: []string{"ij", "jk"}, Output: "ik", Letters: "ikj"}, ""},
		{"->", 1, &op.Equation{Inputs: []string{""}}, ""},
		{"iI->I", 1, &op.Equation{Inputs: []string{"iI"}, Output: "I", Letters: "Ii"}, ""},
		{"ij,jk", 2, nil, "the output is missing"},
		{"ij->ij->ij", 1, nil, "not a letter"},
		{"é->é", 1, nil, "'é' is not a letter"},
		{"ij,->i", 3, nil, "2 inputs, the op 3 operands"},
	}
	for _, c := range cases {
		e, err := op.ParseEquation(c.text, c.n)
		if c.message != "" {
			if err == nil || !strings.Contains(err.Error(), c.message) {
				t.Errorf("%q: %v, want %q", c.text, err, c.message)
			}
			continue
		}
		if d := cmp.Diff(c.want, e); d != "" || err != nil {
			t.Errorf("%q: %v %s", c.text, err, d)
		}
	}
}

func TestSteps(t *testing.T) {
	cases := map[string][]op.Step{
		"ij->i":           nil,
		"ij,jk->ik":       {{Left: "ij", Right: "jk", Out: "ik"}},
		"ij,jk,kl->il":    {{Left: "ij", Right: "jk", Out: "ik"}, {Left: "ik", Right: "kl", Out: "il"}},
		"bi,bj,bk->bijk":  {{Left: "bi", Right: "bj", Out: "bij"}, {Left: "bij", Right: "bk", Out: "bijk"}},
		"ab,cd,bd->ac":    {{Left: "ab", Right: "cd", Out: "abcd"}, {Left: "abcd", Right: "bd", Out: "ac"}},
		"ii,ij,j->":       {{Left: "ii", Right: "ij", Out: "j"}, {Left: "j", Right: "j", Out: ""}},
		"a,a,a,a->a":      {{Left: "a", Right: "a", Out: "a"}, {Left: "a", Right: "a", Out: "a"}, {Left: "a", Right: "a", Out: "a"}},
		"xy,yz,zx,xx->yz": {{Left: "xy", Right: "yz", Out: "xyz"}, {Left: "xyz", Right: "zx", Out: "xyz"}, {Left: "xyz", Right: "xx", Out: "yz"}},
	}
	for text, want := range cases {
		e, err := op.ParseEquation(text, -1)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, e.Steps()); d != "" {
			t.Errorf("%s: %s", text, d)
		}
	}
}

func FuzzParseEquation(f *testing.F) {
	for _, s := range []string{"ij,jk->ik", "->", ",->", "ii->i", "a.b->c", "i->ii", "é->", "ab,cd,bd->ac"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := op.ParseEquation(s, -1)
		if err != nil {
			if strings.Contains(err.Error(), "\n") || strings.HasSuffix(err.Error(), ".") {
				t.Errorf("message %q", err)
			}
			return
		}
		again, err := op.ParseEquation(fmt.Sprintf("%s->%s", strings.Join(e.Inputs, ","), e.Output), len(e.Inputs))
		if err != nil || !reflect.DeepEqual(e, again) {
			t.Errorf("%q: %v, %+v then %+v", s, err, e, again)
		}
		if n := len(e.Steps()); n != len(e.Inputs)-1 {
			t.Errorf("%q: %d steps", s, n)
		}
	})
}
