// Package onnx turns models in ONNX into programs in the data-movement dialect.
//
// A model is a file in the wire format of protocol buffers (proto.go, tensor.go). Its
// graph becomes the function @main; each node becomes the ops that compute the same,
// by a table of conversions, one file for each family of ops. Shapes and element types
// follow from those of the inputs by the rules of the dialect's ops, so every size is
// known: sizes with names are given with the options. Those that are not become symbols
// (symbols.go).
//
// Inputs of a node that decide about shapes must be known at import. What constants
// alone determine is computed then, by an executor that the options bring.
package onnx

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/loc"
	"dmir/dialect/op"
	"dmir/dialect/print"
	"dmir/dialect/raise"
	"dmir/dialect/train"
	"dmir/dialect/types"
	"dmir/dialect/verify"
	"dmir/dialect/weights"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// Options say what the file leaves open.
type Options struct {
	Dir    string                  // the model's folder, for data outside the file; "" where it is in none
	Bind   map[string]int64        // sizes by their names or symbols; those without a name are INPUT.DIMENSION
	Shapes map[string][]int        // shapes of inputs, in place of those in the file
	Values map[string]*types.Dense // inputs that are constants
	// File is the file that has the model: nothing keeps its bytes, which may be mapped, and weights are
	// read from it when the program runs. Where it is "" constants keep the bytes.
	File string
	// Locations: Text prints the locations of ops, where the model's nodes come from.
	Locations bool

	trained *origins // of a model that is trained, nil of others

	data  []byte           // of the model
	sizes map[string]int64 // of the files beside it that were opened
	// Evaluate computes a function without arguments.
	Evaluate func(f *ir.Func) ([]*types.Dense, error)
}

// Error is why a model is not imported.
type Error struct {
	Code string // of package diag
	Msg  string
	// Value reports that the import takes the value of an input of the model.
	Value bool
	Loc   loc.Loc // of the node, nil where none is known
}

func (e *Error) Error() string { return e.Msg }

// Unsupported reports that the model is valid and cannot be expressed.
func (e *Error) Unsupported() bool { return e.Code == unsupportedCode }

// fail ends the import: the model is not valid.
func fail(format string, args ...any) {
	panic(&Error{Code: invalidCode, Msg: fmt.Sprintf(format, args...)})
}

// unsupported ends the import: the model cannot be expressed.
func unsupported(format string, args ...any) {
	panic(&Error{Code: unsupportedCode, Msg: fmt.Sprintf(format, args...) + ": the dialect has no equivalent"})
}

// caught makes what ended an import an error.
func caught(err *error) {
	switch r := recover().(type) {
	case nil:
	case *Error:
		*err = r
	case interface{ Addr() uintptr }: // a page of the mapped file is gone
		*err = &Error{Code: invalidCode, Msg: "the file was changed while it was read"}
	default:
		*err = &Error{Code: invalidCode, Msg: fmt.Sprintf("internal error: %v", r)}
	}
}

// importer is one import.
type importer struct {
	opts      Options
	module    *ir.Module
	functions map[string]*functionProto
	names     map[string]int // of values, and how often they were taken
	known     map[*ir.Value]*types.Dense
	fixed     map[*ir.Value]bool        // whether constants alone determine a value
	inlined   int                       // nodes of functions so far
	depth     int                       // of functions around
	stacks    map[string]loc.Loc        // by the text of the exporter
	seeds     int                       // of the nodes so far that draw numbers
	sequences map[*ir.Value][]*ir.Value // members of the values that are sequences
	top       *ir.Block                 // the body of the program's function
	step      *ir.Value                 // the number of the step, an argument; nil where nothing draws by it
	args      map[*ir.Value]train.Arg   // of a model that is trained
	running   map[*ir.Value]*ir.Value   // running statistics as they are after the nodes so far, by their arguments
	tracing   bool                      // whether the trace is kept
	trace     []step
}

// Import is the program of a model, in which the sizes that are open are symbols. name
// is what its text is called. An error is an *Error.
func Import(name string, data []byte, opts Options) (m *ir.Module, err error) {
	defer caught(&err)
	if opts.data, opts.sizes = data, map[string]int64{}; opts.File != "" {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	}
	p := readModel(data)
	checkModel(p)
	opts = opts.computed(p)
	if open := openSizes(p, opts); len(open) > 0 {
		return importOpen(name, p, opts, open)
	}
	return importFixed(name, p, opts)
}

// importFixed is the program of a model whose sizes are all known.
func importFixed(name string, p *modelProto, opts Options) (*ir.Module, error) {
	x, err := build(name, p, opts, false)
	if err == nil {
		err = x.finish()
	}
	if err != nil {
		return nil, err
	}
	return x.module, nil
}

// build is the import of a model whose sizes are all known, its program as the nodes make
// it.
func build(name string, p *modelProto, opts Options, tracing bool) (x *importer, err error) {
	defer caught(&err)
	x = &importer{
		opts: opts, module: &ir.Module{Src: source.New(name, "")}, functions: map[string]*functionProto{},
		names: map[string]int{}, known: map[*ir.Value]*types.Dense{}, fixed: map[*ir.Value]bool{}, tracing: tracing,
		sequences: map[*ir.Value][]*ir.Value{}, args: map[*ir.Value]train.Arg{}, running: map[*ir.Value]*ir.Value{},
	}
	for _, f := range p.functions {
		x.functions[key(standard(f.domain), f.name, f.overload)] = f
	}
	x.main(p)
	return x, nil
}

// finish raises and verifies the program.
func (x *importer) finish() (err error) {
	defer caught(&err)
	products(x.module)
	raise.Module(x.module)
	for _, d := range verify.Module(x.module) {
		if d.Severity == diag.Error {
			fail("%s", d.Message)
		}
	}
	return nil
}

// Text is a model as a program's text, formatted. name is what the model is called in
// messages. Large constants are arrays in the file called weightsPath, or where that is
// "" in the text.
func Text(name string, data []byte, opts Options, weightsPath string) (text string, w *weights.Set, err error) {
	m, err := Import(name, data, opts)
	if err != nil {
		return "", nil, err
	}
	if w, err = weights.Place([]*ir.Module{m}, weightsPath); err == nil {
		text, err = opts.print(m)
	}
	if err != nil {
		return "", nil, &Error{Code: invalidCode, Msg: err.Error()}
	}
	return text, w, nil
}

// print is m as text.
func (o Options) print(m *ir.Module) (string, error) {
	if o.Locations {
		return print.Source(m, print.Locations)
	}
	return print.Source(m)
}

// main builds the function of the model's graph.
func (x *importer) main(p *modelProto) {
	fn := &ir.Op{Name: op.Func}
	body := fn.AddRegion()
	x.top = body
	s := &scope{importer: x, values: map[string]*ir.Value{}, opsets: p.opsets, b: op.NewBuilder(&ir.Builder{Block: body}, verify.Op)}
	s.constants(p.graph)
	for _, in := range p.graph.inputs {
		if _, constant := s.values[in.name]; constant {
			continue // an initializer is its default
		}
		if d := x.opts.Values[in.name]; d != nil {
			s.define(in.name, s.literal(d))
			continue
		}
		v := body.AddArg(x.fresh(in.name), x.inputType(in))
		v.Loc = loc.Named(in.name, nil)
		s.define(in.name, v)
		x.trainedInput(in.name, v)
	}
	s.nodes(p.graph.nodes)
	var results []*ir.Value
	for _, out := range p.graph.outputs {
		v := s.read(out.name)
		if _, is := x.sequences[v]; is {
			unsupported("output %q: a sequence", out.name)
		}
		results = append(results, v)
	}
	results = append(results, x.updates(body)...)
	s.b.Builder.Op(op.Return, results, nil)
	if err := s.b.Err(); err != nil {
		fail("%v", err)
	}
	op.RemoveDead(body)
	f := &ir.Func{Op: fn, Name: "main", Args: body.Args, Results: ir.Types(results), Body: body}
	fn.SetAttr("sym_name", types.Str("main"))
	fn.SetAttr("function_type", types.TypeAttr{T: &types.Func{In: ir.Types(body.Args), Out: f.Results}})
	x.module.Ops = append(x.module.Ops, fn)
	x.module.AddFunc(f)
}

// inputType is the type of an input of the model.
func (x *importer) inputType(in *valueProto) types.Type {
	what := fmt.Sprintf("input %q", in.name)
	if in.kind != "" {
		unsupported("%s: a %s", what, in.kind)
	}
	e := elemOf(what+": ", in.elem)
	if shape, ok := x.opts.Shapes[in.name]; ok {
		return tensorOf(e, shape)
	}
	if !in.known {
		unsupported("%s: a tensor of unknown rank", what)
	}
	dims := make([]int64, len(in.shape))
	for i, s := range in.shape {
		name := in.size(i)
		bound, ok := x.opts.size(name)
		switch {
		case s.known:
			dims[i] = s.n
		case ok:
			dims[i] = bound
		}
	}
	return tensorOf(e, shapeOf(what, dims))
}

// fresh is a name for a value that no other has, with "%".
func (x *importer) fresh(name string) string {
	clean := strings.Map(func(r rune) rune {
		if r < 128 && (r == '_' || r == '.' || r == '$' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z') {
			return r
		}
		return '_'
	}, name)
	if clean == "" || strings.ContainsRune("0123456789.-", rune(clean[0])) {
		clean = "v" + clean
	}
	for {
		n := x.names[clean]
		x.names[clean]++
		if n == 0 {
			return "%" + clean
		}
		clean = fmt.Sprintf("%s_%d", clean, n)
	}
}

// maxComputed is the number of elements of a value up to which it is computed at
// import, and maxOperand that of a constant that it is computed from.
const (
	maxComputed = 1 << 16
	maxOperand  = 1 << 22
)

// constant is the value of v where constants alone determine it, otherwise nil.
func (x *importer) constant(v *ir.Value) *types.Dense {
	fixed := x.isFixed(v)
	if d := x.known[v]; d != nil {
		d, err := d.Inline()
		if err != nil {
			fail("%v", err)
		}
		return d
	}
	if !fixed || x.opts.Evaluate == nil {
		return nil
	}
	fn := &ir.Op{Name: op.Func}
	body := fn.AddRegion()
	b := &ir.Builder{Block: body}
	copies := map[*ir.Value]*ir.Value{}
	var copyOf func(v *ir.Value) *ir.Value
	copyOf = func(v *ir.Value) *ir.Value {
		if c := copies[v]; c != nil {
			return c
		}
		if d := x.known[v]; d != nil {
			copies[v] = b.Op(op.Constant, nil, named("value", types.Attr(d)), v.Type).Results[0]
			return copies[v]
		}
		var in []*ir.Value
		for _, w := range v.Op.Operands {
			in = append(in, copyOf(w))
		}
		for i, r := range b.Op(v.Op.Name, in, v.Op.Attrs, ir.Types(v.Op.Results)...).Results {
			copies[v.Op.Results[i]] = r
		}
		return copies[v]
	}
	b.Op(op.Return, []*ir.Value{copyOf(v)}, nil)
	out, err := x.opts.Evaluate(&ir.Func{Op: fn, Name: "constant", Body: body, Results: []types.Type{v.Type}})
	if err != nil || len(out) != 1 {
		return nil
	}
	x.known[v] = out[0]
	return out[0]
}

// isFixed reports whether constants alone determine v, in few elements.
func (x *importer) isFixed(v *ir.Value) bool {
	if is, done := x.fixed[v]; done {
		return is
	}
	is := v.Op != nil && len(v.Op.Regions) == 0 && v.Tensor() != nil && !op.Of(v.Op).Is(op.Random)
	if is && v.Op.Name == op.Constant {
		x.known[v], is = v.Op.Attr("value").(*types.Dense)
	} else if is {
		n, ok := v.Tensor().Elements().Int()
		is = ok && n <= maxComputed
		for _, w := range v.Op.Operands {
			is = is && x.isFixed(w)
			n, ok := w.Tensor().Elements().Int()
			is = is && ok && n <= maxOperand
		}
	}
	x.fixed[v] = is
	return is
}

// named are attributes, as name and value in turn.
func named(pairs ...any) []types.Named {
	var out []types.Named
	for i := 0; i < len(pairs); i += 2 {
		var v types.Attr
		switch x := pairs[i+1].(type) {
		case []int:
			v = op.IntList(x...)
		case int:
			v = types.Int{V: int64(x)}
		case float64:
			v = types.Float{V: x}
		case bool:
			v = types.Bool(x)
		case string:
			v = types.Keyword(x)
		case types.Attr:
			v = x
		}
		out = append(out, types.Named{Name: pairs[i].(string), Value: v})
	}
	return out
}

// As is the *Error in err, nil where there is none.
func As(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}
