package main

import (
	"fmt"
	"strings"

	"dmir/compile/sparse"
)

// row is a function of a matrix.
type row struct {
	name   string
	text   string
	format string // of the matrix, "csr"; "csf" for the tensor of three dimensions
	mean   bool   // the elements of a row of the matrix add up to 1
}

// mostProducts bounds the products of a sparse product that is measured.
const mostProducts = 1 << 23

// rows are the functions that are measured of m.
func rows(m *matrix) (all []row) {
	if m.name == "reddit" {
		return []row{network(m)}
	}
	n, e := m.n, m.stored()
	csr := fmt.Sprintf("tensor<%[1]dx%[1]dxf32, #dm.csr<nnz = %[2]d>>", n, e)
	add := func(name, format, arguments, result, body string) {
		text := fmt.Sprintf("func.func @main(%s) -> %s {\n  %%y = %s\n  return %%y : %s\n}\n", arguments, result, body, result)
		all = append(all, row{name: name, text: text, format: format})
	}
	dense := func(rows, w int) string { return fmt.Sprintf("tensor<%dx%dxf32>", rows, w) }
	vector := fmt.Sprintf("tensor<%dxf32>", n)
	add("spmv", "csr", fmt.Sprintf("%%a: %s, %%x: %s", csr, vector), vector, fmt.Sprintf(`dm.einsum "ij,j->i" %%a, %%x : (%s, %s) -> %s`, csr, vector, vector))
	for _, w := range []int{16, 64, 256} {
		x := dense(n, w)
		add(fmt.Sprintf("spmm %d", w), "csr", fmt.Sprintf("%%a: %s, %%x: %s", csr, x), x, fmt.Sprintf("dm.matmul %%a, %%x : (%s, %s) -> %s", csr, x, x))
	}
	const w = 64
	all = append(all, attention(m, w)...)
	x := dense(n, w)
	add("sddmm 64", "csr", fmt.Sprintf("%%a: %s, %%x: %s, %%z: %s", csr, x, x), csr, fmt.Sprintf(`dm.sample "ik,jk->ij" %%a, %%x, %%z : (%s, %s, %s) -> %s`, csr, x, x, csr))
	const r = 16
	if csf, err := m.packed("csf"); err == nil {
		a, b, c := csf.Type.String(), dense(middle, r), dense(n, r)
		add("mttkrp 16", "csf", fmt.Sprintf("%%a: %s, %%x: %s, %%z: %s", a, b, c), c, fmt.Sprintf(`dm.einsum "ijk,jr,kr->ir" %%a, %%x, %%z : (%s, %s, %s) -> %s`, a, b, c, c))
	}
	if m.name == "citation" {
		all = append(all, network(m))
	}
	if products, stored := m.products(); products <= mostProducts {
		out := fmt.Sprintf("tensor<%[1]dx%[1]dxf32, #dm.csr<nnz = %[2]d>>", n, stored)
		add("spgemm", "csr", fmt.Sprintf("%%a: %s", csr), out, fmt.Sprintf(`dm.matmul %%a, %%a, products = "%d" : (%s, %s) -> %s`, products, csr, csr, out))
	}
	return all
}

// packed is m in a format.
func (m *matrix) packed(format string) (*sparse.Tensor, error) {
	shape := fmt.Sprintf("%[1]dx%[1]d", m.n)
	if format == "csf" {
		shape = fmt.Sprintf("%dx%dx%d", m.n, middle, m.n)
	}
	t, err := sparse.ParseType(fmt.Sprintf("tensor<%sxf32, #dm.%s<nnz = %d>>", shape, format, m.stored()))
	if err != nil {
		return nil, err
	}
	x, err := sparse.Pack(sparse.Open(t), m.elements(format == "csf"))
	if err != nil {
		return nil, err
	}
	return x, nil
}

// Of a network: features of a node, of a hidden layer, and classes.
const features, hidden, classes = 128, 64, 40

// network is a training step of a graph convolutional network of two layers (Kipf and Welling 2017) on the graph m, with its gradients, and weights
// that follow them. The graph's rows are means over neighbours.
func network(m *matrix) row {
	replace := strings.NewReplacer("!adj", fmt.Sprintf("tensor<%[1]dx%[1]dxf32, #dm.csr<nnz = %[2]d>>", m.n, m.stored()),
		"!x", fmt.Sprintf("tensor<%dx%dxf32>", m.n, features), "!hidden", fmt.Sprintf("tensor<%dx%dxf32>", m.n, hidden),
		"!logits", fmt.Sprintf("tensor<%dx%dxf32>", m.n, classes), "!labels", fmt.Sprintf("tensor<%dxi64>", m.n),
		"!w1", fmt.Sprintf("tensor<%dx%dxf32>", features, hidden), "!w2", fmt.Sprintf("tensor<%dx%dxf32>", hidden, classes))
	return row{name: "gcn step", format: "csr", mean: true, text: replace.Replace(`func.func @main(%a: !adj, %x: !x, %labels: !labels, %w: !w1 {dm.stddev = 0.1}, %v: !w2 {dm.stddev = 0.1}) -> (tensor<f32>, !w2, !w1, !w2, !w1) {
  %loss, %dw, %dv = dm.grad @loss %a, %x, %labels, %w, %v, wrt = [3, 4] : (!adj, !x, !labels, !w1, !w2) -> (tensor<f32>, !w1, !w2)
  %rate = dm.constant dense<0.1> : tensor<f32>
  %step = dm.mul %dw, %rate : (!w1, tensor<f32>) -> !w1
  %next = dm.sub %w, %step : !w1
  %step2 = dm.mul %dv, %rate : (!w2, tensor<f32>) -> !w2
  %next2 = dm.sub %v, %step2 : !w2
  return %loss, %next2, %next, %dv, %dw : tensor<f32>, !w2, !w1, !w2, !w1
}

func.func private @loss(%a: !adj, %x: !x, %labels: !labels, %w: !w1, %v: !w2) -> tensor<f32> {
  %xw = dm.matmul %x, %w : (!x, !w1) -> !hidden
  %sums = dm.matmul %a, %xw : (!adj, !hidden) -> !hidden
  %h = dm.relu %sums : !hidden
  %hw = dm.matmul %h, %v : (!hidden, !w2) -> !logits
  %logits = dm.matmul %a, %hw : (!adj, !logits) -> !logits
  %loss = dm.cross_entropy %logits, %labels : (!logits, !labels) -> tensor<f32>
  return %loss : tensor<f32>
}
`)}
}
