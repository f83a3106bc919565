package llvm

import (
	"dmir/analysis/blocks"
	"dmir/compile/assemble"
	"dmir/compile/llvm/code"
	"dmir/compile/llvm/scalar"
	"dmir/gpu/artifact"
)

// module is an empty module for an architecture.
func module(arch string) *code.Module {
	m := code.NewModule()
	of := blocks.MachineOf(arch)
	m.Vector, m.Masks = of.Bytes, of.Masks
	return m
}

// Source writes the functions of all kernels as one module.
func (g generator) Source(p *artifact.Program, kernels []assemble.Kernel) error {
	m := module(g.arch)
	m.SourceFilename = p.File
	lib := scalar.New(m)
	at := newLines(m, p.File)
	for i, k := range kernels {
		at.of, at.line = k.LineOf, k.Line
		if err := emit(m, lib, k.Text.(*text).l, p.Kernels[i].Name, at); err != nil {
			return err
		}
	}
	p.Source = m.String()
	number(p)
	return nil
}
