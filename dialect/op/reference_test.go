package op_test

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dmir/dialect/op"
)

var update = flag.Bool("update", false, "write the golden files")

const page = "../../docs/DIALECT.md"

func TestReferenceIsCurrent(t *testing.T) {
	want := op.Reference()
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(got), want); d != "" {
		t.Errorf("docs/DIALECT.md is not current; run go generate ./dialect/op\n%s", d)
	}
}

func TestElemsText(t *testing.T) {
	cases := map[string]string{
		"exp":     "floats",
		"add":     "floats, integers",
		"abs":     "floats, signed integers",
		"not":     "integers, i1",
		"reshape": "floats, f8, integers, i4, ui4, i1",
		"yield":   "any",
	}
	for name, want := range cases {
		if got := op.ElemsText(op.Lookup("dm." + name).Operands[0].Elems); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := op.ElemsText(op.Lookup("dm.compare").Results[0].Elems); got != "i1" {
		t.Errorf("compare gives %q", got)
	}
	if got := op.ElemsText(op.Lookup("dm.gather").Operands[1].Elems); got != "i64, i32, ui64, ui32" {
		t.Errorf("gather takes indices of %q", got)
	}
}
