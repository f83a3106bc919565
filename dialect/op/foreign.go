package op

import (
	"slices"
	"strings"
	"sync"

	"dmir/syntax/diag"
)

// Foreign is what PyTorch, JAX, NumPy, ONNX, StableHLO or MLIR call an op, or one
// form of it. An op's own name wins over a foreign one.
type Foreign struct {
	Names string // separated by blanks; capitals and "_" do not matter
	Form  string // the leading attribute, "add", or the clause, "approximate = tanh", that makes the op this one
	Rest  string // what has to be done besides, "" where the op in this form is all
}

// Meaning is an op in one form.
type Meaning struct {
	Def        *Def
	Form, Rest string // as in Foreign
	Foreign    bool   // another framework calls it so
}

// Clause reports whether the form is a clause behind the operands.
func (m Meaning) Clause() bool { return strings.Contains(m.Form, "=") }

// String is the op as its text begins, with what else has to be done.
func (m Meaning) String() string {
	s := m.Def.FullName()
	switch {
	case m.Clause():
		s += " with " + m.Form
	case m.Form != "":
		s += " " + m.Form
	}
	if m.Rest != "" {
		s += " " + m.Rest
	}
	return s
}

// spelling is name as names are compared: ReduceSum and reduce_sum are one.
func spelling(name string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, Prefix), "_", ""))
}

// vocabulary is the names of all ops and the foreign ones.
type vocabulary struct {
	means map[string]Meaning // by spelling
	all   []string           // spellings, own ones first
}

// shortest is the length from which a foreign name is found in a misspelt one;
// shorter ones are near to everything.
const shortest = 5

var words = sync.OnceValue(func() *vocabulary {
	v := &vocabulary{means: map[string]Meaning{}}
	for _, d := range all {
		v.means[spelling(d.Name)] = Meaning{Def: d}
		v.all = append(v.all, spelling(d.Name))
	}
	for _, d := range all {
		for _, f := range d.Foreign {
			for _, name := range strings.Fields(f.Names) {
				s := spelling(name)
				if _, taken := v.means[s]; taken {
					continue
				}
				v.means[s] = Meaning{d, f.Form, f.Rest, true}
				if len(s) >= shortest {
					v.all = append(v.all, s)
				}
			}
		}
	}
	return v
})

// Means is what name, with the dialect's prefix or without, stands for here or in
// another framework, in any capitals and with "_" or without; ok is false where it
// stands for no op.
func Means(name string) (m Meaning, ok bool) {
	m, ok = words().means[spelling(name)]
	return m, ok
}

// Like is what the names that are most like a misspelt one stand for, the most
// likely first.
func Like(name string) []Meaning {
	v := words()
	var out []Meaning
	for _, s := range diag.Near(spelling(name), v.all) {
		if m := v.means[s]; !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}

// Elsewhere is the foreign names that stand for d, without those that are own
// names of ops.
func (d *Def) Elsewhere() []Foreign {
	var out []Foreign
	for _, f := range d.Foreign {
		names := slices.DeleteFunc(strings.Fields(f.Names), func(n string) bool {
			m, _ := Means(n)
			return m != Meaning{d, f.Form, f.Rest, true}
		})
		if f.Names = strings.Join(names, " "); f.Names != "" {
			out = append(out, f)
		}
	}
	return out
}

// elsewhere is a sentence with the foreign names of d.
func (d *Def) elsewhere() string {
	var parts []string
	for _, f := range d.Elsewhere() {
		part := "`" + strings.Join(strings.Fields(f.Names), "` `") + "`"
		if f.Form != "" {
			part += " (`" + f.Form + "`"
			if f.Rest != "" {
				part += ", " + f.Rest
			}
			part += ")"
		} else if f.Rest != "" {
			part += " (" + f.Rest + ")"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}

// foreignAttrs is what other frameworks call the attributes of ops, by the name here.
var foreignAttrs = map[string]string{
	"dim":               "axis dimension iota_dimension",
	"dims":              "axis axes dimension dimensions dim permutation perm broadcast_dimensions",
	"keep_dims":         "keepdim keepdims",
	"epsilon":           "eps",
	"rate":              "p",
	"causal":            "is_causal",
	"direction":         "comparison_direction",
	"window_strides":    "stride strides",
	"window_dimensions": "kernel_size window_shape",
	"weight_decay":      "wd",
	"lr":                "learning_rate",
	"beta1":             "b1",
	"beta2":             "b2",
}

// ForeignAttr is the attribute of d that other frameworks call name, nil where there
// is none.
func (d *Def) ForeignAttr(name string) *AttrDef {
	for i := range d.Attrs {
		if slices.ContainsFunc(strings.Fields(foreignAttrs[d.Attrs[i].Name]), func(f string) bool { return spelling(f) == spelling(name) }) {
			return &d.Attrs[i]
		}
	}
	return nil
}
