package cost_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dmir/analysis/cost"
	"dmir/dialect/types"
	"dmir/testkit/need"
)

const (
	plain = "../../examples/bert_encoder.dmir"
	fused = "../../examples/bert_encoder_fused.dmir"
)

// operator is one row of the published table: FLOP, and elements of two bytes.
type operator struct {
	Name    string `json:"op"`
	Class   string `json:"op_class"`
	FLOP    int64  `json:"flop"`
	Read    int64  `json:"elements_read"`
	Written int64  `json:"elements_written"`
}

// bert derives the rows of the table from the dimensions of the layer.
func bert() []operator {
	const (
		b, l, n, h, p, u = 8, 512, 1024, 16, 64, 4096

		x      = b * l * n     // an activation: 4,194,304 elements
		scores = b * h * l * l // 33,554,432
		wide   = b * l * u     // 16,777,216
	)
	contraction := func(name string, flop, read, written int64) operator {
		return operator{name, "contraction", flop, read, written}
	}
	elementwise := func(name string, flop, read, written int64) operator {
		return operator{name, "elementwise", flop, read, written}
	}
	normalization := func(name string, flop, read, written int64) operator {
		return operator{name, "normalization", flop, read, written}
	}
	return []operator{
		contraction("qkv", 2*3*x*n, x+3*n*n, 3*x),
		elementwise("input_bias", 3*x, 3*x+3*n, 3*x),
		contraction("qk_t", 2*scores*p, 2*x, scores),
		normalization("scaled_softmax_dropout", 6*scores, scores, 3*scores),
		contraction("gamma", 2*scores*p, scores+x, x),
		contraction("out", 2*x*n, x+n*n, x),
		elementwise("out_bias", x, x+n, x),
		elementwise("dropout1", x, x, 2*x),
		elementwise("residual1", x, 2*x, x),
		normalization("layernorm1", 7*x, x+2*n, x),
		contraction("linear1", 2*wide*n, x+n*u, wide),
		elementwise("linear1_bias", wide, wide+u, wide),
		elementwise("relu", 0, wide, wide),
		elementwise("dropout2", wide, wide, 2*wide),
		contraction("linear2", 2*wide*n, wide+n*u, x),
		elementwise("linear2_bias", x, x+n, x),
		elementwise("dropout3", x, x, 2*x),
		elementwise("residual2", x, 2*x, x),
		normalization("layernorm2", 7*x, x+2*n, x),
	}
}

func (o operator) String() string {
	return fmt.Sprintf("%-22s %-13s flop %12d  read %9d  written %9d", o.Name, o.Class, o.FLOP, o.Read, o.Written)
}

// operators are the entries of f as rows, named by the comment above a kernel
// and otherwise by the first result.
func operators(t *testing.T, f *cost.Func, text string) []operator {
	t.Helper()
	lines := strings.Split(text, "\n")
	var rows []operator
	for _, e := range f.Entries {
		name := strings.TrimPrefix(e.Op.Results[0].Name, "%")
		if e.Op.Name == "dm.kernel" {
			_, name, _ = strings.Cut(lines[e.Line()-2], "// ")
		}
		rows = append(rows, operator{name, string(e.Class), number(t, e.FLOP), number(t, e.Read) / 2, number(t, e.Written) / 2})
		if number(t, e.Moved())%2 != 0 || e.Elem != types.F16 {
			t.Errorf("line %d: not in half precision", e.Line())
		}
	}
	return rows
}

func compare(t *testing.T, got, want []operator) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d operators, want %d", len(got), len(want))
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Errorf("operator %d\n got %v\nwant %v", i, got[i], want[i])
		}
	}
}

func TestBertEncoder(t *testing.T) {
	p := loadFile(t, plain)
	compare(t, operators(t, only(t, p), p.Src.Text()), bert())
}

// The published figures themselves.
func TestBertEncoderOracle(t *testing.T) {
	path := filepath.Join("..", "..", "..", "shared", "oracles", "bert-encoder-forward.json")
	text, err := os.ReadFile(path)
	need.OK(t, err)
	var oracle struct {
		Forward []operator          `json:"forward"`
		Totals  map[string]operator `json:"forward_totals"`
	}
	if err := json.Unmarshal(text, &oracle); err != nil {
		t.Fatal(err)
	}
	if len(oracle.Forward) != 19 {
		t.Fatalf("the table has %d rows, want 19", len(oracle.Forward))
	}
	p := loadFile(t, plain)
	rows := operators(t, only(t, p), p.Src.Text())
	compare(t, rows, oracle.Forward)

	totals := map[string]operator{}
	for _, r := range rows {
		s := totals[r.Class]
		totals[r.Class] = operator{FLOP: s.FLOP + r.FLOP, Read: s.Read + r.Read, Written: s.Written + r.Written}
	}
	if len(totals) != len(oracle.Totals) {
		t.Errorf("%d classes, want %d", len(totals), len(oracle.Totals))
	}
	for class, want := range oracle.Totals {
		if totals[class] != want {
			t.Errorf("%s\n got %v\nwant %v", class, totals[class], want)
		}
	}
}

// Wrapping the memory-bound chains in kernels keeps the signature and every
// FLOP, and moves less.
func TestBertEncoderFused(t *testing.T) {
	a, b := only(t, loadFile(t, plain)), only(t, loadFile(t, fused))
	if sa, sb := types.List(a.Func.Results), types.List(b.Func.Results); sa != sb || a.Func.Name != b.Func.Name {
		t.Errorf("results differ:\n%s\n%s", sa, sb)
	}
	if len(a.Func.Args) != len(b.Func.Args) {
		t.Fatalf("%d and %d arguments", len(a.Func.Args), len(b.Func.Args))
	}
	for i := range a.Func.Args {
		if v, w := a.Func.Args[i], b.Func.Args[i]; v.Name != w.Name || !types.Equal(v.Type, w.Type) {
			t.Errorf("argument %d: %s: %s and %s: %s", i, v.Name, v.Type, w.Name, w.Type)
		}
	}
	if !a.FLOP.Equal(b.FLOP) || !a.Minimum().Equal(b.Minimum()) {
		t.Errorf("FLOP %s and %s, minimum %s and %s", a.FLOP, b.FLOP, a.Minimum(), b.Minimum())
	}

	// What no longer moves, in elements of two bytes: the biased and the dropped
	// value, written and read, in each of the three chains, and the second
	// reading of the two residual sums, which are results all the same.
	const x, wide = 8 * 512 * 1024, 8 * 512 * 4096
	const elements = 2*2*x + 2*2*wide + 2*2*x + 2*x
	if saved, want := number(t, a.Moved())-number(t, b.Moved()), int64(2*elements); saved != want {
		t.Errorf("fusion saves %d bytes, want %d", saved, want)
	}
	h200 := lookup(t, "h200")
	if ta, tb := a.Time(h200), b.Time(h200); tb.Ns >= ta.Ns {
		t.Errorf("%.0f ns fused, %.0f ns before", tb.Ns, ta.Ns)
	}
}
