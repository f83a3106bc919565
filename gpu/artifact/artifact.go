// Package artifact is a compiled function as plain data, for any target: the text
// of its kernels, their machine code, the static order of steps, and the plan of
// the one allocation that every buffer lies in. A device runs it without a
// compiler and without the dialect.
package artifact

// Program is one function, ready to run.
type Program struct {
	Name string // of the function, without "@"
	File string // the text it came from, as in #line
	// Target is the back end that the code is for.
	Target string
	// Source is the text of all kernels, C++ that includes Headers. A #line names
	// the line of File that all lines up to the next #line stand for: unlike in
	// C++, line numbers do not increase after it.
	Source  string
	Kernels []Kernel // each distinct kernel once
	Steps   []Step   // in an order that is right on one stream; a StepLoop or a StepRepeat repeats those behind it
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
	// Defaults are the inputs that are not given; nil: random numbers.
	Defaults []Default
	// State is, by result, the number of the input whose value in the next step it
	// is, -1 for a result that is none's; nil: none is. A result may be in the buffer
	// of its input.
	State []int `json:",omitempty"`
	// Sparse are the sparse tensors that inputs and results store; nil: none is.
	Sparse []Sparse `json:",omitempty"`
	// Checks are what the program expects of its results, which the host compares
	// after a run. The first Returned results are those of the function, the others serve
	// checks alone; without checks Returned is 0.
	Checks   []Check `json:",omitempty"`
	Returned int     `json:",omitempty"`
	// Divided is that several devices run the program together; nil: one.
	Divided *Distribution `json:",omitempty"`
	// Stages are what the devices of each position along Divided.Pipeline run; nil: all run this program.
	Stages []Stage `json:",omitempty"`
	// Variants are the same function for specific architectures, if code was generated
	// for several. They have no variants themselves.
	Variants []*Program

	// Object names what this machine has compiled the program to, which a device has said; "": nothing
	// that it keeps.
	Object string `json:",omitempty"`

	// Foreign is true of a program that was read from a file not signed with this
	// user's key: its code is not trusted, and the emulator does not run it.
	Foreign bool `json:"-"`
	// Key is the secret that Write signs the file with; nil: it signs none.
	Key []byte `json:"-"`
}

// Default is an input that is not given: seeded standard normal numbers, or what
// the attributes of its argument ask for.
type Default struct {
	Init   *float64 // the value of every element
	Stddev *float64 // what random numbers are scaled by
	Array  *Array   `json:",omitempty"` // the array in a file, which lies as it did beside the program's text
}

// Sparse is a sparse tensor that inputs in a row store, or results: its components.
type Sparse struct {
	Result  bool // results store it, and not inputs
	First   int  // the number of the first of them
	Name    string
	Type    string   // as the text of programs states it, with numbers for its sizes
	Pattern *Pattern `json:",omitempty"` // which of its elements are stored where it is not given; nil: any
}

// Pattern is which elements of a sparse tensor are stored: the sizes are those of its kind.
type Pattern struct {
	Kind        string
	Exponent    float64 `json:",omitempty"`
	Width, Size int64   `json:",omitempty"`
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
// they run on any of the target's.
func (p *Program) Arch() string {
	for _, q := range p.Parts() {
		for _, k := range q.Kernels {
			if k.Arch != "" {
				return k.Arch
			}
		}
	}
	return ""
}

// For is the variant for a device of this architecture, or the program itself.
func (p *Program) For(arch string) *Program {
	for _, v := range p.Variants {
		if v.Arch() == arch {
			return v
		}
	}
	return p
}

// LinesOf are the lines of File that step s came from; in programs of earlier
// versions those of its kernel.
func (p *Program) LinesOf(s *Step) []int {
	if k := p.KernelOf(s); k != nil && len(s.Lines) == 0 {
		return k.Lines
	}
	return s.Lines
}

// KernelOf is the kernel that step s launches, nil if it launches none.
func (p *Program) KernelOf(s *Step) *Kernel {
	if s.Kind != StepLaunch || s.Launch.Kernel < 0 || s.Launch.Kernel >= len(p.Kernels) {
		return nil
	}
	return &p.Kernels[s.Launch.Kernel]
}

// View is a shape and an order for the bytes of a buffer.
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

// Carried is the input whose value in the next step result i is, -1 if it is none's.
func (p *Program) Carried(i int) int {
	if i >= len(p.State) {
		return -1
	}
	return p.State[i]
}

// Written are the buffers that steps write.
func (p *Program) Written() map[int]bool {
	written := map[int]bool{}
	for i := range p.Steps {
		switch s := &p.Steps[i]; s.Kind {
		case StepFill, StepCopy:
			written[s.Move.To] = true
		case StepCollective:
			for _, v := range s.Collective.Values() {
				if s.Collective.Op != Send {
					written[v.To] = true
				}
			}
		case StepLaunch:
			for k, a := range s.Launch.Args {
				if p.Kernels[s.Launch.Kernel].Params[k].Mode != In {
					written[a.Buffer] = true
				}
			}
		}
	}
	return written
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
	Arch string // "sm_90a"
	Code []byte // as the target's loader takes it
}

// Kernel is a function of Source.
type Kernel struct {
	Name   string
	Class  string // "pointwise", "row", "contraction", …
	Block  Block
	Params []Param
	Lines  []int // of File, 1-based, that it came from, of all its launches
	// First and Last are its lines in Source, 1-based.
	First, Last int
	// Arch is the architecture that it was written for; it runs on no other.
	// Empty: any of the target's.
	Arch    string
	Scratch int64 `json:",omitempty"` // bytes of memory that each thread of a host needs for itself; 0 on GPUs
}

// Mode is how a kernel uses a parameter.
type Mode string

// The modes.
const (
	In    Mode = "in"
	Out   Mode = "out"
	InOut Mode = "inout"
	Map   Mode = "map" // a TensorMap of the buffer, passed by value
)

// Param is a parameter of a kernel.
type Param struct {
	Name string
	Elem string // "f16", "bf16", "f32", "i32", …: MLIR's names
	Mode Mode
}

// Step is one part of a run. Its kind determines which of Launch, Move,
// Decision and Collective it has; the others are zero.
type Step struct {
	Name       string // unique in the program, for display
	Kind       StepKind
	Launch     Launch     `json:",omitzero"`
	Move       Move       `json:",omitzero"`
	Decision   Decision   `json:",omitzero"`
	Collective Collective `json:",omitzero"`
	Stream     int
	Waits      []int // earlier steps on other streams that must have ended

	// What the cost model predicts for the step when it runs once.
	FLOP         int64
	ReadBytes    int64
	WrittenBytes int64
	TimeNs       float64
	// Product is the key of a contraction in the file of measured tiles, Tile the
	// tile that it uses.
	Product, Tile string
	// Counted bytes differ from the prediction for this reason; empty: they are equal.
	Differs string
	// Lines are those of File, 1-based and ascending, that the step came from: a part
	// of its kernel's. See LinesOf.
	Lines []int `json:",omitempty"`
}

// StepKind is what a step does.
type StepKind string

// The kinds of steps.
//
// A loop and a branch are decisions that the host takes: it waits for all steps
// before them, reads a predicate of one byte, and goes on. A repetition reads
// none, so the host waits for nothing. The steps that they
// control follow directly, in two parts with the numbers of steps in
// Decision.Parts: a loop's condition and its body, a branch's two sides; of a
// repetition the first part is empty. A part
// may hold decisions of its own. The bounds of a part are
// barriers: all steps before them have ended when the next one starts.
const (
	StepLaunch     StepKind = "launch"     // a kernel runs
	StepFill       StepKind = "fill"       // Move.To gets zero bytes
	StepCopy       StepKind = "copy"       // Move.To gets the bytes of Move.From
	StepLoop       StepKind = "loop"       // the first part runs; while the predicate then holds true, the second runs and then the first again
	StepRepeat     StepKind = "repeat"     // the second part runs Decision.Trips times
	StepCollective StepKind = "collective" // devices exchange Collective.From for Collective.To
	StepBranch     StepKind = "branch"     // where the predicate holds true the first part runs, else the second
)

// Launch is one run of a kernel.
type Launch struct {
	Kernel int // its number
	Grid   Grid
	Args   []Arg
}

// Arg is the argument for a parameter.
type Arg struct {
	Buffer int
	Map    *TensorMap // for Mode Map
}

// Move is what a fill or a copy moves: numbers of buffers.
type Move struct {
	To   int
	From int // of a copy; 0 for a fill
}

// Decision is what a loop, a repetition or a branch reads and decides about.
type Decision struct {
	On    int    // the buffer of the predicate; 0 of a repetition
	Parts [2]int // how many of the steps behind it are its first and its second part
	// Trips is how often the body of a loop runs, where that is known.
	Trips      int64 `json:",omitempty"`
	TripsKnown bool  `json:",omitempty"`
}

// Array is an array in a file beside a program's text.
type Array struct {
	Path string // as in #dm.file
	Name string `json:",omitempty"` // of one of several in the file
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
	// Array is where Data was read; nil: nowhere.
	Array *Array `json:",omitempty"`
	// Filled: kernels write it part by part, and none writes it as a whole.
	Filled bool `json:",omitempty"`
	// First and Last are the steps between which the bytes hold the value; an
	// input's First is -1, an output's Last is the number of steps.
	First, Last int
}
