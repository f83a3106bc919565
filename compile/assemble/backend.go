package assemble

import (
	"fmt"
	"slices"
	"strings"

	"dmir/analysis/machine"
	"dmir/compile/kernel"
	"dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
)

// Backend is what a target adds.
type Backend interface {
	// Name is that of the target, as in artifact.Program.Target.
	Name() string
	// Machine is the machine of the predicted times; nil: there are none.
	Machine() *machine.Machine
	// Plan is the plan of f, a pure function of its arguments and the back end.
	Plan(f *kernel.Form, o Options) (Plan, error)
	// Source writes the text of all kernels into p.Source and sets First and Last
	// of each kernel. kernels[i] is that of p.Kernels[i].
	Source(p *artifact.Program, kernels []Kernel) error
}

// Options are the inputs of a plan besides the form and the back end.
type Options struct {
	Tile string                  // of a contraction, from the text; "" or an unsupported one: the best
	Over map[*ir.Value]*ir.Value // the results that overwrite an input, with that input
}

// Plan is how a kernel runs: its launches and the memory that they share.
type Plan interface {
	// Temps is the memory that the launches share, in order of allocation.
	Temps() []*Temp
	// Launches are the launches that compute the form, in order. The nest of the
	// form has been verified (see the function Launches).
	Launches() ([]*Launch, error)
	// Texts are the verified texts of the launches, one for each. An
	// *InvalidError is a defect of dmir.
	Texts() ([]Text, error)
	// Tile is the tile of a contraction, and the name of its product in the
	// measured choices; both are "" for what has none.
	Tile() (tile, product string)
	// Pace is how fast the launches run.
	Pace() Pace
}

// Pace is how fast the launches of a plan run, where that is not as the cost model
// supposes of any kernel.
type Pace struct {
	Launches  int     // one after the other; 0: one
	Bandwidth float64 // that their blocks reach for what they move, bytes/s; 0: the machine's
	Epilogue  float64 // what the epilogues of tiles add to the time of products, s
}

// Temp is memory that the launches of a plan share.
type Temp struct {
	Elem types.Elem
	N    int64
	// Updated: the first launch accumulates into it.
	Updated bool
	// Own: the op needs it in every kernel, alone or fused.
	Own bool
}

// Bytes is the size of t.
func (t *Temp) Bytes() int64 { return t.N * t.Elem.Bytes() }

// Launch is one kernel and its launch configuration.
type Launch struct {
	Suffix  string // of its name, appended to that of the step; "" for the main one
	Class   string
	Block   artifact.Block
	Grid    artifact.Grid
	Params  []Param
	Arch    string // "" where it runs on all
	Differs string // why the bytes it moves are not those of the cost model
	Of      *ir.Op // the op of code that has none of its own; nil: the step
	// Stores are the results of the library op that it stores, where they lie in
	// other values; nil: all.
	Stores []*ir.Value
	// Scratch is the number of bytes that each thread of a host needs for itself;
	// 0 on GPUs.
	Scratch int64
}

// Param is one parameter of a launch: a value of the program or memory that
// launches share.
type Param struct {
	Name  string
	Elem  types.Elem
	Mode  artifact.Mode
	Value *ir.Value
	Over  *ir.Value // the result that is written over Value; nil: none
	Temp  *Temp
	Map   *artifact.TensorMap
	Idle  bool // read only by a later launch of the plan
	Fresh bool // read and written, and nowhere read before the launch has written it
	// Instead: what the launch reads of it, later launches of the plan do not.
	Instead bool
	Most    int64 // bytes that the launch reads of Value at most, or reads and writes of Temp; 0: all that the step reads, all
}

// Text is the code of one launch's kernel, without its name.
type Text interface {
	// Key is equal for kernels that differ only in names and lines. It covers all
	// else that the text depends on, types and modes of parameters included.
	Key() string
}

// Kernel is a distinct kernel of a program.
type Kernel struct {
	Text Text
	// Line is the line of the program for code whose op has none; 0: none.
	Line int
	// LineOf is the line of an op in the program, 0 where it has none.
	LineOf func(*ir.Op) int
}

// InvalidError is the error of a kernel that a generator wrote and that fails
// verification.
type InvalidError struct {
	Problems []string
	Text     string // of the kernels
}

func (e *InvalidError) Error() string {
	slices.Sort(e.Problems)
	return fmt.Sprintf("the code generator made an unsound kernel: %s%s", strings.Join(slices.Compact(e.Problems), "; "), e.Text)
}
