package ptx

import (
	"fmt"
	"slices"

	"dmir/gpu/artifact"
)

// budget is how many instructions of warps of one block are followed, and share of one of a large cluster at least.
const budget, share = 4 << 20, 1 << 20

// Check checks the kernels of a module. launches are those of each kernel, by its
// name; kernels without one are parsed alone. The error is an *Error.
func Check(m *Module, launches map[string][]Launch) (*Report, error) {
	return check(m, launches, budget)
}

func check(m *Module, launches map[string][]Launch, budget int) (*Report, error) {
	r := newReport()
	for _, f := range m.Funcs() {
		if !f.Entry() || f.Extern {
			continue
		}
		c, err := decode(f)
		if err != nil {
			return nil, err
		}
		r.Kernels++
		if len(launches[f.Name]) == 0 {
			r.Undecided[reasonLaunch]++
		}
		early := func(l Launch) bool { return l.Dependent }
		c.dependency(m.dependents() && slices.ContainsFunc(launches[f.Name], early), r)
		c.flags(r)
		for _, l := range launches[f.Name] {
			for _, index := range corners(l.Grid, max(1, l.Cluster)) {
				newCluster(c, l, index, r, budget).run()
			}
		}
	}
	r.finish()
	return r, nil
}

// dependents reports whether the architectures that m is for have programmatic dependent launch; elsewhere a kernel starts
// when those before it have ended.
func (m *Module) dependents() bool {
	for _, i := range m.Items {
		if d, ok := i.(*Directive); ok && d.Name == ".target" && len(d.Words) > 0 {
			var arch int
			if n, _ := fmt.Sscanf(d.Words[0], "sm_%d", &arch); n == 1 && arch < 90 {
				return false
			}
		}
	}
	return true
}

// Program checks the kernels of a program: text is what they were compiled to, and
// usage their registers. Findings have the lines of their instructions where the text
// has a line table, else those of their kernels.
func Program(p *artifact.Program, text string, usage []artifact.Usage) (*Report, error) {
	m, err := Parse(text)
	if err != nil {
		return nil, err
	}
	r, err := Check(m, Launches(p, usage))
	if err != nil {
		return nil, err
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		for _, k := range p.Kernels {
			if k.Name == f.Kernel && f.Source == 0 && len(k.Lines) > 0 {
				f.File, f.Source = p.File, k.Lines[0]
			}
		}
	}
	return r, nil
}

// corners are the blocks that are followed: the first and the last; of clusters their first ones.
func corners(grid [3]int, cluster int) [][3]uint64 {
	last := [3]uint64{}
	for i, n := range grid {
		last[i] = uint64(max(n, 1) - 1)
	}
	last[0] -= last[0] % uint64(cluster)
	if last == [3]uint64{} {
		return [][3]uint64{last}
	}
	return [][3]uint64{{}, last}
}
