package parse

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"dmir/syntax/ast"
	"dmir/syntax/source"
)

// hostile are texts that grow with n and would hurt a careless parser.
var hostile = map[string]func(n int) string{
	"open braces":           func(n int) string { return strings.Repeat("module {\n", n/9) },
	"open and close braces": func(n int) string { return strings.Repeat("module{", n/8) + strings.Repeat("}", n/8) },
	"open parens":           func(n int) string { return `"a.b"` + strings.Repeat("(", n) },
	"open angles":           func(n int) string { return "%0 = dm.x " + strings.Repeat("<", n) },
	"angles then parens":    func(n int) string { return "a.b " + strings.Repeat("<", n/2) + strings.Repeat(")", n/2) },
	"generic regions":       func(n int) string { return strings.Repeat("\"a.b\"() ({\n", n/11) },
	"one long line": func(n int) string {
		return "%0 = dm.constant dense<[" + strings.Repeat("1,", n/2) + "1]> : tensor<4xf32>"
	},
	"one long name":         func(n int) string { return "%" + strings.Repeat("a", n) },
	"one long string":       func(n int) string { return `"` + strings.Repeat("a", n) },
	"many strings":          func(n int) string { return strings.Repeat(`"a" `, n/4) },
	"values on lines":       func(n int) string { return "a.b(" + strings.Repeat("%a,\n", n/4) },
	"values without end":    func(n int) string { return strings.Repeat("%a,", n/3) },
	"labels":                func(n int) string { return "module {\n" + strings.Repeat("^a(\n", n/4) },
	"labels in an op":       func(n int) string { return "module {\ncf.br\n" + strings.Repeat("^a(\n", n/4) },
	"clauses":               func(n int) string { return "dm.x a = 1" + strings.Repeat(", a = 1 : i1", n/12) + " : f32" },
	"clauses with values":   func(n int) string { return "dm.x %a" + strings.Repeat(", a = b %c", n/10) },
	"comments":              func(n int) string { return strings.Repeat("//\n", n/3) },
	"splits":                func(n int) string { return strings.Repeat("// -----\n", n/9) },
	"words on lines":        func(n int) string { return strings.Repeat("x\n", n/2) },
	"half ops":              func(n int) string { return strings.Repeat("%a =\n", n/5) },
	"regions in one op":     func(n int) string { return "a.b " + strings.Repeat("{ return }", n/10) },
	"equal signs":           func(n int) string { return "a.b" + strings.Repeat(" %a =", n/5) },
	"lists before a region": func(n int) string { return "a.b " + strings.Repeat("(%a: f32)", n/9) + " { return }" },
	"loops":                 func(n int) string { return "a.b " + strings.Repeat("(%a) : i1", n/9) + " { return }" },
	"types of definitions":  func(n int) string { return "a.b @f(" + strings.Repeat("%a: f32 ", n/8) },
	"colons":                func(n int) string { return "dm.x a = 1" + strings.Repeat(" : b", n/4) },
	"resources":             func(n int) string { return strings.Repeat("{-#", n/3) },
	"dictionaries":          func(n int) string { return "a.b " + strings.Repeat("{a = ", n/5) },
	"successors":            func(n int) string { return `"a.b"()[` + strings.Repeat("^a(%x:", n/6) },
	"loops in parens":       func(n int) string { return "a.b " + strings.Repeat("(%i):(", n/6) },
	"loops in angles":       func(n int) string { return "a.b " + strings.Repeat("<(%i): a>", n/9) },
	"lists in lists": func(n int) string {
		k := n / 14
		return "a.b " + strings.Repeat("(%a: (", k) + strings.Repeat("), z)", k) + " { return }"
	},
	"types in types": func(n int) string {
		k := n / 6
		return "a.b " + strings.Repeat("(%a: ", k) + strings.Repeat(")", k) + " { return }"
	},
	"captures in parens":   func(n int) string { return "a.b " + strings.Repeat("as %a : (", n/9) },
	"branches in branches": func(n int) string { k := n / 8; return "a.b " + strings.Repeat("^b(%a, ", k) + strings.Repeat(")", k) },
	"attributes in parens": func(n int) string { return "func.func @f(" + strings.Repeat("%a: f32 {", n/9) },
}

// TestLinear measures each hostile text at one and at eight times a size by
// what it allocates, and bounds the wall time of half a mebibyte very generously:
// quadratic behaviour would take hours, not seconds.
func TestLinear(t *testing.T) {
	for name, text := range hostile {
		t.Run(name, func(t *testing.T) {
			allocated := func(n int) uint64 {
				src := source.New("hostile", text(n))
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				f := File(src)
				runtime.ReadMemStats(&after)
				if msg := check(f); msg != "" {
					t.Error(msg)
				}
				return after.TotalAlloc - before.TotalAlloc
			}
			small, large := allocated(1<<15), allocated(1<<18)
			if large > 20*small+1<<20 {
				t.Errorf("%d bytes for 32 KiB, %d bytes for 256 KiB", small, large)
			}
			if large > 400<<20 {
				t.Errorf("%d MiB for 256 KiB of text", large>>20)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				File(source.New("hostile", text(1<<19)))
			}()
			select {
			case <-done:
			case <-time.After(10 * time.Minute):
				t.Fatal("512 KiB of text take more than ten minutes")
			}
		})
	}
}

func TestDeepNesting(t *testing.T) {
	const n = 100_000
	src := source.New("deep", strings.Repeat("module {\n", n)+strings.Repeat("}\n", n))
	f := File(src)
	if len(f.Diags) != 1 || f.Diags[0].Code != "DM002" {
		t.Fatalf("%d diagnostics, first %+v", len(f.Diags), f.Diags[:min(1, len(f.Diags))])
	}
	if msg := check(f); msg != "" {
		t.Error(msg)
	}
	for _, open := range []string{"[", "{a = ", "tensor<", "tuple<", "(", "complex<"} {
		_, errA := Attr(strings.Repeat(open, n))
		_, errT := Type(strings.Repeat(open, n))
		if errA == nil || errT == nil {
			t.Errorf("%d times %s is accepted", n, open)
		}
	}
}

func TestNotText(t *testing.T) {
	for text, at := range map[string]int{"module {\x00}": 8, "module {} // \xff": 13, "ML\xefR\x00": 4, "": -1} {
		f := File(source.New("binary", text))
		if at < 0 {
			if len(f.Diags)+len(f.Items) > 0 {
				t.Errorf("%q: %+v", text, f)
			}
			continue
		}
		if len(f.Diags) != 1 || f.Diags[0].Code != "DM001" || f.Diags[0].Span.Start != at || len(f.Items) > 0 {
			t.Errorf("%q: %+v", text, f.Diags)
		}
	}
}

// TestByteOrderMark holds that the mark in front of a file is passed over there
// and nowhere else.
func TestByteOrderMark(t *testing.T) {
	const text = "// a comment\nmodule {}"
	f := File(source.New("a", source.ByteOrderMark+text))
	if len(f.Diags) > 0 || len(f.Items) != 1 || f.Items[0].Off != len(source.ByteOrderMark)+strings.Index(text, "module") {
		t.Errorf("with a mark in front: %v, %v", f.Items, f.Diags)
	}
	if f := File(source.New("a", text+source.ByteOrderMark)); len(f.Diags) == 0 {
		t.Error("a mark behind an op is no error")
	}
}

// TestBigFile reads 50 MB.
func TestBigFile(t *testing.T) {
	if testing.Short() {
		t.Skip("50 MB in short mode")
	}
	const n = 320_000
	src := source.New("big", genericOps(n))
	f := File(src)
	if len(f.Diags) > 0 || len(f.Items) != 1 {
		t.Fatalf("%d items, diagnostics %v", len(f.Items), f.Diags[:min(3, len(f.Diags))])
	}
	if ops := f.Items[0].Regions[0].Blocks[0].Ops; len(ops) != n+1 || ops[n-1].Results[0].Name != fmt.Sprintf("%%%d", n-1) {
		t.Fatalf("%d ops", len(ops))
	}
}

// TestLongLists: literals may have millions of elements.
func TestLongLists(t *testing.T) {
	const n = 2_000_000
	for _, form := range []string{"[%s]", "dense<[%s]> : tensor<2000000xi64>", "array<i64: %s>"} {
		a, err := Attr(fmt.Sprintf(form, strings.Repeat("7, ", n-1)+"7"))
		if err != nil {
			t.Errorf(form+": %v", "…", err)
			continue
		}
		elems := a.Elems
		if a.Kind == ast.ADense {
			elems = elems[0].Elems
		}
		if len(elems) != n || elems[n-1].Int != 7 {
			t.Errorf(form+": %d elements", "…", len(elems))
		}
	}
}

// TestManyErrors: a file of another kind gets a bounded number of diagnostics.
func TestManyErrors(t *testing.T) {
	f := File(source.New("prose", strings.Repeat("Call me Ishmael.\n", 5000)))
	if len(f.Diags) != maxDiags+1 || f.Diags[maxDiags].Code != "DM004" {
		t.Fatalf("%d diagnostics, the last %+v", len(f.Diags), f.Diags[len(f.Diags)-1])
	}
	if s := f.Diags[maxDiags].Span; s.Len() <= 1 || s.Start <= f.Diags[maxDiags-1].Span.Start {
		t.Errorf("the rest begins at %v, and the last shown is at %v", s, f.Diags[maxDiags-1].Span)
	}
	if msg := check(f); msg != "" {
		t.Error(msg)
	}
}

// TestCodes holds the table to what tools need of it.
func TestCodes(t *testing.T) {
	seen := map[string]bool{}
	last := ""
	for _, c := range Codes {
		if c.Code <= last || seen[c.Name] || c.Doc == "" || c.Help == "" || !strings.HasSuffix(c.Doc, ".") {
			t.Errorf("%+v is out of order, repeated or incomplete", c)
		}
		last = c.Code
		seen[c.Name] = true
	}
}
