package llvm_test

import (
	"bytes"
	"debug/dwarf"
	"debug/elf"
	"io"
	"slices"
	"testing"

	"dmir/gpu/native"
	"dmir/testkit/need"
)

// Machine code has the lines of the program that it came from, as profilers read them.
func TestLines(t *testing.T) {
	needClang(t)
	const text = `func.func @f(%x: tensor<64x32xf32>, %b: tensor<32xf32>) -> tensor<64x32xf32> {
  %0 = dm.add %x, %b : (tensor<64x32xf32>, tensor<32xf32>) -> tensor<64x32xf32>

  %1 = dm.sqrt %0 : tensor<64x32xf32>
  return %1 : tensor<64x32xf32>
}
`
	p := built(t, "dir/elements.dmir", text, arch)
	object, err := native.Object(t.Context(), p, arch)
	if err != nil {
		t.Fatal(err)
	}
	file, err := elf.NewFile(bytes.NewReader(object))
	need.OK(t, err) // an object of another system
	data, err := file.DWARF()
	if err != nil {
		t.Fatal(err)
	}
	var lines []int
	for r := data.Reader(); ; {
		unit, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if unit == nil {
			break
		}
		if unit.Tag != dwarf.TagCompileUnit {
			continue
		}
		rows, err := data.LineReader(unit)
		if err != nil {
			t.Fatal(err)
		}
		var row dwarf.LineEntry
		for rows != nil {
			if err := rows.Next(&row); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if row.File != nil && row.File.Name == "dir/elements.dmir" && !slices.Contains(lines, row.Line) {
				lines = append(lines, row.Line)
			}
		}
		r.SkipChildren()
	}
	for _, line := range []int{2, 4} {
		if !slices.Contains(lines, line) {
			t.Errorf("no code of line %d; there is code of the lines %v", line, lines)
		}
	}
}
