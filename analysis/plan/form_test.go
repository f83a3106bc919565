package plan

import (
	"slices"
	"strings"
	"testing"
)

// byRowsText is a step on two sparse matrices whose products are large enough to be divided.
func byRowsText(a, second string) string {
	return strings.NewReplacer("ADJ", a, "SECOND", second).Replace(`dm.mesh @pod {nodes = 4}
!a = tensor<65536x65536xf32, #dm.csr<nnz = 8000000>>
!x = tensor<65536x64xf32>
func.func @f(%a: !a ADJ, %b: !a, %x: !x {dm.sharding = #dm.at<split = @pod[{}, {}]>}) -> tensor<f32> {
  %y = dm.matmul %a, %x : (!a, !x) -> !x
  SECOND
  %z = dm.matmul %s, %y : (!a, !x) -> !x
  %h = dm.tanh %z : !x
  %l = dm.reduce add %h : (!x) -> tensor<f32>
  return %l : tensor<f32>
}
`)
}

// TestDivideRows: the search divides each sparse argument by rows that ops can take in pieces, alone and together, and keeps what the
// text states of others.
func TestDivideRows(t *testing.T) {
	const whole = "{dm.sharding = #dm.at<split = @pod[{}, {}]>}"
	for _, c := range []struct {
		name, a, second string
		forms           int // with that of the text
		names, text     string
	}{
		{"both", "", "%s = dm.tanh %b : !a", 4, "%a, %b divided by rows", "%b: !a {dm.sharding = #pod_nodes_0_of_2}"},
		{"by entries", `{dm.divide_by = "entries"}`, "%s = dm.tanh %b : !a", 4, "%a divided by entries", `%a: !a {dm.sharding = #pod_nodes_0_of_2, dm.divide_by = "entries"}`},
		{"the text divides one", "{dm.sharding = #dm.at<split = @pod[{nodes}, {}]>}", "%s = dm.tanh %b : !a", 2, "%b divided by rows", "%b: !a {dm.sharding = #pod_nodes_0_of_2}"},
		{"the text keeps one whole", whole, "%s = dm.tanh %b : !a", 2, "%b divided by rows", "%b: !a {dm.sharding = #pod_nodes_0_of_2}"},
		{"an op that needs all rows", "", "%s = dm.softmax %b, dim = 0 : !a", 2, "%a divided by rows", "%a: !a {dm.sharding = #pod_nodes_0_of_2}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := loadText(t, byRowsText(c.a, c.second))
			fn := m.Func("f")
			o := Options{Machine: cluster(t, "dgx-h100"), Devices: 4}
			s, err := newSearch(m, fn, o)
			if err != nil {
				t.Fatal(err)
			}
			if len(s.forms) != c.forms {
				t.Errorf("%d forms of the step, want %d", len(s.forms), c.forms)
			}
			r, err := Search(t.Context(), m, fn, o)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range r.Plans {
				if !slices.Contains(p.Names, c.names) {
					continue
				}
				text, err := r.Write(p)
				if err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(text, c.text) {
					t.Errorf("the plan is written as\n%s", text)
				}
				loadText(t, text)
				return
			}
			t.Errorf("no plan has %s", c.names)
		})
	}
}

// TestFormsOfDense: a step without sparse tensors is read once.
func TestFormsOfDense(t *testing.T) {
	m := loadText(t, gpt(t, 2))
	s, err := newSearch(m, m.Func("train"), Options{Machine: cluster(t, "dgx-h100"), Devices: 8})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.forms) != 1 {
		t.Errorf("%d forms", len(s.forms))
	}
}
