package workspace_test

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dmir/analysis/cost"
	"dmir/dialect/op"
	"dmir/lsp/feature"
	"dmir/lsp/workspace"
	"dmir/syntax/diag"
	"dmir/syntax/scope"
	"dmir/syntax/source"
	"dmir/testkit/edittest"
)

var (
	editCount = flag.Int("edits", 40, "steps of each sequence of TestEditsEqualFreshOpen")
	editSeed  = flag.Uint64("seed", 1, "first seed of TestEditsEqualFreshOpen")
)

// TestEditsEqualFreshOpen edits documents at random, as people do and in unusual ways,
// and holds the state after each step to that of the same text opened
// afresh: text, diagnostics, findings, hints, names, outline, colours, costs,
// and what is answered at places of the text. A sequence that fails is made
// smaller and printed.
//
//	go test ./lsp/workspace -run TestEditsEqualFreshOpen -edits 5000 -seed 7
func TestEditsEqualFreshOpen(t *testing.T) {
	pool := programs(t)
	for i, base := range pool {
		for _, enc := range []source.Encoding{source.UTF16, source.UTF8} {
			seed := *editSeed + uint64(i)<<32
			t.Run(fmt.Sprintf("program %d, %s, seed %d", i, unit(enc), seed), func(t *testing.T) {
				t.Parallel()
				sequence(t, seed, base, pool, enc)
			})
		}
	}
}

func unit(enc source.Encoding) string {
	if enc == source.UTF16 {
		return "UTF-16"
	}
	return "UTF-8"
}

func sequence(t *testing.T, seed uint64, base string, pool []string, enc source.Encoding) {
	w := edittest.NewWriter(seed, base, pool)
	var steps []edittest.Step
	play := newPlayer(base, enc)
	defer func() { play.close() }()
	count := *editCount
	if testing.Short() {
		count /= 8
	}
	for range count {
		s := w.Step()
		steps = append(steps, s)
		diff := play.step(s)
		if diff == "" {
			continue
		}
		small, kept := edittest.Shrink(base, steps, func(base string, steps []edittest.Step) bool {
			return fails(base, steps, enc) != ""
		}, 20*time.Second)
		t.Fatalf("after %d steps the state is not that of a fresh open:\n%s\nthe smallest case found:\n%s\n%s",
			len(steps), diff, edittest.Show(small, kept), fails(small, kept, enc))
	}
}

// regressions are sequences that once failed, as TestEditsEqualFreshOpen printed them.
var regressions = []struct {
	base  string
	steps []edittest.Step
}{}

func TestEditRegressions(t *testing.T) {
	for i, c := range regressions {
		for _, enc := range []source.Encoding{source.UTF16, source.UTF8} {
			t.Run(fmt.Sprintf("%d %s", i, unit(enc)), func(t *testing.T) {
				if diff := fails(c.base, c.steps, enc); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

// fails plays steps and describes how the first state that is wrong differs.
func fails(base string, steps []edittest.Step, enc source.Encoding) string {
	p := newPlayer(base, enc)
	defer p.close()
	for i, s := range steps {
		s.Look = s.Look || i == len(steps)-1
		if diff := p.step(s); diff != "" {
			return diff
		}
	}
	return ""
}

// player has one document open in a workspace and the same text in a string.
type player struct {
	w       *workspace.Workspace
	end     func()
	enc     source.Encoding
	text    string
	version int32
	broken  chan string
}

var docAddress = workspace.Address{Key: "file:///t.dmir", URI: "file:///t.dmir", Path: "t.dmir"}

func newPlayer(base string, enc source.Encoding) *player {
	ctx, cancel := context.WithCancel(context.Background())
	p := &player{enc: enc, text: base, broken: make(chan string, 1)}
	p.w = workspace.New(ctx, workspace.Options{
		Pause:   time.Hour,
		Publish: func(*workspace.Snapshot, []diag.Diagnostic) {},
		Failed: func(_ string, problem any) {
			select {
			case p.broken <- fmt.Sprint("the analysis broke down: ", problem):
			default:
			}
		},
	})
	p.w.SetEncoding(enc)
	p.end = func() { cancel(); p.w.Wait() }
	p.w.Open(docAddress, 0, base)
	_ = state(p.w.Snapshot(docAddress.Key), base)
	return p
}

func (p *player) close() { p.end() }

// step sends one step the way an editor does and, where the state is read,
// compares the state with that of a fresh open. It returns the difference.
func (p *player) step(s edittest.Step) (diff string) {
	p.version++
	text, edits := s.Apply(p.text)
	var sent []workspace.Edit
	if s.Whole {
		sent = []workspace.Edit{{Whole: true, Text: text}}
	} else {
		at := p.text
		for _, e := range edits {
			sent = append(sent, workspace.Edit{Start: p.pos(at, e.Start), End: p.pos(at, e.End), Text: e.Text})
			at = e.Apply(at)
		}
	}
	p.text = text
	if err := p.w.Change(docAddress.Key, p.version, sent); err != nil {
		return err.Error()
	}
	if !s.Look {
		return ""
	}
	select {
	case broken := <-p.broken:
		return broken
	default:
	}
	got := protect(func() string { return state(p.w.Snapshot(docAddress.Key), text) })
	want := protect(func() string { return fresh(text, p.version, p.enc) })
	return firstDifference(want, got)
}

func (p *player) pos(text string, off int) source.Pos {
	line, col := edittest.Position(text, off, p.enc == source.UTF16)
	return source.Pos{Line: line, Col: col}
}

// protect turns a panic into a state of its own.
func protect(f func() string) (s string) {
	defer func() {
		if r := recover(); r != nil {
			s = fmt.Sprint("panic: ", r)
		}
	}()
	return f()
}

func fresh(text string, version int32, enc source.Encoding) string {
	ctx, cancel := context.WithCancel(context.Background())
	w := workspace.New(ctx, workspace.Options{
		Pause:   time.Hour,
		Publish: func(*workspace.Snapshot, []diag.Diagnostic) {},
		Failed:  func(string, any) {}, // state meets it as well
	})
	defer func() { cancel(); w.Wait() }()
	w.SetEncoding(enc)
	w.Open(docAddress, version, text)
	return state(w.Snapshot(docAddress.Key), text)
}

// state is everything that an editor can learn of a document, one fact a line.
func state(s *workspace.Snapshot, text string) string {
	var b strings.Builder
	add := func(what string, v any) { fmt.Fprintf(&b, "%s: %s\n", what, line(v)) }
	v, release, ok := s.Hold()
	if !ok {
		return "there is a newer version"
	}
	defer release()
	p := v.Program()
	add("version", s.Version)
	add("text", p.Src.Text())
	for _, d := range v.Cheap() {
		add("diagnostic", d)
	}
	for _, d := range v.Findings(context.Background()) {
		add("finding", d)
	}
	whole := source.Span{End: len(text)}
	for _, h := range feature.Hints(p, nil, nil, whole) {
		add("hint", h)
	}
	for _, l := range feature.Lenses(p, feature.LensOptions{}) {
		add("lens", l)
	}
	for k := range feature.Tokens(p, whole) {
		add("token", k)
	}
	names := v.Names()
	all := slices.Clone(names.Names())
	slices.SortFunc(all, func(a, b *scope.Name) int {
		return cmp.Or(slices.CompareFunc(places(a), places(b), bySpan), cmp.Compare(a.Text, b.Text))
	})
	for _, n := range all {
		add("name", []any{n.Kind, n.Text, n.Defs(), n.Uses()})
	}
	for _, d := range names.Diags {
		add("name diagnostic", d)
	}
	add("outline", scope.Outline(p.Tree))
	add("folds", feature.Folds(p.Tree))
	add("format", feature.Format(p.Tree))
	report := cost.JSON(p.Target, p.Funcs)
	for _, f := range report.Functions {
		add("cost", f)
	}
	for _, f := range p.Funcs {
		add("totals", []string{f.Func.Name, f.FLOP.String(), f.Moved().String(), f.Minimum().String(), f.Waste().String(), f.PeakFormula()})
	}

	// What is asked of a place or a range; the places are the same for a text.
	hash := fnv.New64()
	_, _ = hash.Write([]byte(text))
	rnd := rand.New(rand.NewPCG(hash.Sum64(), 0))
	for range 8 {
		off := rnd.IntN(len(text) + 1)
		at := func(what string) string { return fmt.Sprint(what, " at ", off) }
		span := source.Span{Start: off, End: min(len(text), off+rnd.IntN(400))}
		add(at("hints"), feature.Hints(p, nil, nil, span))
		add(at("tokens"), feature.Tokens(p, span))
		add(at("hover"), feature.HoverAt(p, names, off, false))
		add(at("completion"), feature.Complete(p, off))
		add(at("signature"), feature.SignatureAt(p, off))
		add(at("definition"), feature.Definition(names, off))
		add(at("references"), feature.References(names, off, true))
		add(at("highlights"), feature.Highlights(names, off))
		add(at("type definition"), feature.TypeDefinition(p, off))
		add(at("selections"), feature.Selections(p, off))
		add(at("range format"), feature.FormatRange(p.Tree, span))
	}
	return b.String()
}

func places(n *scope.Name) []source.Span { return slices.Concat(n.Defs(), n.Uses()) }

func bySpan(a, b source.Span) int {
	return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End))
}

// line is a value in one line of JSON.
func line(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func firstDifference(want, got string) string {
	if want == got {
		return ""
	}
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	i := 0
	for i < len(w) && i < len(g) && w[i] == g[i] {
		i++
	}
	show := func(lines []string) string {
		if i < len(lines) {
			return fmt.Sprintf("%.2000s", lines[i])
		}
		return "(nothing)"
	}
	return fmt.Sprintf("want %s\n got %s\n(%d lines wanted, %d there)", show(w), show(g), len(w), len(g))
}

// programs are the texts to edit: the examples; the registry's own examples,
// several to a file; chains of ops; and what belongs together in other ways.
func programs(t *testing.T) []string {
	files, err := filepath.Glob("../../examples/*.dmir")
	if err != nil || len(files) == 0 {
		t.Fatal("no examples: ", err)
	}
	var all []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) < 12_000 {
			all = append(all, string(text))
		}
	}
	var b strings.Builder
	for i, d := range op.All() {
		b.WriteString(strings.ReplaceAll(d.Example, "@example", fmt.Sprintf("@%s_%d", strings.ReplaceAll(d.Name, ".", "_"), i)) + "\n")
		if i%24 == 23 {
			all = append(all, b.String())
			b.Reset()
		}
	}
	return append(all, b.String(), chain(40), calls, mixed, sharded, "", "\n", "%", strings.ReplaceAll(calls, "\n", "\r\n"))
}

// chain is one function of many ops, some of them in kernels.
func chain(n int) string {
	var b strings.Builder
	const t = "tensor<64x64xf32>"
	fmt.Fprintf(&b, "func.func @chain(%%x: %s, %%y: %s) -> %s {\n", t, t, t)
	last := "%x"
	for i := range n {
		switch i % 5 {
		case 3:
			fmt.Fprintf(&b, "  %%v%d = dm.kernel -> %s {\n    %%a = dm.mul %s, %%y : %s\n    %%b = dm.exp %%a : %s\n    dm.yield %%b : %s\n  }\n", i, t, last, t, t, t)
		case 4:
			fmt.Fprintf(&b, "  %%v%d = \"dm.add\"(%s, %%y) : (%s, %s) -> %s loc(\"m.py\":%d:1)\n", i, last, t, t, t, i)
		default:
			fmt.Fprintf(&b, "  %%v%d = dm.%s %s : %s // %d\n", i, []string{"relu", "exp", "tanh"}[i%3], last, t, i)
		}
		last = fmt.Sprintf("%%v%d", i)
	}
	fmt.Fprintf(&b, "  return %s : %s\n}\n", last, t)
	return b.String()
}

const calls = `!t = tensor<4x?xf32, #dm.at<dims = [-1, n]>>
#where = loc("model.py":3:4)
func.func private @declared(!t) -> !t
func.func @leaf(%x: !t) -> !t attributes {dm.max_moved = "1 kB"} {
  %0 = dm.relu %x : !t
  %1 = dm.neg %0 : !t // dmir: ignore[DM201] wanted
  return %1 : !t
}
func.func @middle(%x: !t) -> !t {
  %0 = func.call @leaf(%x) : (!t) -> !t
  %1 = func.call @leaf(%0) : (!t) -> !t loc(#where)
  return %1 : !t
}
// -----
!t = tensor<8xf16>
func.func @leaf(%x: !t) -> !t {
  %0 = dm.exp %x : !t
  return %0 : !t
}
func.func @top(%x: !t) -> !t {
  %0 = call @leaf(%x) : (!t) -> !t
  %unused = dm.abs %0 : !t
  return %0 : !t
}
`

// sharded has meshes, functions of whole tensors and one that a device runs.
const sharded = `dm.mesh @pod {data = 4, model = 2}
dm.mesh @m {x = 2, y = 4}
!s = tensor<8x4xf32, #dm.at<split = @pod[{data}, {model, ?}]>>
func.func @global(%x: !s, %w: tensor<4x4xf32, #dm.at<split = @pod[{model}, {}]>>) -> !s {
  %0 = dm.matmul %x, %w : (!s, tensor<4x4xf32, #dm.at<split = @pod[{model}, {}]>>) -> tensor<8x4xf32, #dm.at<split = @pod[{data}, {}], partial = {model}>>
  %1 = dm.reshard %0 : (tensor<8x4xf32, #dm.at<split = @pod[{data}, {}], partial = {model}>>) -> !s
  return %1 : !s
}
func.func @device(%x: tensor<2x4xf32> {dm.global = tensor<8x4xf32, #dm.at<split = @m[{y}, {}]>>}) -> tensor<8x4xf32> attributes {dm.mesh = @m} {
  %0 = dm.all_reduce add %x, axes = ["x"] : tensor<2x4xf32>
  %1 = dm.all_gather %0, dim = 0, axes = ["y"] : (tensor<2x4xf32>) -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}
`

const mixed = `module @outer attributes {test.note = "😀"} {
  module @inner {
    func.func @f(%é: tensor<4xf32>) -> tensor<4xf32> {
      cf.br ^bb1(%é : tensor<4xf32>)
    ^bb1(%q: tensor<4xf32>):
      %r:2 = "test.two"(%q) ({
      ^bb0(%z: f32):
        "test.end"(%z) : (f32) -> ()
      }) {text = "a \" b", n = 3 : i64} : (tensor<4xf32>) -> (tensor<4xf32>, i32)
      %s = dm.add %r#0, %q : tensor<4xf32>
      return %s : tensor<4xf32>
    }
  }
  func.func @g(%c: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
    %y = dm.if %c : (tensor<i1>) -> tensor<4xf32> {
      %a = dm.exp %x : tensor<4xf32>
      dm.yield %a : tensor<4xf32>
    } else {
      dm.yield %x : tensor<4xf32>
    }
    return %y : tensor<4xf32>
  }
}
`
