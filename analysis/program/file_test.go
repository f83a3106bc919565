package program_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/dialect/types"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// arrays has "there", and "other" of another type.
type arrays struct{}

func (arrays) Find(f *types.File, _ *types.Tensor) error {
	switch f.Name {
	case "there":
		return nil
	case "other":
		return &types.Error{Code: types.OtherArray, Msg: "of another type"}
	}
	return errors.New("there is no " + f.Name)
}

func (arrays) Bytes(*types.File, *types.Tensor) ([]byte, error) { panic("analysis reads no elements") }

// Constants in files are costed without their elements. A file that is not there is a
// warning, one of another type an error, and both follow edits.
func TestConstantsInFiles(t *testing.T) {
	const text = `func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = dm.constant #dm.file<"w.npz", "there"> : tensor<4xf32>
  %0 = dm.add %x, %c : tensor<4xf32>
  return %0 : tensor<4xf32>
}
`
	load := func(text string) *program.Program {
		return program.Load(source.New("f.dmir", text), program.Options{Arrays: arrays{}})
	}
	p := load(text)
	if len(p.Diags) > 0 || len(p.Funcs) != 1 {
		t.Fatalf("%v", p.Diags)
	}
	// The constant is read once, as an argument is, and is part of the minimum.
	f := p.Funcs[0]
	if moved, least := f.Moved().String(), f.Minimum().String(); moved != "48" || least != "48" || !f.HasData() {
		t.Errorf("moved %s, minimum %s bytes", moved, least)
	}
	for _, c := range []struct {
		name string
		want diag.Severity
		code string
	}{{"gone", diag.Warning, types.MissingArray}, {"other", diag.Error, types.OtherArray}} {
		at := strings.Index(text, "there")
		next := strings.Replace(text, "there", c.name, 1)
		src := source.New("f.dmir", text)
		edited := load(text)
		if !edited.Splice(src.Edit(at, at+len("there"), c.name), parse.Change{Start: at, End: at + len("there"), Length: len(c.name)}) {
			t.Fatal("the edit is not followed")
		}
		for how, p := range map[string]*program.Program{"loaded": load(next), "edited": edited} {
			if len(p.Diags) != 1 || p.Diags[0].Severity != c.want || p.Diags[0].Code != c.code || p.Src.Slice(p.Diags[0].Span) != fmt.Sprintf(`#dm.file<"w.npz", %q>`, c.name) {
				t.Errorf("%s, %s: %v", c.name, how, p.Diags)
			}
		}
	}
}
