package gemm

import (
	"slices"

	"dmir/compile/llvm/code"

	"github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/metadata"
	"github.com/llir/llvm/ir/value"
)

// scopes is the alias scope of the scratch memory: nothing else that the functions of the
// caller load or store is there. Without it each short loop that packs, and each row
// of a tile, would compare addresses before it runs vectors.
type scopes struct{ metadata.MDNode }

func newScopes(m *code.Module) scopes {
	node := func(distinct bool, fields ...metadata.Field) *metadata.Tuple {
		t := &metadata.Tuple{MetadataID: -1, Distinct: distinct, Fields: fields}
		m.Node(t)
		return t
	}
	domain := node(true)
	domain.Fields = []metadata.Field{domain, &metadata.String{Value: "gemm"}}
	scope := node(true)
	scope.Fields = []metadata.Field{scope, domain, &metadata.String{Value: "scratch"}}
	return scopes{node(false, scope)}
}

func (s scopes) inside() *metadata.Attachment {
	return &metadata.Attachment{Name: "alias.scope", Node: s.MDNode}
}

func (s scopes) outside() *metadata.Attachment {
	return &metadata.Attachment{Name: "noalias", Node: s.MDNode}
}

// private marks a store to the scratch memory.
func (e *emitter) private(s *ir.InstStore) { s.Metadata = append(s.Metadata, e.scopes.inside()) }

// element emits an element of an operand, which is outside the scratch memory.
func (e *emitter) element(emit func() value.Value) value.Value {
	var x value.Value
	e.mark(func() { x = emit() })
	return x
}

// finish emits what consumes a tile.
func (e *emitter) finish(t Tile) {
	e.mark(func() { e.kernel.Done(e.Func, t) }, t.Sums...)
}

// mark states for the loads and stores that emit makes whether they are inside the
// scratch memory: those at addresses derived from sums are. It says nothing of addresses
// that were chosen among several.
func (e *emitter) mark(emit func(), sums ...value.Value) {
	block, insts, blocks := e.Block, len(e.Block.Insts), len(e.Of.Blocks)
	emit()
	where := func(p value.Value) []*metadata.Attachment {
		for {
			if slices.Contains(sums, p) {
				return []*metadata.Attachment{e.scopes.inside()}
			}
			switch x := p.(type) {
			case *ir.InstGetElementPtr:
				p = x.Src
			case *ir.InstBitCast:
				p = x.From
			case *ir.InstPhi, *ir.InstSelect:
				return nil
			default:
				return []*metadata.Attachment{e.scopes.outside()}
			}
		}
	}
	all := func(insts []ir.Instruction) {
		for _, inst := range insts {
			switch x := inst.(type) {
			case *ir.InstLoad:
				x.Metadata = append(x.Metadata, where(x.Src)...)
			case *ir.InstStore:
				x.Metadata = append(x.Metadata, where(x.Dst)...)
			}
		}
	}
	all(block.Insts[insts:])
	for _, b := range e.Of.Blocks[blocks:] {
		all(b.Insts)
	}
}
