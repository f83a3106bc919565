package llvm

import (
	"path/filepath"
	"reflect"
	"strings"

	"dmir/compile/llvm/code"
	dm "dmir/dialect/ir"
	"dmir/gpu/artifact"

	"github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/metadata"
	"github.com/llir/llvm/ir/types"
)

// lines attaches the lines of the program to instructions; nil attaches none.
type lines struct {
	m      *code.Module
	of     func(*dm.Op) int
	line   int // of what has none of its own
	unit   *metadata.DICompileUnit
	file   *metadata.DIFile
	scope  *metadata.DISubprogram
	places map[int64]*metadata.DILocation
}

// newLines begins the description of m, which a program in file is compiled to, for
// debuggers and profilers.
func newLines(m *code.Module, file string) *lines {
	l := &lines{m: m}
	dir, name := filepath.Split(file)
	l.file = &metadata.DIFile{MetadataID: -1, Filename: name, Directory: dir}
	m.Node(l.file)
	l.unit = &metadata.DICompileUnit{MetadataID: -1, Distinct: true, Language: enum.DwarfLangC99, File: l.file, Producer: "dmir", IsOptimized: true, EmissionKind: enum.EmissionKindLineTablesOnly}
	m.Node(l.unit)
	m.NamedMetadataDefs["llvm.dbg.cu"] = &metadata.NamedDef{Name: "llvm.dbg.cu", Nodes: []metadata.Node{l.unit}}
	flags := &metadata.NamedDef{Name: "llvm.module.flags"}
	for _, f := range []struct {
		name  string
		value int64
	}{{"Debug Info Version", 3}, {"Dwarf Version", 4}} {
		t := &metadata.Tuple{MetadataID: -1, Fields: []metadata.Field{
			code.Text(constant.NewInt(types.I32, 2).String()), &metadata.String{Value: f.name}, code.Text(constant.NewInt(types.I32, f.value).String()),
		}}
		m.Node(t)
		flags.Nodes = append(flags.Nodes, t)
	}
	m.NamedMetadataDefs["llvm.module.flags"] = flags
	return l
}

// number sets the lines of each kernel in the text of p.
func number(p *artifact.Program) {
	of := map[string]*artifact.Kernel{}
	for i := range p.Kernels {
		of[p.Kernels[i].Name] = &p.Kernels[i]
	}
	var k *artifact.Kernel
	last := false // whether the function is that which the host calls, behind the body
	n := 0
	for line := range strings.Lines(p.Source) {
		n++
		if rest, ok := strings.CutPrefix(line, "define "); ok {
			_, name, _ := strings.Cut(rest, "@")
			name, _, _ = strings.Cut(name, "(")
			inner := strings.TrimSuffix(name, bodySuffix)
			if of[name] != nil {
				k, last = of[name], true
			} else if k, last = of[inner], false; k != nil {
				k.First = n
			}
		}
		if line == "}\n" && k != nil && last {
			k.Last, k = n, nil
		}
	}
}

// span are the instructions that are being added to a block.
type span struct {
	l     *lines
	f     *code.Func
	block *ir.Block
	first int
}

// from begins a span at the end of f.
func (l *lines) from(f *code.Func) span {
	if l == nil {
		return span{}
	}
	return span{l, f, f.Block, len(f.Block.Insts)}
}

// are states that the instructions since the start of the span are those of o.
func (s span) are(o *dm.Op) {
	if s.l == nil || o == nil || s.f.Block != s.block {
		return
	}
	line := s.l.of(o)
	if line == 0 {
		return
	}
	for _, inst := range s.block.Insts[s.first:] {
		attach(inst, s.l.place(line))
	}
}

// place is the line as a place in the current function.
func (l *lines) place(line int) *metadata.DILocation {
	at := l.places[int64(line)]
	if at == nil {
		at = &metadata.DILocation{MetadataID: -1, Line: int64(line), Scope: l.scope}
		l.m.Node(at)
		l.places[int64(line)] = at
	}
	return at
}

// attach adds a place to an instruction or a terminator that has none.
func attach(inst any, at *metadata.DILocation) {
	field := reflect.ValueOf(inst).Elem().FieldByName("Metadata")
	if !field.IsValid() {
		return
	}
	list := field.Addr().Interface().(*ir.Metadata)
	for _, a := range *list {
		if a.Name == "dbg" {
			return
		}
	}
	*list = append(*list, &metadata.Attachment{Name: "dbg", Node: at})
}

// begin gives fn, the body of the kernel called name, its place in the program.
func (l *lines) begin(fn *ir.Func, name string) {
	if l == nil {
		return
	}
	l.scope = &metadata.DISubprogram{
		MetadataID: -1, Distinct: true, Name: name, Scope: l.file, File: l.file, Line: int64(l.line), ScopeLine: int64(l.line),
		Type: l.signature(), SPFlags: 8 /* definition */, Unit: l.unit,
	}
	l.m.Node(l.scope)
	l.places = map[int64]*metadata.DILocation{}
	fn.Metadata = append(fn.Metadata, &metadata.Attachment{Name: "dbg", Node: l.scope})
}

func (l *lines) signature() *metadata.DISubroutineType {
	types := &metadata.Tuple{MetadataID: -1, Fields: []metadata.Field{metadata.Null}}
	l.m.Node(types)
	t := &metadata.DISubroutineType{MetadataID: -1, Types: types}
	l.m.Node(t)
	return t
}

// end gives what has no line of its own in fn that of the kernel.
func (l *lines) end(fn *ir.Func) {
	if l == nil {
		return
	}
	at := l.place(max(l.line, 1))
	for _, b := range fn.Blocks {
		for _, inst := range b.Insts {
			attach(inst, at)
		}
		if b.Term != nil {
			attach(b.Term, at)
		}
	}
}
