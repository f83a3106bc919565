package verify_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"dmir/dialect/ir"
	"dmir/dialect/lower"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/dialect/verify"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/scope"
	"dmir/syntax/source"
)

var update = flag.Bool("update", false, "rewrite the expected diagnostics in testdata")

// all is the diagnostics of parser, index of names, lowering and verifier
// about a text.
func all(text string) []diag.Diagnostic {
	f := parse.File(source.New("test.dmir", text))
	ds := slices.Concat(f.Diags, scope.Build(f, op.NeedsSymbol).Diags)
	for _, m := range lower.File(f) {
		ds = append(append(ds, m.Diags...), verify.Module(m)...)
	}
	sort.SliceStable(ds, func(i, j int) bool { return ds[i].Span.Start < ds[j].Span.Start })
	return ds
}

// findings are all diagnostics of a text, rendered one to a line with what
// they underline.
func findings(text string) string {
	f := source.New("test.dmir", text)
	var b strings.Builder
	for _, d := range all(text) {
		line, col := f.Human(d.Span.Start)
		fmt.Fprintf(&b, "%d:%d: %s[%s] %s: %s\n", line, col, d.Severity, d.Code, d.Name, d.Message)
		under, _, _ := strings.Cut(f.Slice(d.Span), "\n")
		fmt.Fprintf(&b, "    at: %s\n", under)
		if d.Help != "" {
			fmt.Fprintf(&b, "    help: %s\n", d.Help)
		}
		for _, n := range d.Notes {
			fmt.Fprintf(&b, "    note: %s\n", n)
		}
		for _, x := range d.Fixes {
			after := strings.Split(apply(text, x.Edits), "\n")
			fmt.Fprintf(&b, "    fix: %s\n        %s\n", x.Title, strings.TrimSpace(after[line-1]))
		}
		for _, r := range d.Related {
			line, col := f.Human(r.Span.Start)
			fmt.Fprintf(&b, "    %d:%d: %s\n", line, col, r.Message)
		}
	}
	return b.String()
}

// apply is text after edits, which are in order.
func apply(text string, edits []diag.Edit) string {
	for _, e := range slices.Backward(edits) {
		text = text[:e.Span.Start] + e.Text + text[e.Span.End:]
	}
	return text
}

// replaced is the codes whose fixes leave an op without errors.
var replaced = map[string]bool{"DM134": true, "DM154": true, "DM166": true, "DM168": true, "DM182": true}

// TestFixes applies the first fix of every diagnostic in testdata that has
// one: the text then has one finding less of that code, and
// of the codes in replaced no finding that was not there.
func TestFixes(t *testing.T) {
	archives, _ := filepath.Glob("testdata/*.txtar")
	fixed := 0
	for _, path := range archives {
		ar, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range ar.Files {
			if !strings.HasSuffix(file.Name, ".dmir") {
				continue
			}
			text := string(file.Data)
			before := all(text)
			for _, d := range before {
				if len(d.Fixes) == 0 {
					continue
				}
				after := apply(text, d.Fixes[0].Edits)
				left := all(after)
				if n, m := count(before, d.Code), count(left, d.Code); m >= n {
					t.Errorf("%s: %q leaves %s: %d findings before, %d after", file.Name, d.Fixes[0].Title, d.Message, n, m)
				}
				if replaced[d.Code] && len(left) >= len(before) {
					t.Errorf("%s: %q for %s gives another finding: %d before, %d after", file.Name, d.Fixes[0].Title, d.Message, len(before), len(left))
				}
				fixed++
			}
		}
	}
	if fixed < 8 {
		t.Errorf("only %d fixes are offered", fixed)
	}
}

// What a call makes of a function whose sizes are symbols.
func TestInstances(t *testing.T) {
	m := lower.File(parse.File(source.New("test.dmir", `func.func @f(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = dm.relu %x : tensor<3xf32>
  %1 = func.call @g(%0) : (tensor<3xf32>) -> tensor<3xf32>
  %2 = func.call @h(%1) : (tensor<3xf32>) -> tensor<3xf32>
  return %2 : tensor<3xf32>
}
func.func private @g(%x: tensor<?xf32, #dm.at<dims = [n]>>) -> tensor<?xf32, #dm.at<dims = [n]>> {
  %0 = dm.exp %x : tensor<?xf32, #dm.at<dims = [n]>>
  return %0 : tensor<?xf32, #dm.at<dims = [n]>>
}
func.func private @h(%x: tensor<3xf32>) -> tensor<3xf32> {
  return %x : tensor<3xf32>
}
`)))[0]
	all := verify.NewInstances(m, nil)
	for i, o := range m.Funcs[0].Body.Ops {
		of := all.Of(o)
		if (of != nil) != (i == 1) {
			t.Errorf("%s is an instance: %t", o.Name, of != nil)
		} else if of != nil && (of.Sizes["n"].String() != "3" || len(of.Results) != 1) {
			t.Errorf("an instance of %v", of.Sizes)
		}
	}
}

func count(ds []diag.Diagnostic, code string) int {
	n := 0
	for _, d := range ds {
		if d.Code == code {
			n++
		}
	}
	return n
}

// TestDiagnostics compares the diagnostics about the texts in testdata with the
// expected ones: for "a.dmir" the file "a.txt" of the same archive.
func TestDiagnostics(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatal("no testdata", err)
	}
	for _, path := range archives {
		ar, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{}
		for _, f := range ar.Files {
			want[f.Name] = string(f.Data)
		}
		out := &txtar.Archive{Comment: ar.Comment}
		for _, f := range ar.Files {
			base, ok := strings.CutSuffix(f.Name, ".dmir")
			if !ok {
				continue
			}
			got := findings(string(f.Data))
			out.Files = append(out.Files, f, txtar.File{Name: base + ".txt", Data: []byte(got)})
			if *update {
				continue
			}
			t.Run(base, func(t *testing.T) {
				if got != want[base+".txt"] {
					t.Errorf("%s\ngot:\n%s\nwant:\n%s", f.Data, got, want[base+".txt"])
				}
			})
		}
		if *update {
			if err := os.WriteFile(path, txtar.Format(out), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestEveryCode holds that every code of the dialect below op.Codes is
// provoked somewhere in testdata, so that none is dead and each has a message
// that somebody has read.
func TestEveryCode(t *testing.T) {
	archives, _ := filepath.Glob("testdata/*.txtar")
	var expected strings.Builder
	for _, path := range archives {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		expected.Write(text)
	}
	for _, table := range [][]diag.Code{types.Codes, lower.Codes, verify.Codes} {
		for _, c := range table {
			if !strings.Contains(expected.String(), "["+c.Code+"] "+c.Name) {
				t.Errorf("%s %s is never reported in testdata", c.Code, c.Name)
			}
		}
	}
}

// TestInfer asks for the result types of an op whose results are not written.
func TestInfer(t *testing.T) {
	const text = "func.func @f(%x: tensor<2x3xf32>, %y: tensor<3xf32>) -> tensor<2x3xf32> {\n  %z = dm.add %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>\n  return %z : tensor<2x3xf32>\n}\n"
	m := lower.File(parse.File(source.New("infer.dmir", text)))[0]
	add := m.Funcs[0].Body.Ops[0]
	ts, ok := verify.Infer(add)
	if !ok || types.List(ts) != "tensor<2x3xf32>" {
		t.Errorf("Infer = %v, %v", ts, ok)
	}
	if p := verify.Op(add); p != nil {
		t.Errorf("Op = %s", p.Msg)
	}
	m.Funcs[0].Args[1].Type = &types.Tensor{Elem: types.F16}
	if _, ok := verify.Infer(add); ok {
		t.Error("Infer of operands that differ in element type is ok")
	}
	if p := verify.Op(&ir.Op{Name: "other.op"}); p != nil {
		t.Errorf("an op of another dialect has the problem %s", p.Msg)
	}
}
