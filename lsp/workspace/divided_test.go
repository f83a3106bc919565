package workspace_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"dmir/lsp/feature"
	"dmir/lsp/workspace"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// manyLayers is a function of n ops whose values are divided.
func manyLayers(n int) string {
	const x = "tensor<64x64xf32, #dm.at<split = @pod[{data}, {}]>>"
	var b strings.Builder
	fmt.Fprintf(&b, "dm.mesh @pod {data = 4}\nfunc.func @f(%%v0: %s, %%w: tensor<64x64xf32>) -> tensor<64xf32> {\n", x)
	fmt.Fprintf(&b, "  %%v1 = dm.relu %%v0 : (%s) -> tensor<64x64xf32>\n", x)
	for i := 2; i < n; i++ {
		fmt.Fprintf(&b, "  %%v%d = dm.matmul %%v%d, %%w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>\n", i, i-1)
	}
	fmt.Fprintf(&b, "  %%s = dm.reduce add %%v%d, dims = [0] : (tensor<64x64xf32>) -> tensor<64xf32>\n  return %%s : tensor<64xf32>\n}\n", n-1)
	return b.String()
}

// The shardings of a large function are there at once, its cost after the pause, also where lint is
// off; after an edit again.
func TestDividedCostFollows(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	costed := make(chan bool, 8)
	w := workspace.New(ctx, workspace.Options{
		Publish: func(*workspace.Snapshot, []diag.Diagnostic) {},
		Costed:  func() { costed <- true },
		Failed:  func(_ string, problem any) { t.Errorf("%v", problem) },
	})
	text := manyLayers(300)
	hint := func(n int) (h feature.Hint) {
		for {
			if w.Snapshot("f").With(func(v *workspace.View) {
				for _, x := range feature.Hints(v.Program(), nil, nil, source.Span{End: v.Src.Len()}) {
					if v.Src.Pos(x.Offset).Line == n {
						h = x
					}
				}
			}) {
				return h
			}
		}
	}
	follows := func(what string) {
		t.Helper()
		select {
		case <-costed:
		case <-time.After(time.Minute):
			t.Fatalf("%s: the cost does not follow", what)
		}
	}
	w.Open(workspace.Address{Key: "f", URI: "f", Path: "f.dmir"}, 1, text)
	follows("opened")
	last := strings.Count(text[:strings.Index(text, "return")], "\n")
	if h := hint(10); h.Sharding != "{data}·{}" || h.Label.String() == "" {
		t.Errorf("a line has %q", h.Text())
	}
	if h := hint(last); !strings.Contains(h.Text(), "↑") {
		t.Errorf("the return sends nothing: %q", h.Text())
	}
	at := source.Pos{Line: 10, Col: 2}
	if err := w.Change("f", 2, []workspace.Edit{{Start: at, End: at, Text: " "}}); err != nil {
		t.Fatal(err)
	}
	if h := hint(12); h.Sharding != "{data}·{}" {
		t.Errorf("after an edit a line has %q", h.Text())
	}
	follows("edited")
	if h := hint(12); h.Label.String() == "" {
		t.Error("after an edit a line has no cost")
	}
}
