package program

import (
	"strings"
	"testing"

	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// Products of f32 that state no precision have that of the program, behind edits too; others, and those of other types, have theirs.
func TestPrecisionOfProgram(t *testing.T) {
	text := `func.func @f(%x: tensor<8x8xf32>, %h: tensor<8x8xf16>) -> (tensor<8x8xf32>, tensor<8x8xf16>) {
  %0 = dm.matmul %x, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = dm.matmul %0, %x, precision = f32 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = dm.matmul %h, %h : (tensor<8x8xf16>, tensor<8x8xf16>) -> tensor<8x8xf16>
  %3 = dm.einsum "ab->a" %x : (tensor<8x8xf32>) -> tensor<8xf32>
  %4 = dm.attention %0, %x, %x : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1, %2 : tensor<8x8xf32>, tensor<8x8xf16>
}
`
	check := func(p *Program, want ...types.Elem) {
		t.Helper()
		for _, d := range p.Diags {
			t.Errorf("%s %s", d.Code, d.Message)
		}
		entries := p.Funcs[0].Entries
		for i, e := range want {
			if entries[i].Elem != e || op.TF32(entries[i].Op) != (e == types.TF32) {
				t.Errorf("op %d is computed in %s, want %s", i, entries[i].Elem, e)
			}
		}
	}
	src := source.New("t.dmir", text)
	check(Load(src, Options{}), types.F32, types.F32, types.F16, types.F32, types.F32)
	p := Load(src, Options{F32Products: "tf32"})
	check(p, types.TF32, types.F32, types.F16, types.F32, types.TF32)
	at := strings.Index(text, ", precision")
	edit := parse.Change{Start: at, End: at + len(", precision = f32")}
	if !p.Splice(src.Edit(edit.Start, edit.End, ""), edit) {
		t.Fatal("the edit is not followed")
	}
	check(p, types.TF32, types.TF32, types.F16, types.F32, types.TF32)
}
