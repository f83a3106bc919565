package irdl

import (
	"fmt"
	"regexp"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/print"
	"dmir/dialect/types"
	"dmir/syntax/diag"
)

// The attributes by which MLIR tells the values of optional operands and
// results apart.
const (
	operandSegments = "operandSegmentSizes"
	resultSegments  = "resultSegmentSizes"
)

// An op defined in IRDL cannot be a terminator. Regions end in MLIR's
// vector.yield instead of dm.yield: it takes any values, in any op's region.
const terminator = "vector.yield"

// prepare adds to the ops of m, which should be a copy, what their generic form
// needs to be verified with the generated definition: segment sizes where
// values of different types are variadic, an empty region for an absent
// optional one, and a terminator that MLIR knows. It reports the first op with
// more than Slots such values, nil where there is none.
func prepare(m *ir.Module) (tooMany *ir.Op) {
	ir.Walk(m.Ops, func(o *ir.Op) bool {
		d := op.Of(o)
		if d == nil {
			return true
		}
		if d.Is(op.Terminator) {
			o.Name = terminator
			return true
		}
		for len(o.Regions) < len(d.Regions) {
			o.Regions = append(o.Regions, &ir.Region{Op: o})
		}
		if !segments(o, operandSegments, d.Operands, operandSlots(d), len(o.Operands)) ||
			!segments(o, resultSegments, d.Results, resultSlots(d), len(o.Results)) {
			if tooMany == nil {
				tooMany = o
			}
		}
		return true
	})
	return tooMany
}

func segments(o *ir.Op, attr string, ps []op.Param, slots string, n int) bool {
	if slots == "" {
		return true
	}
	single := len(ps) - 1
	if n-single > Slots {
		return false
	}
	sizes := make([]int64, 0, single+Slots)
	for i := range single + Slots {
		size := int64(0)
		if i < n {
			size = 1
		}
		sizes = append(sizes, size)
	}
	o.SetAttr(attr, types.IntArray(types.I32, sizes...))
	return true
}

var (
	encoding = regexp.MustCompile(`#dm\.(at|` + formats() + `)\b(?:<((?:->|[^<>"]|"(?:[^"\\]|\\.)*")*)>)?`) // a mesh may have a name in quotes
	file     = regexp.MustCompile(`#dm\.file<("(?:[^"\\]|\\.)*")>`)                                         // without the name of an array
)

// formats are the names of formats as alternatives.
func formats() string {
	names := make([]string, len(types.Formats))
	for i, f := range types.Formats {
		names[i] = f.Name
	}
	return strings.Join(names, "|")
}

// Text is m in generic form as mlir-opt --irdl-file verifies it with the
// generated definition. m stays as it is. Errors are those of print.Generic, and
// an op with more than Slots variadic values of different types.
func Text(m *ir.Module) (string, error) {
	c := m.Clone()
	if o := prepare(c); o != nil {
		return "", fmt.Errorf("%s has %s and %s; the IRDL form has room for %d", o.Name,
			diag.Count(len(o.Operands), "operand"), diag.Count(len(o.Results), "result"), Slots)
	}
	text, err := print.Loaded(c)
	if err != nil {
		return "", err
	}
	text = encoding.ReplaceAllStringFunc(text, func(s string) string {
		of := encoding.FindStringSubmatch(s)
		return "#dm." + of[1] + "<" + types.Str(of[2]).String() + ">"
	})
	return file.ReplaceAllString(text, `#dm.file<$1, "">`), nil
}
