// Package artifact is a compiled function as plain data: CUDA C++ text and
// machine code, the static order of launches, and the plan of the one
// allocation that every buffer lies in. A device runs it without a compiler and
// without knowing the dialect.
package artifact

// Program is one function, ready to run.
type Program struct {
	Name string // of the function, without "@"
	File string // the text it came from, as in #line
	// Source is CUDA C++ of all kernels; it includes "dm.cuh", the prelude. A #line
	// says what line of File all lines up to the next #line stand for: unlike in
	// C++, lines do not count on.
	Source  string
	Kernels []Kernel // each distinct kernel once
	Steps   []Step   // in an order that is right on one stream; a Loop repeats those behind it
	Buffers []Buffer
	// Workspace is the size in bytes of the one allocation. Every buffer lies in
	// it, aligned to 256 bytes.
	Workspace int64
	Inputs    []int // buffers of the arguments, in their order
	Outputs   []int // buffers of the results, in their order; may repeat, and may be inputs
	Images    []Image
	// Headers are the texts that Source includes. Where they are absent they are
	// those of the prelude that is built in; a .dmx file holds them, so that what
	// was written by one version can be compiled and emulated by another.
	Headers []Header
	// Results are the names of the results, for files and people; nil: those of
	// their buffers.
	Results []string
	// Views are the shapes of the results where they are others than those of
	// their buffers, by result; nil: none is.
	Views []*View
	// Defaults say what the inputs are where none is given; nil: random numbers.
	Defaults []Default
	// Variants are the same function for architectures of their own, where code
	// was made for several. They have none themselves.
	Variants []*Program

	// Foreign says that the program was read from a file that was not written with
	// this user's key: its code may be anybody's, and the emulator does not run it.
	Foreign bool `json:"-"`
	// Key is the secret that Write signs the file with; nil: it signs none.
	Key []byte `json:"-"`
}

// Default is an input that is not given: seeded standard normal numbers, or as
// its argument's attributes say.
type Default struct {
	Init   *float64 // the value of every element
	Stddev *float64 // what random numbers are scaled by
}

// Header is a text that Source may include by its name.
type Header struct {
	Name string
	Text string
}

// Image is the machine code for an architecture, if there is any.
func (p *Program) Image(arch string) (Image, bool) {
	for _, m := range p.Images {
		if m.Arch == arch {
			return m, true
		}
	}
	return Image{}, false
}

// Arch is the one architecture that the kernels were written for; empty where
// they run on any from sm_80 on.
func (p *Program) Arch() string {
	for _, k := range p.Kernels {
		if k.Arch != "" {
			return k.Arch
		}
	}
	return ""
}

// For is the program or that of its variants that is for a device of this
// architecture.
func (p *Program) For(arch string) *Program {
	for _, v := range p.Variants {
		if v.Arch() == arch {
			return v
		}
	}
	return p
}

// View is another way to see the bytes of a buffer.
type View struct {
	Shape []int64
	Order []int // as of a Buffer
}

// ResultView is the shape of result i and the order of its dimensions in memory.
func (p *Program) ResultView(i int) View {
	if i < len(p.Views) && p.Views[i] != nil {
		return *p.Views[i]
	}
	b := &p.Buffers[p.Outputs[i]]
	return View{b.Shape, b.Order}
}

// Result is the name of result i.
func (p *Program) Result(i int) string {
	if i < len(p.Results) {
		return p.Results[i]
	}
	return p.Buffers[p.Outputs[i]].Name
}

// Image is machine code for one architecture.
type Image struct {
	Arch  string // "sm_90a"
	Cubin []byte
}

// Kernel is a function of Source.
type Kernel struct {
	Name    string
	Class   string // "pointwise", "row", "contraction", …
	Threads int    // of a block
	Shared  int    // bytes of dynamic shared memory of a block
	Cluster int    // blocks of a cluster; 0 or 1: none
	Params  []Param
	Lines   []int // of File, 1-based, that it came from
	// First and Last are its lines in Source, 1-based.
	First, Last int
	// Arch is the architecture that it was written for; it runs on no other.
	// Empty: any from sm_80 on.
	Arch string
}

// Mode is how a kernel uses a parameter.
type Mode string

// The modes; they are the prelude's dm::In, dm::Out, dm::InOut and dm::Map.
const (
	In    Mode = "in"
	Out   Mode = "out"
	InOut Mode = "inout"
	Map   Mode = "map" // a tensor map for bulk loads or stores of the buffer, passed by value
)

// Param is one parameter of a kernel.
type Param struct {
	Name string
	Elem string // "f16", "bf16", "f32", "i32", …: MLIR's names
	Mode Mode
}

// Step is one launch, one fill, one copy, or a decision about the steps behind it.
type Step struct {
	Name   string // unique in the program; what a person is shown
	Kernel int    // index; below 0: Fill, Copy, Loop or Branch
	Grid   [3]int
	Args   []Arg
	Stream int
	Waits  []int // earlier steps on other streams that must have ended

	// Parts are, of a decision, how many of the steps behind it are its first and
	// its second part.
	Parts [2]int `json:",omitzero"`
	// Trips is how often the body of a Loop runs, where that is known.
	Trips      int64 `json:",omitempty"`
	TripsKnown bool  `json:",omitempty"`

	// What the cost model predicts for the step when it runs once.
	FLOP         int64
	ReadBytes    int64
	WrittenBytes int64
	TimeNs       float64
	// Product and Tile are, of a contraction, what measured tiles are looked up
	// by, and the tile that it has.
	Product, Tile string
	// Counted bytes differ from the prediction for this reason; empty: they are equal.
	Differs string
}

// Arg is what a parameter gets.
type Arg struct {
	Buffer int
	Map    *TensorMap // for Mode Map
}

// TensorMap describes a tiled tensor to the bulk copy engine (sm_90 and up), in
// the terms of the driver's cuTensorMapEncodeTiled: innermost dimension first.
type TensorMap struct {
	Elem    string
	Dims    []uint64
	Strides []uint64 // bytes, of all dimensions but the innermost
	Box     []uint32
	Swizzle int // bytes: 0, 32, 64 or 128
}

// Kind is what a buffer is for.
type Kind string

// The kinds of buffers.
const (
	Input    Kind = "input"
	Output   Kind = "output"
	Constant Kind = "constant" // filled from Data once
	Temp     Kind = "temp"     // of one step or between steps; its bytes are shared over time
)

// Buffer is a part of the allocation.
type Buffer struct {
	Name   string // of the value, without "%"
	Elem   string
	Shape  []int64
	Order  []int // of the dimensions in memory, outermost first; nil: row-major
	Kind   Kind
	Offset int64
	Bytes  int64
	Data   []byte // of a constant
	// First and Last are the steps between which the bytes hold the value; an
	// input's First is -1, an output's Last is the number of steps.
	First, Last int
}
