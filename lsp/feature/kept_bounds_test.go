package feature

import (
	"fmt"
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/syntax/source"
)

// What is kept is bounded, and what is near the edits stays.
func TestKeptBounds(t *testing.T) {
	chain := func(name string, ops int) *program.Program {
		var b strings.Builder
		fmt.Fprintf(&b, "func.func @%s(%%e0: tensor<64xf32>) -> tensor<64xf32> {\n", name)
		for i := range ops {
			fmt.Fprintf(&b, "  %%e%d = dm.exp %%e%d : tensor<64xf32>\n", i+1, i)
		}
		fmt.Fprintf(&b, "  return %%e%d : tensor<64xf32>\n}\n", ops)
		return program.Load(source.New("f.dmir", b.String()), program.Options{})
	}
	var k Kept
	p := chain("f", 3*maxKept)
	for line := p.Src.Lines() - 4; line > 0; line-- { // from the end to the beginning
		k.Record(p, p.Src.LineStart(line)+3, p.Src.LineStart(line)+4)
	}
	if len(k.lines) != maxKept || k.lines[0].at != p.Src.LineStart(1) {
		t.Errorf("%d lines, the first at %d", len(k.lines), k.lines[0].at)
	}
	for line := 1; line < p.Src.Lines()-4; line++ {
		k.Record(p, p.Src.LineStart(line)+3, p.Src.LineStart(line)+4)
		if len(k.lines) > maxKept || !strings.Contains(fmt.Sprint(k.lines), fmt.Sprintf("{%d ", p.Src.LineStart(line))) {
			t.Errorf("line %d is not kept", line)
			break
		}
	}
	for i := range 1000 { // the name is typed
		p := chain(fmt.Sprintf("f%d", i), 1)
		k.Record(p, 11, 12)
	}
	if len(k.sums) > 4*maxKept || k.sums["f999"].title == "" {
		t.Errorf("%d functions are kept", len(k.sums))
	}
	// Readers of one version share what is kept.
	for i := range k.lines {
		k.lines[i].hint.rows = append(make([]row, 0, 9), k.lines[i].hint.rows...)
	}
	k.lines = k.lines[:1]
	broken := program.Load(source.New("f.dmir", "func.func @f(%a: tensor<64xf32>) {\n  %b = dm.ex\n}\n"), program.Options{})
	k.lines[0].at = broken.Src.LineStart(1)
	Hints(broken, nil, &k, source.Span{End: broken.Src.Len()})
	rows := k.lines[0].hint.rows
	if spare := rows[:cap(rows)][len(rows):]; len(spare) > 0 && spare[0] != (row{}) {
		t.Errorf("a hint has written %v behind what is kept", spare[0])
	}
}
