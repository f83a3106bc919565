package simplify_test

import (
	"fmt"
	"strings"
	"testing"

	"dmir/compile/bind"
	"dmir/compile/gradient"
	"dmir/compile/inline"
	"dmir/compile/pass"
	"dmir/compile/pass/passtest"
	"dmir/compile/simplify"
	"dmir/dialect/attention"
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

func everything(*pass.Unit, *ir.Op) bool { return true }

func attentionPasses(string) []pass.Pass {
	return []pass.Pass{inline.Pass(), bind.Pass(), simplify.Attention(everything)}
}

func TestAttentionGolden(t *testing.T) { passtest.Golden(t, "testdata/attention", attentionPasses) }

// Every way to write an attention is found and computes the same; what is none is
// left as it is, for the reason given.
func TestSpellings(t *testing.T) {
	slack := map[string]float64{"f64": 64, "f32": 64, "f16": 8, "bf16": 8}
	for _, s := range spellings {
		for _, elem := range []string{"f64", "f32", "f16", "bf16"} {
			if s.why == "-" && elem != "f16" || !s.in(elem) {
				continue
			}
			t.Run(s.name+"/"+elem, func(t *testing.T) {
				text := s.program(elem)
				after, err := passtest.Apply(t, text, "f", nil, attentionPasses("")...)
				if err != nil {
					t.Fatal(err)
				}
				if s.attributes != "" || strings.Contains(s.name, "default") {
					line := lineWith(after, "dm.attention")
					if line == "" || strings.Contains(after, "softmax") || strings.Contains(after, "dm.exp") {
						t.Fatalf("not found: %s\n%s", reasons(t, text), after)
					}
					_, attrs, _ := strings.Cut(line[:strings.Index(line, " :")], ", ")
					for strings.HasPrefix(attrs, "%") {
						_, attrs, _ = strings.Cut(attrs, ", ")
					}
					if attrs != s.attributes {
						t.Errorf("found with %q, want %q", attrs, s.attributes)
					}
				} else if strings.Contains(after, "dm.attention") {
					t.Fatalf("found what is none:\n%s", after)
				} else if got := reasons(t, text); s.why != "-" && !strings.Contains(got, s.why) || s.why == "" && got != "" {
					t.Errorf("the reason is %q, want %q", got, s.why)
				}
				passtest.Same(t, text, after, "f", nil, slack[elem])
			})
		}
	}
}

// An attention rounds its operands to TF32 where both products do, and not where one does.
func TestAttentionPrecision(t *testing.T) {
	const tf32 = ", precision = tf32"
	for _, c := range []struct{ first, second, want string }{
		{tf32, tf32, "scale = 1.0" + tf32 + " :"},
		{tf32, "", "scale = 1.0 :"},
		{"", tf32, "scale = 1.0 :"},
		{", precision = f32", "", "scale = 1.0, precision = f32 :"},
	} {
		s := spelling{lines: strings.Replace(product, "%k :", "%k"+c.first+" :", 1) + soft + strings.Replace(values, "%v :", "%v"+c.second+" :", 1)}
		after, err := passtest.Apply(t, s.program("f32"), "f", nil, attentionPasses("")...)
		if line := lineWith(after, "dm.attention"); err != nil || !strings.Contains(line, c.want) {
			t.Errorf("%q and %q: %q, want %q; %v", c.first, c.second, line, c.want, err)
		}
	}
}

// Values that are used twice at each of many steps do not make the search twice as
// long at each.
func TestDoubledValuesEnd(t *testing.T) {
	var scores, seen strings.Builder
	for i := range 60 {
		fmt.Fprintf(&scores, "%%s%d = dm.add %%s%d, %%s%d : !s\n", i+1, i, i)
		fmt.Fprintf(&seen, "%%c%d = dm.and %%c%d, %%c%d : tensor<7xi1>\n%%i%d = dm.add %%i%d, %%i%d : tensor<7xi32>\n", i+1, i, i, i+1, i, i)
	}
	s := spelling{args: ", %c0: tensor<7xi1>, %i0: tensor<7xi32>", lines: strings.Replace(product, "%s", "%s0", 1) + scores.String() + seen.String() +
		`%late = dm.compare lt %i60, %i0 : (tensor<7xi32>, tensor<7xi32>) -> tensor<7xi1>
` + `%c = dm.and %c60, %late : tensor<7xi1>
%least = dm.constant dense<INF> : tensor<E>
%s = dm.select %c, %s60, %least : (tensor<7xi1>, !s, tensor<E>) -> !s
` + soft + values}
	if got := reasons(t, s.program("f32")); got == "" {
		t.Error("doubled scores are an attention")
	}
}

// The expansion of dm.attention is matched again, with the same attributes; an
// expansion has one spelling for each choice of operands and attributes.
func TestExpansionsAreFound(t *testing.T) {
	for _, c := range []struct{ name, q, k, v, mask, attrs string }{
		{name: "no heads", q: "5x8", k: "7x8", v: "7x4", attrs: ""},
		{name: "heads", q: "2x3x5x8", k: "2x3x7x8", v: "2x3x7x4", attrs: ", scale = 0.5"},
		{name: "grouped heads", q: "2x6x5x8", k: "2x3x7x8", v: "2x3x7x4", attrs: ", scale = 0.5"},
		{name: "one key head, causal", q: "2x6x5x8", k: "2x1x7x8", v: "2x1x7x4", attrs: ", scale = 0.5, causal = true"},
		{name: "causal, a mask of keys", q: "2x3x5x8", k: "2x3x5x8", v: "2x3x5x8", mask: "2x1x1x5", attrs: ", causal = true"},
		{name: "a bias of every score, dropout", q: "2x3x5x8", k: "2x3x7x8", v: "2x3x7x4", mask: "3x5x7", attrs: ", dropout = 0.25, seed = 9"},
		{name: "rank 5, one of everything", q: "1x2x1x5x8", k: "1x2x1x7x8", v: "1x2x1x7x4", mask: "7", attrs: ", causal = true"},
	} {
		for _, elem := range []string{"f16", "f32", "f64"} {
			t.Run(c.name+"/"+elem, func(t *testing.T) {
				of := func(shape string) string { return "tensor<" + shape + "x" + elem + ">" }
				result := c.q[:strings.LastIndex(c.q, "x")] + c.v[strings.LastIndex(c.v, "x"):]
				names, kinds, args := "%q, %k, %v", of(c.q)+", "+of(c.k)+", "+of(c.v), "%q: "+of(c.q)+", %k: "+of(c.k)+", %v: "+of(c.v)
				if c.mask != "" {
					names, kinds, args = names+", %m", kinds+", "+of(c.mask), args+", %m: "+of(c.mask)
				}
				text := "func.func @f(" + args + ") -> " + of(result) + " {\n  %y = dm.attention " + names + c.attrs + " : (" + kinds + ") -> " + of(result) + "\n  return %y : " + of(result) + "\n}\n"
				u := passtest.Unit(t, text, "f", nil)
				o := u.Func.Body.Ops[0]
				pass.Replace(o, op.Of(o).Expand(&ir.Builder{Block: o.Parent, At: o}, o)...)
				expanded := passtest.Text(t, u)
				if strings.Contains(expanded, "dm.attention") {
					t.Fatal("it was not expanded")
				}
				found, err := passtest.Apply(t, expanded, "f", nil, attentionPasses("")...)
				if err != nil {
					t.Fatal(err)
				}
				line := lineWith(found, "dm.attention")
				if line == "" || !strings.Contains(line, c.attrs+" :") {
					t.Errorf("not found with %q: %s\n%s", c.attrs, reasons(t, expanded), found)
				}
				passtest.Same(t, text, found, "f", nil, 64)
			})
		}
	}
}

func lineWith(text, part string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) {
			return line
		}
	}
	return ""
}

// reasons is why the contractions of @f are no second ones of an attention.
func reasons(t *testing.T, text string) string {
	t.Helper()
	u := passtest.Unit(t, text, "f", nil)
	all := ""
	for _, o := range u.Func.Body.Ops {
		if _, why := attention.FindAttention(o); why != "" {
			all += why + "\n"
		}
	}
	return all
}

// The gradient of what was written out is that of the attention: every spelling
// that is found is trained by a step, with and without the pass.
func TestSpellingsBackward(t *testing.T) {
	slack := map[string]float64{"f64": 256, "f32": 256, "f16": 16}
	for _, s := range spellings {
		if s.attributes == "" {
			continue
		}
		for _, elem := range []string{"f64", "f32", "f16"} {
			if !s.in(elem) {
				continue
			}
			t.Run(s.name+"/"+elem, func(t *testing.T) {
				text := s.program(elem)
				u := passtest.Unit(t, text, "f", nil)
				u.Options.Grad = true
				if err := pass.Run(u, []pass.Pass{gradient.Pass()}, nil); err != nil {
					t.Fatal(err)
				}
				want := passtest.Text(t, u)
				u = passtest.Unit(t, text, "f", nil)
				u.Options.Grad = true
				if err := pass.Run(u, append(attentionPasses(""), gradient.Pass(), simplify.Pass()), nil); err != nil {
					t.Fatal(err)
				}
				got := passtest.Text(t, u)
				if !strings.Contains(got, "dm.attention_grad") {
					t.Fatalf("the gradient is not that of an attention:\n%s", got)
				}
				passtest.Same(t, want, got, u.Func.Name, nil, slack[elem])
			})
		}
	}
}

// in reports whether the spelling is one of elements of the type elem: in f16 scores do not vanish beside the lowest number.
func (s spelling) in(elem string) bool {
	return elem != "f64" && elem != "f16" || elem == "f64" && !strings.Contains(s.name, "f32") || elem == "f16" && !strings.Contains(s.lines, "LOWEST")
}

// program is the spelling as a function @f with elements of the type elem.
func (s spelling) program(elem string) string {
	aliases := s.types
	if !strings.Contains(aliases, "!q =") {
		aliases = usual + aliases
	}
	args, plain := strings.CutPrefix(s.args, "= ")
	if !plain {
		args = "%q: !q, %k: !k, %v: !k" + s.args
	}
	results, kinds := "%y", "!y"
	if s.back != "" {
		name, kind, _ := strings.Cut(s.back, ": ")
		results, kinds = results+", "+name, kinds+", "+kind
	}
	least := map[string]string{"f16": "0xFC00", "bf16": "0xFF80", "f32": "0xFF800000", "f64": "0xFFF0000000000000"}[elem]
	text := aliases + "func.func @f(" + args + ") -> (" + kinds + ") {\n" + s.lines + "return " + results + " : " + kinds + "\n}\n"
	lowest := map[string]string{"bf16": "0xFF7F", "f32": "0xFF7FFFFF", "f64": "0xFFEFFFFFFFFFFFFF"}[elem]
	return strings.NewReplacer("xE>", "x"+elem+">", "<E>", "<"+elem+">", "INF", least, "LOWEST", lowest).Replace(text)
}
