package differential

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"dmir/gpu/artifact"
	"dmir/gpu/emulator"
	"dmir/testkit/need"
)

// scatterCase is a scatter of updates into a tensor.
type scatterCase struct {
	name    string
	kind    string // "": add
	table   string // shape of the operand
	ids     string // shape of the indices
	updates string
	clauses string
	elem    string // "": f32
	id      string // "": i32
	draw    string // the op that makes the indices; "": random ones, some of which name no row
}

// Shapes and distributions of indices that are grouped by row, and a few that
// are too small for it.
var scatterCases = []scatterCase{
	{name: "rows", table: "530x7", ids: "410", updates: "410x7"},
	{name: "several strips, the last one short", table: "1100x3", ids: "700", updates: "700x3"},
	{name: "more updates than a block reads at a time", table: "600x2", ids: "4500", updates: "4500x2"},
	{name: "one row", table: "1x5", ids: "400", updates: "400x5", draw: "rng uniform low = 0, high = 1"},
	{name: "no row", table: "300x5", ids: "400", updates: "400x5", draw: "rng uniform low = 300, high = 900"},
	{name: "equal indices", table: "300x5", ids: "700", updates: "700x5", draw: "constant dense<299>"},
	{name: "sorted indices", table: "520x3", ids: "500", updates: "500x3", draw: "iota dim = 0, start = -20"},
	{name: "reversed indices", table: "520x3", ids: "500", updates: "500x3", draw: "iota dim = 0, start = 530, step = -1"},
	{name: "two-dimensional indices", table: "300x4", ids: "10x41", updates: "10x41x4", draw: "iota dim = 1, start = 270"},
	{name: "a column", table: "6x300", ids: "20x20", updates: "6x20x20", clauses: "dim = 1"},
	{name: "a middle dimension", table: "3x300x2", ids: "400", updates: "3x400x2", clauses: "dim = 1", id: "i64"},
	{name: "scalars", table: "700", ids: "650", updates: "650", id: "ui32", draw: "rng uniform low = 0, high = 900"},
	{name: "batches", table: "3x290x2", ids: "3x400", updates: "3x400x2", clauses: "dim = 1, batch_dims = 1"},
	{name: "batches of two dimensions", table: "2x2x290", ids: "2x2x20x20", updates: "2x2x20x20", clauses: "dim = 2, batch_dims = 2", id: "i64"},
	{name: "batches before another dimension", table: "2x3x270", ids: "2x390", updates: "2x3x390", clauses: "dim = 2, batch_dims = 1"},
	{name: "strips as long as they may be", table: "67x4100", ids: "67x350", updates: "67x350", clauses: "dim = 1, batch_dims = 1", draw: "rng uniform low = -30, high = 4200"},
	{name: "f16", table: "300x6", ids: "450", updates: "450x6", elem: "f16"},
	{name: "bf16", table: "300x6", ids: "450", updates: "450x6", elem: "bf16", id: "i64"},
	{name: "f64", table: "300x6", ids: "450", updates: "450x6", elem: "f64"},
	{name: "i32", table: "300x6", ids: "450", updates: "450x6", elem: "i32"},
	{name: "i8", kind: "min", table: "300x6", ids: "450", updates: "450x6", elem: "i8", id: "ui64", draw: "rng uniform low = 0, high = 330"},
	{name: "set", kind: "set", table: "300x6", ids: "450", updates: "450x6"},
	{name: "set of halves of bytes", kind: "set", table: "300x6", ids: "450", updates: "450x6", elem: "i4"},
	{name: "set of batches", kind: "set", table: "3x290", ids: "3x400", updates: "3x400", clauses: "dim = 1, batch_dims = 1", elem: "i64", id: "i64"},
	{name: "max", kind: "max", table: "300x6", ids: "450", updates: "450x6"},
	{name: "mul", kind: "mul", table: "900x3", ids: "450", updates: "450x3"},
	{name: "one row has nearly all", table: "300x8", ids: "30x100", updates: "30x100x8", draw: "rng uniform low = -400, high = 3"},
	{name: "two levels of pieces", table: "40x2", ids: "9000", updates: "9000x2", draw: "constant dense<17>"},
	{name: "pieces of batches", table: "3x30x2", ids: "3x1000", updates: "3x1000x2", clauses: "dim = 1, batch_dims = 1", draw: "rng uniform low = 0, high = 2"},
	{name: "pieces of a middle dimension", kind: "mul", table: "3x300x4", ids: "900", updates: "3x900x4", clauses: "dim = 1", elem: "i32", draw: "rng uniform low = 0, high = 3"},
	{name: "pieces of f16", table: "3000x16", ids: "640", updates: "640x16", elem: "f16", draw: "rng uniform low = 4, high = 6"},
	{name: "no updates", table: "300x6", ids: "0", updates: "0x6", draw: "iota dim = 0"},
	{name: "few updates", table: "300x6", ids: "9", updates: "9x6"},
	{name: "no dimension of indices", table: "300x6", ids: "", updates: "6"},
}

// of is a tensor type.
func of(shape, elem string) string {
	if shape == "" {
		return "tensor<" + elem + ">"
	}
	return "tensor<" + shape + "x" + elem + ">"
}

// text is the program; uses says what the operand and the result are: "new", in
// memory of its own; "donated", where the operand is overwritten; "fused", where a
// dm.kernel also computes the indices and the updates, and a step of SGD of the result;
// "trained", where the result is the gradient of a step with momentum.
func (c scatterCase) text(uses string) string {
	or := func(s, otherwise string) string {
		if s == "" {
			return otherwise
		}
		return s
	}
	kind, elem, id := or(c.kind, "add"), or(c.elem, "f32"), or(c.id, "i32")
	x, u, ids := of(c.table, elem), of(c.updates, elem), of(c.ids, id)
	donated := ""
	if uses == "donated" {
		donated = " {dm.donated}"
	}
	results := x
	if uses == "trained" {
		results = fmt.Sprintf("(%[1]s {dm.state = \"p\"}, %[1]s {dm.state = \"m\"})", x)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "func.func @f(%%x: %s%s, %%u: %s, %%p: %s, %%m: %s) -> %s {\n", x, donated, u, x, x, results)
	fmt.Fprintf(&b, "  %%ids = dm.%s : %s\n", or(c.draw, "rng uniform low = -30, high = 400"), ids)
	scatter := fmt.Sprintf("dm.scatter %s %%x, %%i, %%v, %s : (%s, %s, %s) -> %s\n", kind, or(c.clauses, "dim = 0"), x, ids, u, x)
	switch uses {
	case "fused":
		fmt.Fprintf(&b, "  %%y = dm.kernel -> %s {\n    %%one = dm.constant dense<1> : %s\n    %%i = dm.max %%ids, %%one : %s\n    %%v = dm.mul %%u, %%u : %s\n    %%s = %s    %%t = dm.sub %%p, %%s : %s\n    dm.yield %%t : %s\n  }\n",
			x, ids, ids, u, scatter, x, x)
	case "trained":
		fmt.Fprintf(&b, "  %%i = dm.max %%ids, %%ids : %[1]s\n  %%v = dm.add %%u, %%u : %[2]s\n  %%s = %[3]s  %%n = dm.add %%m, %%s : %[4]s\n  %%y = dm.sub %%p, %%n : %[4]s\n  return %%y, %%n : %[4]s, %[4]s\n}\n", ids, u, scatter, x)
		return b.String()
	default:
		b.WriteString("  %y = " + strings.NewReplacer("%i,", "%ids,", "%v,", "%u,").Replace(scatter))
	}
	fmt.Fprintf(&b, "  return %%y : %s\n}\n", x)
	return b.String()
}

// Scatters of all shapes agree with the reference: alone, in place and fused, in turn as portable code and for Hopper.
func TestScatters(t *testing.T) {
	need.Long(t)
	needEmulator(t)
	var cases []Case
	n := 0
	for _, c := range scatterCases {
		for _, uses := range []string{"new", "donated", "fused", "trained"} {
			if (uses == "fused" || uses == "trained") && c.elem == "i4" {
				continue // no arithmetic
			}
			for _, k := range kinds(t, Case{Name: c.name + ", " + uses, Text: c.text(uses), Seed: 7}, 2*n) {
				if k.Device == "" {
					cases = append(cases, k)
				}
			}
			n++
		}
	}
	agree(t, cases)
	for _, c := range cases {
		p := built(t, c)
		grouped := slices.ContainsFunc(p.built.Steps, func(s artifact.Step) bool { return strings.HasSuffix(s.Name, "_groups") })
		if few := strings.HasPrefix(c.Name, "few updates") || strings.HasPrefix(c.Name, "no updates") || strings.HasPrefix(c.Name, "no dimension"); grouped == few {
			t.Errorf("%s: the updates are grouped: %t", c.Name, grouped)
		}
		// The kernel reads the gradient in registers, and writes over the state.
		if strings.HasSuffix(c.Name, "trained") {
			for i := range p.built.Buffers {
				if b := &p.built.Buffers[i]; b.Name == "s" || b.Kind == artifact.Output {
					t.Errorf("%s: %s has memory of its own", c.Name, b.Name)
				}
			}
		}
	}
}

// Many updates are grouped on a processor by several tasks, in the order in which one groups them: of a set the last one stays.
func TestScatterChunks(t *testing.T) {
	need.Long(t)
	needCPU(t)
	var cases []Case
	for _, kind := range []string{"add", "set"} {
		c := scatterCase{kind: kind, table: "700x3", ids: "70001", updates: "70001x3"}
		cases = append(cases, Case{Name: kind, Text: c.text("new"), Seed: 7, Device: "cpu"})
	}
	agree(t, cases)
	p := built(t, cases[0]).built
	var tasks []string
	for _, s := range p.Steps {
		tasks = append(tasks, fmt.Sprint(s.Name, " ", s.Launch.Grid[0]))
	}
	if got := strings.Join(tasks, ", "); !strings.Contains(got, "y_groups_counts 16, y_groups_starts 1, y_groups 16, y ") {
		t.Errorf("tasks: %s", got)
	}
}

func built(t *testing.T, c Case) *prepared {
	t.Helper()
	p := &prepared{c: c}
	for _, step := range []func(context.Context) *Find{p.reference, p.build} {
		if f := step(t.Context()); f != nil {
			t.Fatal(f)
		}
	}
	return p
}

// emulated is how the cases run on the emulator, for which they are compiled at once.
func emulated(t *testing.T, cases []Case) []*emulator.Result {
	t.Helper()
	var jobs []emulator.Job
	for _, c := range cases {
		p := built(t, c)
		jobs = append(jobs, emulator.Job{Program: p.built, Inputs: p.inputs})
	}
	outcomes, err := emulator.RunBatch(t.Context(), jobs, emulator.Options{Timeout: limit})
	if err != nil {
		t.Fatal(err)
	}
	var results []*emulator.Result
	for i, o := range outcomes {
		if o.Err != nil {
			t.Fatalf("%s: %v", cases[i].Name, o.Err)
		}
		results = append(results, o.Result)
	}
	return results
}

// What the gradient of an embedding reads grows with its ids, with its table and
// with the updates, and not with their products.
func TestScatterReads(t *testing.T) {
	need.Long(t)
	needEmulator(t)
	shapes := []struct{ rows, ids, depth int }{{500, 1000, 16}, {2000, 1000, 16}, {500, 4000, 16}, {500, 1000, 64}, {2000, 4000, 16}}
	both := []string{"new", "donated"}
	var cases []Case
	for _, s := range shapes {
		c := scatterCase{table: fmt.Sprintf("%dx%d", s.rows, s.depth), ids: fmt.Sprint(s.ids), updates: fmt.Sprintf("%dx%d", s.ids, s.depth), draw: fmt.Sprintf("rng uniform low = 0, high = %d", s.rows)}
		for _, uses := range both {
			cases = append(cases, Case{Name: "reads", Text: c.text(uses), Seed: 7})
		}
	}
	requested := make([]int64, len(shapes))
	for i, r := range emulated(t, cases) {
		for _, s := range r.Steps {
			requested[i/len(both)] += s.Requested
		}
	}
	for i, n := range requested {
		t.Logf("%+v: %d bytes requested", shapes[i], n)
		// All of them grow by a factor of four; strips of rows make the ids' part grow
		// with the rows, up to the multiprocessors.
		if n > 4*requested[0]*5/4 {
			t.Errorf("%+v: %d bytes are requested, of %+v %d", shapes[i], n, shapes[0], requested[0])
		}
	}
}

// The longest loop of a thread over the updates of an embedding's gradient does not grow with
// those of the most frequent id: a thread reads an update and its number, or the sum of a piece.
func TestScatterLoops(t *testing.T) {
	need.Long(t)
	needEmulator(t)
	var cases []Case
	for _, ids := range []int{4096, 100000} {
		for _, draw := range []string{"rng uniform low = 0, high = 400", "constant dense<5>"} {
			c := scatterCase{table: "400x2", ids: fmt.Sprint(ids), updates: fmt.Sprintf("%dx2", ids), draw: draw}
			for _, uses := range []string{"new", "donated", "fused"} {
				cases = append(cases, Case{Name: fmt.Sprintf("%d ids, %s, %s", ids, draw, uses), Text: c.text(uses), Seed: 7})
			}
		}
	}
	const few = 8 // of the indices and of the groups' bounds
	const bound = 2*2*63*2 + 128 + few
	for i, r := range emulated(t, cases) {
		longest := int64(0)
		for _, s := range r.Steps {
			if !strings.HasSuffix(s.Name, "_groups") {
				longest = max(longest, s.Longest)
			}
		}
		t.Logf("%s: %d accesses of a thread", cases[i].Name, longest)
		if longest > bound {
			t.Errorf("%s: a thread makes %d accesses; %d is the most", cases[i].Name, longest, bound)
		}
	}
}
