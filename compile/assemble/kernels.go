package assemble

import (
	"fmt"
	"slices"

	"dmir/dialect/ir"
	"dmir/gpu/artifact"
)

// Kernels adds the kernels of launches to a program, each distinct one once.
type Kernels struct {
	Out    *artifact.Program
	LineOf func(*ir.Op) int // as in Kernel
	all    []Kernel
	number map[string]int // by text and architecture
}

// Add is the number of the kernel of l with the text t; an equal kernel is
// reused. lines are those of the step, its own first.
func (s *Kernels) Add(l *Launch, t Text, name string, lines []int) int {
	key := t.Key() + l.Arch
	if n, ok := s.number[key]; ok {
		k := &s.Out.Kernels[n]
		for _, line := range lines {
			if !slices.Contains(k.Lines, line) {
				k.Lines = append(k.Lines, line)
			}
		}
		return n
	}
	if s.number == nil {
		s.number = map[string]int{}
	}
	n := len(s.Out.Kernels)
	s.number[key] = n
	k := artifact.Kernel{
		Name:  fmt.Sprintf("k%d_%s", n, name), // the prefix avoids the names of the C library
		Class: l.Class, Block: l.Block, Arch: l.Arch, Scratch: l.Scratch, Lines: slices.Clone(lines),
	}
	for _, p := range l.Params {
		k.Params = append(k.Params, artifact.Param{Name: p.Name, Elem: p.Elem.String(), Mode: p.Mode})
	}
	s.Out.Kernels = append(s.Out.Kernels, k)
	line := s.LineOf(l.Of)
	if line == 0 && len(lines) > 0 {
		line = lines[0]
	}
	s.all = append(s.all, Kernel{Text: t, Line: line, LineOf: s.LineOf})
	return n
}

// Write writes the source of the program.
func (s *Kernels) Write(b Backend) error { return b.Source(s.Out, s.all) }
