package op_test

import (
	"slices"
	"strings"
	"testing"

	"dmir/dialect/op"
)

// TestForeign holds that a foreign name stands for one op, that its form is one that
// the op has, and that the op's documentation lists it.
func TestForeign(t *testing.T) {
	by := map[string]string{}
	for _, d := range op.All() {
		own := map[string]bool{}
		for _, f := range d.Foreign {
			if name, value, ok := strings.Cut(f.Form, " = "); ok {
				if a := d.Attr(name); a == nil || !slices.Contains(a.Enum, value) {
					t.Errorf("%s: %q is no clause of it", d.Name, f.Form)
				}
			} else if f.Form != "" && (d.Lead() == nil || !slices.Contains(d.Lead().Enum, f.Form)) {
				t.Errorf("%s: %q is no leading attribute of it", d.Name, f.Form)
			}
			for _, name := range strings.Fields(f.Names) {
				s := strings.ToLower(strings.ReplaceAll(name, "_", ""))
				if by[s] != "" {
					t.Errorf("%s stands for %s and %s", name, by[s], d.Name)
				}
				by[s], own[name] = d.Name, true
				m, ok := op.Means(name)
				if !ok || m.Foreign && m.Def != d {
					t.Errorf("%s stands for %s, not for %s", name, m, d.Name)
				}
				if m.Foreign && !strings.Contains(d.Markdown(), "`"+name+"`") {
					t.Errorf("the documentation of %s does not mention %s", d.Name, name)
				}
			}
		}
		for _, f := range d.Elsewhere() {
			for _, name := range strings.Fields(f.Names) {
				if op.Lookup(op.Prefix+name) != nil || !own[name] {
					t.Errorf("%s lists %s, which is another op's", d.Name, name)
				}
			}
		}
	}
}

func TestMeans(t *testing.T) {
	for name, want := range map[string]string{
		"sum": "dm.reduce add", "ReduceSum": "dm.reduce add", "dm.reduce_sum": "dm.reduce add", "sigmoid": "dm.logistic",
		"gelu_new": "dm.gelu with approximate = tanh", "permute": "dm.transpose", "where": "dm.select", "view": "dm.reshape",
		"mm": "dm.matmul", "bmm": "dm.matmul", "dot_general": "dm.einsum", "add": "dm.add", "LayerNorm": "dm.layer_norm",
		"nothing": "", "": "", "dm.": "",
	} {
		m, ok := op.Means(name)
		if got := ""; ok {
			if got = m.String(); got != want {
				t.Errorf("%s is %s, want %s", name, got, want)
			}
		} else if want != "" {
			t.Errorf("%s is unknown, want %s", name, want)
		}
	}
	for _, d := range op.All() {
		if m, _ := op.Means(d.Name); m.Def != d || m.Foreign {
			t.Errorf("%s is %s: an own name wins over a foreign one", d.Name, m)
		}
	}
}

func TestLike(t *testing.T) {
	for name, want := range map[string]string{"sigmiod": "dm.logistic", "sofmax": "dm.softmax", "premute": "dm.transpose", "exp1": "dm.exp"} {
		if near := op.Like(name); len(near) == 0 || near[0].String() != want {
			t.Errorf("%s is like %v, want %s", name, near, want)
		}
	}
	for _, name := range []string{"", "nothing_like_it", strings.Repeat("x", 1000)} {
		if near := op.Like(name); len(near) > 0 {
			t.Errorf("%.20s is like %v", name, near)
		}
	}
}
