package ptx

// Pos is a place in a text, from 1; columns count bytes.
type Pos struct{ Line, Col int }

// Module is a text of PTX, in its order.
type Module struct {
	Items []Item
}

// Funcs are the kernels and functions of the module.
func (m *Module) Funcs() (out []*Func) {
	for _, i := range m.Items {
		if f, ok := i.(*Func); ok {
			out = append(out, f)
		}
	}
	return out
}

// Item is a *Directive, a *Var or a *Func of a module.
type Item interface{ item() }

// Stmt is a *Label, *Var, *Loc, *Directive, *Scope or *Instr of a function.
type Stmt interface{ stmt() }

// Directive is one whose words mean nothing here: .version, .section, .pragma.
type Directive struct {
	Pos
	Name  string // ".version"
	Words []string
	Body  []string // of a .section: what its braces hold; nil: no braces
	Ends  bool     // with a semicolon
}

// Var declares a variable, a parameter or registers.
type Var struct {
	Pos
	Words []string // ".extern", ".shared", ".align", "1024", ".b8"
	Names []Declared
	Init  []string // what follows "="
}

// Declared is a name of a declaration.
type Declared struct {
	Name  string
	Count int      // of %r<N>, N; else 0
	Dims  []string // of an array; "" where the size is open
}

// Space is the state space: "shared", "reg", "param"; and the element type.
func (v *Var) Space() string {
	for _, w := range v.Words {
		switch w {
		case ".reg", ".shared", ".global", ".const", ".local", ".param":
			return w[1:]
		}
	}
	return ""
}

// Func is a kernel (.entry) or a function.
type Func struct {
	Pos
	Words  []string // what stands before the name: ".visible", ".entry"
	Ret    []*Var
	Name   string
	Params []*Var
	Attrs  []*Directive // .maxntid, .minnctapersm, …
	Body   []Stmt
	Extern bool // declared, not defined
	End    Pos  // of the closing brace
	// Unit is what stands beside it from one .version to the next.
	Unit *Unit
}

// Unit is a text of the compiler. Several may stand behind each other in a module.
type Unit struct {
	Files map[int]string  // that Loc names, by their numbers
	Vars  map[string]*Var // variables, by their names
}

// Entry reports whether the function is a kernel.
func (f *Func) Entry() bool {
	for _, w := range f.Words {
		if w == ".entry" {
			return true
		}
	}
	return false
}

// Label names the next instruction.
type Label struct {
	Pos
	Name string
}

// Loc is the place in the source of the instructions that follow.
type Loc struct {
	Pos
	File, Line, Col int
	Function        string // the label of the inlined function's name; "": not inlined
	At              [3]int // file, line and column that it is inlined at
}

// Scope is a block with registers and labels of its own.
type Scope struct {
	Pos
	Body []Stmt
	End  Pos
}

// Instr is an instruction.
type Instr struct {
	Pos
	Guard  string // the predicate; "": none
	Negate bool
	Op     string // with its modifiers: "ld.global.nc.v4.u32"
	Args   []Operand
}

// Operand is an operand of an instruction.
type Operand struct {
	Kind Kind
	Text string    // of a name or a number
	Sub  []Operand // of what has parts; of Mem the address, then perhaps the coordinates
	Off  string    // of Mem: "+8", "+-4", "-4"
}

// Kind is a form of operands.
type Kind uint8

// The forms.
const (
	Name Kind = iota // a register, variable, label or "_"
	Num              // 1, -1, 0x1F, 0f3F800000
	Mem              // [a+8], [a, {b, c}]
	Vec              // {a, b}
	List             // (a, b), of a call
	Pair             // a|b
	Not              // !a
)

func (*Directive) item() {}
func (*Var) item()       {}
func (*Func) item()      {}

func (*Directive) stmt() {}
func (*Var) stmt()       {}
func (*Label) stmt()     {}
func (*Loc) stmt()       {}
func (*Scope) stmt()     {}
func (*Instr) stmt()     {}
