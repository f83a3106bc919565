package refactor_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/analysis/refactor"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/dialect/print"
	"dmir/dialect/types"
	"dmir/dialect/verify"
	"dmir/syntax/ast"
	"dmir/syntax/diag"
	"dmir/syntax/format"
	"dmir/syntax/parse"
	"dmir/syntax/source"
	"dmir/testkit/randprog"
)

// texts are the examples and random programs, laid out.
func texts(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	files, _ := filepath.Glob("../../examples/*.dmir")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(file)] = small(t, string(text))
	}
	for seed := range uint64(20) {
		text := randprog.Messy(seed, 4+int(seed))
		out["messy "+string(rune('a'+seed))] = format.File(parse.File(source.New("", text)))
	}
	return out
}

// TestTypesAreRestored takes the types of ops out of programs, where they
// follow, and has them written again.
func TestTypesAreRestored(t *testing.T) {
	taken := 0
	for name, text := range texts(t) {
		p := load(t, text, nil)
		bare := text
		for i := len(p.Funcs) - 1; i >= 0; i-- {
			var edits []diag.Edit
			ir.Walk(p.Funcs[i].Func.Body.Ops, func(o *ir.Op) bool {
				if follows(o) {
					sig := origin.Tree(o).Abs(origin.Tree(o).Sig)
					head := strings.TrimRight(strings.TrimSuffix(strings.TrimRight(text[origin.Tree(o).Off:sig.Start], " "), ":"), " ")
					edits = append(edits, diag.Edit{Span: source.Span{Start: origin.Tree(o).Off + len(head), End: sig.End}})
				}
				return true
			})
			taken += len(edits)
			bare = apply(t, bare, edits)
		}
		q := load(t, bare, nil)
		for i := len(q.Funcs) - 1; i >= 0; i-- { // from the end, so that places in front stay
			at := origin.Tree(q.Funcs[i].Func.Op).Func.NameSpan
			span := source.Span{Start: origin.Tree(q.Funcs[i].Func.Op).Abs(at).Start}
			span.End = span.Start
			for _, a := range refactor.Actions(q, span) {
				if a.ID != "types" {
					continue
				}
				c, err := refactor.Apply(q, span, a.ID)
				if err != nil {
					t.Fatal(name, err)
				}
				bare = apply(t, bare, c.Edits)
				q = load(t, bare, nil)
			}
		}
		if d := print.Diff(p.Modules[0], q.Modules[0]); d != "" || len(errorsIn(q)) > 0 {
			t.Errorf("%s: %s, %d errors\n%s", name, d, len(errorsIn(q)), format.Diff(name, text, bare))
		}
	}
	t.Logf("%d types written again", taken)
}

// follows reports whether o's types follow from those of its operands.
func follows(o *ir.Op) bool {
	def := op.Of(o)
	if def == nil || def.Infer == nil || len(o.Operands) == 0 || len(o.Results) == 0 || origin.Tree(o).Form != ast.Pretty || def.Is(op.Terminator) || len(o.Regions) > 0 {
		return false
	}
	if o.Name == op.Pack && op.IsSparse(o) {
		return false
	}
	switch o.Name {
	case "dm.convert_format", "dm.segment_ids", "dm.convert", "dm.copy", "dm.reshape", "dm.broadcast", "dm.dropout", "dm.one_hot", op.Reshard, op.AllGather, op.AllToAll, op.ReduceScatter: // give what is written
		return false
	}
	inferred, ok := verify.Infer(o)
	if !ok || len(inferred) != len(o.Results) {
		return false
	}
	for i, v := range o.Results {
		if !types.Equal(inferred[i], v.Type) {
			return false
		}
	}
	return true
}

// TestThereAndBack writes functions in generic form and in their own again.
func TestThereAndBack(t *testing.T) {
	for name, text := range texts(t) {
		p := load(t, text, nil)
		for i := range p.Funcs {
			q := form(t, form(t, p, i, "form:generic"), i, "form:pretty")
			for j := range p.Modules {
				if d := print.Diff(p.Modules[j], q.Modules[j]); d != "" {
					t.Errorf("%s: %s", name, d)
				}
			}
		}
	}
}

func form(t *testing.T, p *program.Program, i int, id string) *program.Program {
	t.Helper()
	start := p.Funcs[i].Func.Op.Head.Start
	span := source.Span{Start: start, End: start}
	for _, a := range refactor.Actions(p, span) {
		if a.ID == id {
			if q := prove(t, p, span, a, false); q != nil {
				return q
			}
		}
	}
	t.Fatalf("%s is not offered for @%s", id, p.Funcs[i].Func.Name)
	return nil
}

// TestOpenSizes applies whatever is offered in programs whose sizes are partly
// symbols; their loops may never end, so that they are not run.
func TestOpenSizes(t *testing.T) {
	done, refused := map[string]int{}, map[string]int{}
	for seed := range uint64(30) {
		text := format.File(parse.File(source.New("", randprog.Structure(seed, 12, true))))
		all(t, text, map[string]int64{"n": 4, "m": 3}, rand.New(rand.NewPCG(seed, 3)), 6, done, refused, false)
		all(t, text, nil, rand.New(rand.NewPCG(seed, 3)), 6, done, refused, false)
	}
	t.Logf("applied: %v\nrefused: %v", done, refused)
}

// TestEveryCompositeExpands expands the example of each composite.
func TestEveryCompositeExpands(t *testing.T) {
	composites := 0
	for _, d := range op.All() {
		if d.Expand == nil {
			continue
		}
		composites++
		t.Run(d.Name, func(t *testing.T) {
			p := load(t, d.Example, nil)
			at := strings.Index(d.Example, d.FullName()+" ")
			span := source.Span{Start: at, End: at}
			for _, a := range refactor.Actions(p, span) {
				if a.ID != "expand" {
					continue
				}
				if a.Disabled != "" {
					t.Fatal(a.Disabled)
				}
				if q := prove(t, p, span, a, true); q != nil && strings.Contains(q.Src.Text(), d.FullName()+" ") {
					t.Errorf("it is still there:\n%s", q.Src.Text())
				}
				return
			}
			t.Error("nothing is offered")
		})
	}
	if composites < 8 {
		t.Errorf("only %d composites", composites)
	}
}
