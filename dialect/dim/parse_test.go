package dim_test

import (
	"strings"
	"testing"

	"dmir/dialect/dim"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"n":                   "n",
		"2*n":                 "2*n",
		" n + 1 ":             "n + 1",
		"1 + n":               "n + 1",
		"b*n - n*b":           "0",
		"(n + 1)*(n - 1)":     "n^2 - 1",
		"n^2":                 "n^2",
		"2*(h + w)*c":         "2*c*h + 2*c*w",
		"-3 + n":              "n - 3",
		"4*b*n^2 + 12":        "4*b*n^2 + 12",
		"(h+1)/2":             "(h + 1)/2",
		"8*(h + 1)/2^2":       "8*(h + 1)/2^2",
		"((h + 1)/2 - 3)/2":   "(h - 5)/4",
		"(4*n + 2)/2":         "2*n + 1",
		"(7)/2":               "3",
		"9223372036854775807": "9223372036854775807",
	} {
		d, err := dim.Parse(text)
		if err != nil || d.String() != want {
			t.Errorf("Parse(%q) = %s, %v; want %s", text, d, err, want)
			continue
		}
		if back, err := dim.Parse(d.String()); err != nil || !back.Equal(d) {
			t.Errorf("Parse(%q) = %s, %v; want the size it was printed from", d, back, err)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "missing",
		"n +":                           "missing",
		"n/2":                           "unexpected",
		"(n)/m":                         "divisor",
		"(n)/0":                         "divisor",
		"(n + 1)/":                      "divisor",
		"n m":                           "unexpected",
		"(n":                            "not closed",
		"n^99":                          "power",
		"n^":                            "power",
		"99999999999999999999":          "63 bits",
		"9223372036854775807*2":         "63 bits",
		strings.Repeat("(", 1000) + "n": "nested",
		"A^8*A":                         "power",
		"(a+b+c+d+e)^8*(f+g+h+i+j)^8":   "terms",
		strings.Repeat("(a+b+c+d)*", 40) + "(a+b+c+d)": "terms",
	} {
		if d, err := dim.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%.40q) = %s, %v; want an error with %q", text, d, err, want)
		}
	}
}

// TestDivOrder divides away a symbol whose absence changes the order of terms;
// the quotient must still equal the same polynomial written down directly.
func TestDivOrder(t *testing.T) {
	d := must(t, "b*c*m + b*m")
	q, ok := d.Div(dim.Sym("m"))
	if want := must(t, "b*c + b"); !ok || !q.Equal(want) {
		t.Errorf("(%s) / m = %s, %v; want %s", d, q, ok, want)
	}
	if q, ok := must(t, "n + 1").Div(dim.Sym("n")); ok {
		t.Errorf("(n + 1) / n = %s; want none", q)
	}
}

func TestOverflow(t *testing.T) {
	big := dim.Const(1 << 62)
	for name, d := range map[string]dim.Dim{
		"sum":       big.Add(big),
		"product":   big.Scale(2),
		"formula":   dim.Sym("n").Mul(big).Scale(4),
		"evaluated": dim.Sym("n").Mul(dim.Sym("n")).Eval(map[string]int64{"n": 1 << 40}),
	} {
		if !d.Overflow() || d.String() != "overflow" {
			t.Errorf("%s = %s; want an overflow", name, d)
		}
		if _, ok := d.Int(); ok {
			t.Errorf("%s has a value", name)
		}
		if r := d.Add(dim.Const(1)); !r.Overflow() {
			t.Errorf("%s + 1 = %s forgets the overflow", name, r)
		}
	}
	if n := must(t, "5*b - 7").Largest(); n != 7 {
		t.Errorf("the largest coefficient of 5*b - 7 is %d", n)
	}
}

func must(t *testing.T, text string) dim.Dim {
	t.Helper()
	d, err := dim.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"n", "2*n + 1", "(a+b)^3", "((((", "n^2*m - 4"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := dim.Parse(text)
		if err != nil {
			return
		}
		if back, err := dim.Parse(d.String()); err != nil || !back.Equal(d) {
			t.Errorf("%q prints as %q, which reads as %s, %v", text, d, back, err)
		}
	})
}
