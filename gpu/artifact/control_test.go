package artifact_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"dmir/gpu/artifact"
	"dmir/gpu/artifact/artifacttest"
)

func TestCheckDecisions(t *testing.T) {
	if err := artifacttest.Loop().Check(); err != nil {
		t.Fatalf("the program of the tests: %v", err)
	}
	// Steps: 0 y = x, 1 zero n, 2 while {3 below} {4 twice, 5 y = w, 6 next},
	// 7 if {8 negated, 9 y = v} {}.
	// Buffers: 0 x, 1 k, 2 flag, 3 n, 4 go, 5 y, 6 w, 7 v.
	type program = artifact.Program
	for _, c := range []struct {
		name  string
		spoil func(p *program)
		want  string
	}{
		{"no such step", func(p *program) { p.Steps[4].Launch.Kernel = -5 }, "launches kernel -5"},
		{"a decision by nothing", func(p *program) { p.Steps[2].Decision.On = 8 }, "buffer 8 of 8"},
		{"a decision by a number", func(p *program) { p.Steps[2].Decision.On = 3 }, "not one i1"},
		{"a decision on a stream", func(p *program) { p.Steps[2].Stream = 1 }, "no stream and no waits"},
		{"a trip count", func(p *program) { p.Steps[2].Decision.Trips = -1 }, "a trip count of -1"},
		{"negative parts", func(p *program) { p.Steps[2].Decision.Parts = [2]int{-1, 3} }, "parts of -1 and 3 steps"},
		{"parts beyond the end", func(p *program) { p.Steps[7].Decision.Parts = [2]int{2, 1} }, "parts of 2 and 1 steps, and 2 are left"},
		{"parts that overflow", func(p *program) { p.Steps[7].Decision.Parts = [2]int{1, 1<<63 - 1} }, "and 2 are left"},
		{"parts of a launch", func(p *program) { p.Steps[4].Decision.Parts = [2]int{1, 0} }, "though it decides nothing"},
		{"a copy of nothing", func(p *program) { p.Steps[0].Move.From = 9 }, "buffer 9 of 8"},
		{"a copy to itself", func(p *program) { p.Steps[0].Move.From = p.Steps[0].Move.To }, "a copy has two buffers"},
		{"a copy of other size", func(p *program) { p.Steps[0].Move.From = 1 }, "copies the 4 bytes of k to the 4000 of y"},
		{"a wait across a decision", func(p *program) { p.Steps[4].Waits, p.Steps[4].Stream = []int{0}, 1 }, "but a branch or loop lies between them"},
		{"what a loop needs again is given away", func(p *program) { p.Buffers[1].Last = 3 }, "comes back to it until step 6"},
		{"what a part makes is used behind it", func(p *program) { p.Buffers[6].Last = 7 }, "is made in a part of step 2"},
		{"a predicate that nothing writes", func(p *program) {
			p.Steps[3].Launch.Args[2].Buffer, p.Steps[3].Launch.Args[0].Buffer = 4, 3
			p.Steps[2].Decision.Parts = [2]int{0, 4}
		}, "buffer go"},
		{"a result of one side alone", func(p *program) { p.Outputs = []int{7}; p.Buffers[7].Last = 10 }, "is made in a part"},
		{"a value of one round alone", func(p *program) {
			p.Steps[0].Kind, p.Steps[0].Move = artifact.StepFill, artifact.Move{To: 3}
			p.Buffers[3].First = 0
		}, "step 4 (twice) reads it before anything is written"},
		{"what decides a loop is given away in it", func(p *program) {
			p.Steps, p.Buffers = p.Steps[:7], p.Buffers[:7]
			p.Steps[2].Decision.Parts, p.Steps[2].Decision.On = [2]int{0, 4}, 2
			p.Buffers[2].Last, p.Buffers[5].Last = 2, 7
		}, "buffer flag: the loop of step 2 (while) comes back to it until step 6, and it lives until step 2"},
		{"two streams in a part", func(p *program) { p.Steps[5].Stream = 1 }, "step 5 (y = w) does not wait for step 4 (twice)"},
	} {
		p := artifacttest.Loop()
		c.spoil(p)
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	p := artifacttest.Loop()
	p.Steps[5].Stream, p.Steps[5].Waits = 1, []int{4} // all have ended where a part does
	if err := p.Check(); err != nil {
		t.Errorf("a part of two streams: %v", err)
	}
	deep := &artifact.Program{Name: "deep", Workspace: 256, Inputs: []int{0}, Buffers: []artifact.Buffer{{Name: "p", Elem: "i1", Kind: artifact.Input, Bytes: 1, First: -1, Last: 100}}}
	for i := range 100 {
		deep.Steps = append(deep.Steps, artifact.Step{Name: strings.Repeat("i", i+1), Kind: artifact.StepBranch, Decision: artifact.Decision{Parts: [2]int{99 - i, 0}}})
	}
	if err := deep.Check(); err == nil || !strings.Contains(err.Error(), "deeper than 64") {
		t.Errorf("a hundred branches in one another: %v", err)
	}
}

// A repetition has a trip count, one part and no predicate; what its first iteration
// writes, the later steps read.
func TestRepeat(t *testing.T) {
	p := artifacttest.Repeat(3)
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	if got, want := p.Times(), []int64{1, 1, 1, 3, 3, 3, 3, 1, 1, 1}; !slices.Equal(got, want) {
		t.Errorf("times %v, want %v", got, want)
	}
	var went []int
	runs, err := p.Walk(func(from, to int) error {
		for i := from; i < to; i++ {
			went = append(went, i)
		}
		return nil
	}, func(step int) (bool, error) {
		went = append(went, step)
		return false, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []int64{1, 1, 3, 3, 3, 3, 3, 1, 0, 0}; !slices.Equal(runs, want) {
		t.Errorf("runs %v, want %v", runs, want)
	}
	if want := []int{0, 1, 3, 4, 5, 6, 3, 4, 5, 6, 3, 4, 5, 6, 7}; !slices.Equal(went, want) {
		t.Errorf("went %v, want %v", went, want)
	}
	for want, spoil := range map[string]func(d *artifact.Decision){
		"has a trip count, one part, and no predicate": func(d *artifact.Decision) { d.On = 4 },
		"has a trip count, one part, and":              func(d *artifact.Decision) { d.TripsKnown = false },
		"has a trip count, one part":                   func(d *artifact.Decision) { d.Parts = [2]int{1, 3} },
		"a trip count of -1":                           func(d *artifact.Decision) { d.Trips = -1 },
		"parts of 0 and 9 steps":                       func(d *artifact.Decision) { d.Parts[1] = 9 },
	} {
		p := artifacttest.Repeat(3)
		spoil(&p.Steps[2].Decision)
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	// The copy into y reads w, which only the steps of the repetition write.
	first := func(trips int64) *artifact.Program {
		p := artifacttest.Repeat(trips)
		p.Steps[0].Kind, p.Steps[0].Move = artifact.StepFill, artifact.Move{To: 3}
		p.Steps[1].Name, p.Steps[1].Kind, p.Steps[1].Move = "w", artifact.StepFill, artifact.Move{To: 6}
		p.Steps[4].Launch.Args[0].Buffer, p.Steps[4].Launch.Args[1].Buffer = 0, 6
		p.Buffers[0].Last, p.Buffers[3].First, p.Buffers[6].First, p.Buffers[5].First = 6, 0, 1, 5
		p.Buffers[6].Last = 6
		p.Buffers[5].First = 2
		return p
	}
	if err := first(0).Check(); err == nil || !strings.Contains(err.Error(), "reads it before anything is written") {
		t.Errorf("no iteration writes y: %v", err)
	}
}

// A walk visits the executed steps in order, and an error ends it.
func TestWalk(t *testing.T) {
	p := artifacttest.Loop()
	if got, want := p.Stretches(), [][2]int{{0, 2}, {3, 4}, {4, 7}, {8, 10}}; !slices.Equal(got, want) {
		t.Errorf("stretches %v, want %v", got, want)
	}
	if got, want := p.Times(), []int64{1, 1, 1, 4, 3, 3, 3, 1, 1, 1}; !slices.Equal(got, want) {
		t.Errorf("times %v, want %v", got, want)
	}
	if got := p.Predicted(); got != 3000+4*1000+3*4000+1000+3000 {
		t.Errorf("%g ns predicted", got)
	}
	var went []int
	rounds := 2
	_, err := p.Walk(func(from, to int) error {
		for i := from; i < to; i++ {
			went = append(went, i)
		}
		return nil
	}, func(step int) (bool, error) {
		went = append(went, step)
		rounds--
		return step == 2 && rounds >= 0, nil
	})
	if want := []int{0, 1, 3, 2, 4, 5, 6, 3, 2, 4, 5, 6, 3, 2, 7}; err != nil || !slices.Equal(went, want) {
		t.Errorf("went %v, want %v; %v", went, want, err)
	}
	wrong := errors.New("wrong")
	if _, err := p.Walk(func(from, _ int) error {
		if from == 4 {
			return wrong
		}
		return nil
	}, func(int) (bool, error) { return true, nil }); err != wrong {
		t.Errorf("the error of a step: %v", err)
	}
	if _, err := p.Walk(func(int, int) error { return nil }, func(int) (bool, error) { return true, wrong }); err != wrong {
		t.Errorf("the error of a decision: %v", err)
	}
}
