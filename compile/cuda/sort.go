package cuda

import (
	"fmt"
	"math"
	"slices"

	"dmir/analysis/machine"
	"dmir/compile/assemble"
	"dmir/compile/kernel"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
)

// sorting is the plan of a dm.sort or dm.top_k, whose form the machine chooses (machine.SortPlan).
type sorting struct {
	f    *kernel.Form
	l    line
	most int64
	by   kernel.Order
	elem types.Elem
	plan machine.SortPlan
	// keys and places are the elements and their places between launches, counts and totals those of digits.
	keys, places   [2]*assemble.Temp
	counts, totals *assemble.Temp
}

// ordered is the plan of f, which stores the first most elements of each line in order.
func (t Target) ordered(f *kernel.Form, most int64, by kernel.Order) (scheme, error) {
	o := f.Main
	l := lineOfDim(o)
	if l.N > math.MaxInt32-1<<20 {
		return nil, fmt.Errorf("%s of lines of %d elements: a place has 32 bits", o.Name, l.N)
	}
	elem := o.Operands[0].Elem()
	s := &sorting{f: f, l: l, most: most, by: by, elem: elem, plan: t.Machine.SortPlan(machine.Sort{Lines: l.Lines, N: l.N, Most: most, Elem: elem})}
	blocks := s.blocks()
	if blocks > math.MaxInt32 {
		return nil, fmt.Errorf("%d blocks exceed the limit of a launch", blocks)
	}
	temp := func(e types.Elem, n int64) *assemble.Temp { return &assemble.Temp{Elem: e, N: n, Own: true} }
	between, n := int64(0), l.Lines*l.N
	switch p := s.plan; p.Form {
	case machine.SortDigits:
		between = min(2, p.Passes-1)
		s.counts = temp(types.I32, blocks*digitValues)
		if p.Scans {
			s.totals = temp(types.I32, l.Lines*digitValues)
		}
	case machine.SortSelect:
		if p.Chunks > 1 {
			between, n = 1, blocks*most
		}
	}
	for i := range between {
		s.keys[i] = temp(elem, n)
		if s.placed() {
			s.places[i] = temp(types.I32, n)
		}
	}
	return s, nil
}

// digitValues are those of a digit of a key.
const digitValues = 256

// blocks are those of a launch over the lines.
func (s *sorting) blocks() int64 {
	if s.plan.Form == machine.SortTeams {
		return ceil(s.l.Lines, s.linesOfBlock())
	}
	return s.l.Lines * s.plan.Chunks
}

// linesOfBlock is how many lines a block of blockThreads threads sorts by teams.
func (s *sorting) linesOfBlock() int64 { return blockThreads / s.plan.Team }

// placed reports whether places of elements are stored.
func (s *sorting) placed() bool {
	o := s.f.Main
	return len(o.Results) > 1 && slices.Contains(s.f.Outputs, o.Results[1])
}

func (s *sorting) temps() (all []*assemble.Temp) {
	for _, t := range []*assemble.Temp{s.keys[0], s.places[0], s.keys[1], s.places[1], s.counts, s.totals} {
		if t != nil {
			all = append(all, t)
		}
	}
	return all
}

func (s *sorting) launches() (all []*launch, err error) {
	switch p := s.plan; p.Form {
	case machine.SortTeams:
		all = append(all, s.teams())
	case machine.SortBlock:
		all = append(all, s.block())
	case machine.SortSelect:
		for step := range p.Launches() {
			all = append(all, s.selects(step))
		}
	case machine.SortDigits:
		for pass := range p.Passes {
			all = append(all, s.counting(pass))
			if p.Scans {
				all = append(all, s.scan(pass))
			}
			all = append(all, s.scatter(pass))
		}
	}
	return all, nil
}

// The variables of these kernels.
const (
	order    local = "_Order" // the prelude's struct of lines and their order
	lineTile ident = "tile"
	byRank   ident = "by_rank"
	found    ident = "found"
	sums     ident = "sums"
)

// launch has threads for blocks of lines of n elements; write writes its body.
func (s *sorting) launch(suffix string, ns *names, threads, blocks, shared, n int64, write func(u *unit)) *launch {
	l := &launch{
		Launch: assemble.Launch{
			Suffix: suffix, Class: "sort", Block: artifact.Block{Threads: int(threads), Shared: int(shared)}, Grid: [3]int{int(blocks), 1, 1}, Params: ns.params,
		},
		named: ns.of, include: "scatter.cuh sort.cuh",
	}
	if s.plan.Form >= machine.SortDigits {
		l.include += " sort_long.cuh"
	}
	l.write = func(t *text) error {
		if n > 0 {
			u := t.before
			u.enter(closed, "struct %s", order)
			u.line("static constexpr dm::i32 lines = %d, n = %d, most = %d", s.l.Lines, n, s.most)
			u.line("static constexpr dm::i64 inner = %d", s.l.Inner)
			u.line("static constexpr bool falling = %t, nan_first = %t", s.by.Falling, s.by.NaNFirst)
			u.leave()
		}
		if shared > 0 {
			t.body.line("DM_ARENA(%s)", def(arena))
		}
		write(t.body)
		return nil
	}
	return l
}

// teams sorts lines by teams of lanes.
func (s *sorting) teams() *launch {
	ns, x := s.source(0)
	y, places := s.sink(ns, 0, 0)
	lines := s.linesOfBlock()
	return s.launch("", ns, blockThreads, s.blocks(), 0, s.l.N, func(u *unit) {
		u.line("DM_SHARED(%s, %s, %d)", storage(s.elem), def(lineTile), lines*s.l.N)
		u.line("DM_SHARED(dm::u8, %s, %d)", def(byRank), lines*s.most)
		u.line("dm::sort_short_lines<%s, %d, %d, %d>(%s, %s, %s, %s, %s)", order, s.plan.Team, s.plan.Items, lines, x, y, places, lineTile, byRank)
	})
}

// shared is the shared memory in which a block sorts its elements, whose places have so many bytes, in bytes.
func (s *sorting) shared(place int64) int64 {
	if !s.placed() {
		place = 0
	}
	p := s.plan
	return p.Threads*p.Items*(s.elem.Bytes()+place) + (p.Threads/32+1)*digitValues*4 + 32*4 + 32*8
}

// block sorts each line in a block.
func (s *sorting) block() *launch {
	ns, x := s.source(0)
	y, places := s.sink(ns, 0, 0)
	return s.launch("", ns, s.plan.Threads, s.l.Lines, s.shared(2), s.l.N, func(u *unit) {
		u.line("dm::sort_line<%s, %d, %d>(%s, %s, %s, %s)", order, s.plan.Threads, s.plan.Items, x, y, places, arena)
	})
}

// source are the parameters that step i of several reads: the operand, or what the step before has written.
func (s *sorting) source(i int64) (ns *names, x code) {
	ns = newNames()
	for _, taken := range []ident{arena, lineTile, byRank, found, sums} {
		ns.taken[string(taken)] = true
	}
	if i == 0 {
		return ns, cpp("%s", ns.add(s.f.Main.Operands[0], artifact.In))
	}
	return ns, cpp("%s", ns.addTemp("keys", s.keys[(i-1)%2], artifact.In))
}

// sourcePlaces are the places of what step i reads, nothing where they are those in the operand or are not stored.
func (s *sorting) sourcePlaces(ns *names, i int64) code {
	if i == 0 || !s.placed() {
		return cpp(nothing)
	}
	return cpp("%s", ns.addTemp("places", s.places[(i-1)%2], artifact.In))
}

// sink are the parameters that step i writes: the results where it is the last one. They are nothing where one is not stored.
func (s *sorting) sink(ns *names, i, last int64) (y, places code) {
	if i == last {
		for _, v := range s.f.Outputs {
			ns.add(v, artifact.Out)
		}
		return ns.result(s.f.Main, 0), ns.result(s.f.Main, 1)
	}
	y, places = cpp("%s", ns.addTemp("to", s.keys[i%2], artifact.Out)), cpp(nothing)
	if s.placed() {
		places = cpp("%s", ns.addTemp("to_places", s.places[i%2], artifact.Out))
	}
	return y, places
}

// step is the suffix of the launch of a step.
func step(name string, i int64) string { return fmt.Sprintf("_%s%d", name, i+1) }

// selects is the launch that selects from parts of lines, or, behind it, from what it has selected.
func (s *sorting) selects(i int64) *launch {
	last := s.plan.Launches() - 1
	ns, x := s.source(i)
	from := s.sourcePlaces(ns, i)
	y, places := s.sink(ns, i, last)
	parts, n, suffix := s.plan.Chunks, s.l.N, ""
	if i < last {
		suffix = "_parts"
	} else if i > 0 {
		parts, n = 1, s.plan.Chunks*s.most
	}
	return s.launch(suffix, ns, s.plan.Threads, s.l.Lines*parts, s.shared(4)+2*8*4, n, func(u *unit) {
		u.line("dm::select_first<%s, %d, %t, %t>(%s, %s, %s, %s, %s)", order, parts, i == 0, i == last, x, from, y, places, arena)
	})
}

// counting counts the digits of each chunk.
func (s *sorting) counting(pass int64) *launch {
	p := s.plan
	ns, x := s.source(pass)
	counts := ns.addTemp("counts", s.counts, artifact.Out)
	return s.launch(step("count", pass), ns, p.Threads, s.blocks(), 0, s.l.N, func(u *unit) {
		u.line("DM_SHARED(dm::i32, %s, %d)", def(found), digitValues)
		u.line("dm::count_digits<%s, %d, %d, %d, %d>(%s, %s, %s)", order, pass, p.Chunks, p.Threads, p.Items, x, counts, found)
	})
}

// scanThreads are those of a block of scan.
const scanThreads = 512

// scan adds up the counts of the chunks.
func (s *sorting) scan(pass int64) *launch {
	ns, p := newNames(), s.plan
	counts, totals := ns.addTemp("counts", s.counts, artifact.InOut), ns.addTemp("totals", s.totals, artifact.Out)
	return s.launch(step("scan", pass), ns, scanThreads, s.l.Lines*digitValues/32, 0, 0, func(u *unit) {
		u.line("DM_SHARED(dm::i32, %s, %d)", def(sums), scanThreads)
		u.line("dm::scan_counts<%d, %d>(%s, %s, %s)", p.Chunks, scanThreads, counts, totals, sums)
	})
}

// scatter moves the elements to the places of their digits.
func (s *sorting) scatter(pass int64) *launch {
	p := s.plan
	suffix := step("scatter", pass)
	ns, x := s.source(pass)
	from := s.sourcePlaces(ns, pass)
	counts, totals := ns.addTemp("counts", s.counts, artifact.In), cpp(nothing)
	if p.Scans {
		totals = cpp("%s", ns.addTemp("totals", s.totals, artifact.In))
	}
	if pass == p.Passes-1 {
		suffix = "" // which has the results
	}
	y, places := s.sink(ns, pass, p.Passes-1)
	return s.launch(suffix, ns, p.Threads, s.blocks(), s.shared(4)+digitValues*4, s.l.N, func(u *unit) {
		u.line("dm::scatter_digits<%s, %d, %d, %d, %d>(%s, %s, %s, %s, %s, %s, %s)", order, pass, p.Chunks, p.Threads, p.Items, x, from, counts, totals, y, places, arena)
	})
}
