package main

import (
	"fmt"
	"strings"
)

// rowsProgram is the program of a kernel over rows and columns of elements of type t. What several ops compute in one
// kernel of a library stands in one kernel here.
func rowsProgram(r *row, t string) (string, error) {
	rows, cols := r.integer("rows", 1), r.integer("columns", r.integer("elements", 0))
	if bytes := r.integer("bytes", 0); cols == 0 && bytes > 0 {
		t, cols = "f32", bytes/4
	}
	if cols > 1<<20 && rows == 1 && cols%1024 == 0 {
		rows, cols = cols/1024, 1024
	}
	if cols == 0 {
		return "", fmt.Errorf("%w without a shape", errKind)
	}
	if d := r.text("direction", "forward"); d != "forward" {
		return "", fmt.Errorf("%w of %s %s", errKind, r.Kind, d)
	}
	full := fmt.Sprintf("tensor<%dx%dx%s>", rows, cols, t)
	row := fmt.Sprintf("tensor<%dx%s>", cols, t)
	one := fmt.Sprintf("tensor<%dx%s>", rows, t)
	var args []string
	var body, result string
	x := "%x: " + full
	switch r.Kind {
	case "copy", "scale":
		args, result = []string{x}, full
		body = fmt.Sprintf("dm.neg %%x : %s", full) // a copy itself would be removed
	case "add":
		args, result = []string{x, "%z: " + full}, full
		body = fmt.Sprintf("dm.add %%x, %%z : %s", full)
	case "gelu", "relu", "silu", "exp":
		args, result = []string{x}, full
		body = fmt.Sprintf("dm.%s %%x : %s", r.Kind, full)
	case "triad":
		z := []string{"%x: " + full, "%z: " + full}
		sum := fmt.Sprintf("    %%1 = dm.neg %%z : %s\n    %%2 = dm.add %%x, %%1 : %s\n", full, full)
		if r.integer("streams", 3) == 4 {
			z = append(z, "%v: "+full)
			sum += fmt.Sprintf("    %%3 = dm.add %%2, %%v : %s\n    dm.yield %%3 : %s\n", full, full)
		} else {
			sum += fmt.Sprintf("    dm.yield %%2 : %s\n", full)
		}
		args, result, body = z, full, fmt.Sprintf("dm.kernel -> %s {\n%s  }", full, sum)
	case "fill":
		scalar := fmt.Sprintf("tensor<%s>", t)
		args, result, body = []string{"%x: " + scalar}, full, fmt.Sprintf("dm.broadcast %%x, dims = [] : (%s) -> %s", scalar, full)
	case "read":
		scalar := fmt.Sprintf("tensor<%s>", t)
		args, result, body = []string{x}, scalar, fmt.Sprintf("dm.reduce %%x, kind = add, dims = [0, 1] : (%s) -> %s", full, scalar)
	case "dot":
		scalar := fmt.Sprintf("tensor<%s>", t)
		args, result = []string{x, "%z: " + full}, scalar
		body = fmt.Sprintf("dm.kernel -> %s {\n    %%1 = dm.mul %%x, %%z : %s\n    %%2 = dm.reduce %%1, kind = add, dims = [0, 1] : (%s) -> %s\n    dm.yield %%2 : %s\n  }", scalar, full, full, scalar, scalar)
	case "add_rms_norm":
		args, result = []string{x, "%z: " + full, "%w: " + row}, full+", "+full
		return fmt.Sprintf("func.func @f(%s) -> (%s) {\n  %%y:2 = dm.kernel -> (%s) {\n    %%1 = dm.add %%x, %%z : %s\n    %%2 = dm.rms_norm %%1, %%w, dims = [1] : (%s, %s) -> %s\n    dm.yield %%1, %%2 : %s\n  }\n  return %%y#0, %%y#1 : %s\n}\n",
			strings.Join(args, ", "), result, result, full, full, row, full, result, result), nil
	case "relu_squared":
		args, result = []string{x}, full
		body = fmt.Sprintf("dm.kernel -> %s {\n    %%1 = dm.relu %%x : %s\n    %%2 = dm.mul %%1, %%1 : %s\n    dm.yield %%2 : %s\n  }", full, full, full, full)
	case "softmax":
		args, result = []string{x}, full
		body = fmt.Sprintf("dm.softmax %%x, dim = 1 : %s", full)
	case "layer_norm":
		args, result = []string{x, "%w: " + row, "%b: " + row}, full
		body = fmt.Sprintf("dm.layer_norm %%x, %%w, %%b, dims = [1] : (%s, %s, %s) -> %s", full, row, row, full)
	case "rms_norm":
		args, result = []string{x, "%w: " + row}, full
		body = fmt.Sprintf("dm.rms_norm %%x, %%w, dims = [1] : (%s, %s) -> %s", full, row, full)
	case "reduce":
		args, result = []string{x}, one
		body = fmt.Sprintf("dm.reduce %%x, kind = add, dims = [1] : (%s) -> %s", full, one)
	case "transpose":
		result = fmt.Sprintf("tensor<%dx%dx%s>", cols, rows, t)
		args = []string{x}
		body = fmt.Sprintf("dm.transpose %%x, dims = [1, 0] : (%s) -> %s", full, result)
	case "swiglu", "geglu":
		f := map[string]string{"swiglu": "silu", "geglu": "gelu"}[r.Kind]
		args, result = []string{x, "%z: " + full}, full
		body = fmt.Sprintf("dm.kernel -> %s {\n    %%1 = dm.%s %%x : %s\n    %%2 = dm.mul %%1, %%z : %s\n    dm.yield %%2 : %s\n  }", full, f, full, full, full)
	case "cross_entropy":
		labels := fmt.Sprintf("tensor<%dxi64>", rows)
		args, result = []string{x, "%l: " + labels}, fmt.Sprintf("tensor<%s>", t)
		body = fmt.Sprintf("dm.cross_entropy %%x, %%l : (%s, %s) -> %s", full, labels, result)
	default:
		return "", fmt.Errorf("%w for kind %s", errKind, r.Kind)
	}
	return fmt.Sprintf("func.func @f(%s) -> %s {\n  %%y = %s\n  return %%y : %s\n}\n", strings.Join(args, ", "), result, body, result), nil
}
