package interp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"dmir/compile/tensor"
	"dmir/dialect/flatten"
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// Options are the options of a run; the zero value is usable.
type Options struct {
	Bind    map[string]int64 // values of symbolic sizes
	Threads int              // 0 is one for each core
	Memory  int64            // bytes that live tensors may take; 0 is three quarters of the machine's, less the arguments

	Device *Device // among those that run the function together; nil: it runs alone

	// Progress is called with the part of the function that is done, in units of
	// expected time with the sum total, and the current op: after every op, and
	// at most every 20 ms during a long one. It is never called concurrently.
	Progress func(done, total int, op *ir.Op)

	// Results is called with the results of each op, including those in regions
	// and called functions, before they are read; it may change them.
	Results func(op *ir.Op, results []*tensor.Tensor)
}

// Result is the outcome of a run.
type Result struct {
	Outputs []*tensor.Tensor
	Ops     []Timing // in the order of first execution; nested ops after their parent
	Bind    map[string]int64
	Peak    int64 // most bytes of host memory that live tensors took at one time
}

// Timing is the time of one op.
type Timing struct {
	Op    *ir.Op
	Ns    int64 // of all executions together, nested ops included
	Count int   // executions
	Depth int   // 0 for ops of the function's body, one more in each region or called function
	Bytes int64 // size of the results of one execution, in their element types
}

// Run computes fn of m on args; of arguments and results that are tuples these are
// the tensors (package flatten). A failure at an op is a *Error; a cancelled
// context gives its own error within about 100 ms.
func Run(ctx context.Context, m *ir.Module, fn *ir.Func, args []*tensor.Tensor, opts Options) (res *Result, err error) {
	if fn.Body == nil {
		return nil, errorAt(fn.Op, "DM703", "give it a body", "@%s is only declared", fn.Name)
	}
	m, fn, from := flatten.In(m, fn)
	if len(args) != len(fn.Args) {
		return nil, errorAt(fn.Op, "DM702", "", "@%s takes %d inputs, got %d", fn.Name, len(fn.Args), len(args))
	}
	p, release := newPool(ctx, opts.Threads)
	defer release()
	x := &machine{
		pool: p, ctx: ctx, module: m, opts: opts, apart: op.OnlyOf(fn.Op) != nil,
		limit:  memoryLimit(opts.Memory),
		dying:  map[*ir.Block][][]*ir.Value{},
		timing: map[*ir.Op]int{}, gradients: map[*ir.Op]gradient{},
	}
	if opts.Memory <= 0 {
		for _, a := range args {
			if a != nil {
				x.limit -= StorageBytes(a.Elem, a.Len())
			}
		}
	}
	x.planProgress(fn)
	defer func() {
		if r := recover(); r != nil {
			msg, _, _ := strings.Cut(fmt.Sprint(r), "\n")
			err = errorAt(x.now, "DM708", "", "the reference executor failed: %s", msg)
		}
		if ctx.Err() != nil {
			res, err = nil, context.Cause(ctx)
		}
	}()
	f := &frame{bind: op.Bindings(fn, opts.Bind), env: map[*ir.Value]*tensor.Tensor{}}
	for i := range args {
		if err := checkArg(fn, i, args[i], f.bind); err != nil {
			return nil, err
		}
	}
	if outside := op.BeyondLimits(fn.Op, f.bind); outside != "" {
		return nil, errorAt(fn.Op, "DM702", "", "@%s: %s", fn.Name, outside)
	}
	outs, err := x.block(f, fn.Body, args)
	if err != nil {
		return nil, err
	}
	return &Result{Outputs: outs, Ops: timings(x.timings, from), Bind: f.bind, Peak: x.peak}, nil
}

// timings is ts with the ops of the program in place of those made of them.
func timings(ts []Timing, from flatten.From) []Timing {
	if len(from) == 0 {
		return ts
	}
	var out []Timing
	at := map[*ir.Op]int{}
	for _, t := range ts {
		t.Op = from.Of(t.Op)
		i, seen := at[t.Op]
		if !seen {
			at[t.Op] = len(out)
			out = append(out, t)
			continue
		}
		out[i].Ns += t.Ns
		out[i].Bytes += t.Bytes
	}
	return out
}

// machine is the state of one run.
type machine struct {
	*pool
	ctx    context.Context
	module *ir.Module
	opts   Options

	now    *ir.Op // the current op, for messages
	depth  int    // of regions and calls
	calls  int
	around []*Place // the loops and calls that run, the outermost first

	limit, live, peak int64
	dying             map[*ir.Block][][]*ir.Value
	gradients         map[*ir.Op]gradient         // by dm.grad
	stores            map[*ir.Op]*tensor.Tensor   // of constants in files
	apart             bool                        // other devices run other functions
	ready             map[parcel][]*tensor.Tensor // what was sent and not yet fetched

	timing  map[*ir.Op]int // index into timings
	timings []Timing

	progress progress
}

// frame is one activation of a function: the values that are live and the
// symbols that are bound.
type frame struct {
	bind map[string]int64
	env  map[*ir.Value]*tensor.Tensor
}

// block runs b with args as its arguments and returns the terminator's
// operands.
func (x *machine) block(f *frame, b *ir.Block, args []*tensor.Tensor) ([]*tensor.Tensor, error) {
	if len(b.Ops) == 0 {
		return nil, errorAt(x.now, "DM703", "", "a region without ops cannot run")
	}
	if len(args) != len(b.Args) {
		return nil, errorAt(x.now, "DM704", "", "a region takes %d values, got %d", len(b.Args), len(args))
	}
	for i, a := range b.Args {
		f.env[a] = args[i]
	}
	dying, ok := x.dying[b]
	if !ok {
		dying = lastUses(b)
		x.dying[b] = dying
	}
	var outs []*tensor.Tensor
	for i, o := range b.Ops {
		if x.stopped() {
			return nil, context.Cause(x.ctx)
		}
		if i == len(b.Ops)-1 {
			var err error
			if outs, err = x.terminator(f, o); err != nil {
				return nil, err
			}
		} else if err := x.op(f, o); err != nil {
			return nil, err
		}
		for _, v := range dying[i] {
			x.live -= hostBytes(v, f.env[v])
			delete(f.env, v)
		}
	}
	return outs, nil
}

func (x *machine) terminator(f *frame, o *ir.Op) ([]*tensor.Tensor, error) {
	if o.Name != op.Return && o.Name != op.Yield {
		return nil, errorAt(o, "DM703", "", "a block must end in return or dm.yield to run, not in %s", o.Name)
	}
	return x.operands(f, o)
}

func (x *machine) operands(f *frame, o *ir.Op) ([]*tensor.Tensor, error) {
	in := make([]*tensor.Tensor, len(o.Operands))
	for i, v := range o.Operands {
		t, ok := f.env[v]
		if !ok {
			return nil, errorAt(o, "DM703", "", "%s has no value here", v.Name)
		}
		in[i] = t
	}
	return in, nil
}

// hostBytes is the memory of a value; a view has none of its own, and arguments
// belong to the caller.
func hostBytes(v *ir.Value, t *tensor.Tensor) int64 {
	if t == nil || v.Op == nil || op.Of(v.Op).Is(op.View) {
		return 0
	}
	return StorageBytes(t.Elem, t.Len())
}

// op runs one op and stores its results.
func (x *machine) op(f *frame, o *ir.Op) error {
	x.now = o
	run, ok := executors[o.Name]
	if !ok {
		return errorAt(o, "DM703", "", "%s cannot be run by the reference executor", o.Name)
	}
	in, err := x.operands(f, o)
	if err != nil {
		return err
	}
	if err := x.reserve(f, o); err != nil {
		return err
	}
	slot := x.startTiming(o)
	start := time.Now()
	x.progress.begin(x, o)
	x.depth++
	out, nothing := x.nothing(f, o)
	if !nothing {
		out, err = run(&call{machine: x, frame: f, op: o, in: in})
	}
	x.depth--
	x.now = o
	if err != nil {
		var e *Error
		if errors.As(err, &e) && e.Span.Len() == 0 {
			e.Span = o.Head
		}
		return err
	}
	if x.stopped() {
		return context.Cause(x.ctx)
	}
	if len(out) < len(o.Results) {
		return errorAt(o, "DM704", "", "%s returned %d results, expected %d", o.Name, len(out), len(o.Results))
	}
	if x.opts.Results != nil {
		x.opts.Results(o, out)
	}
	t := &x.timings[slot]
	t.Ns += time.Since(start).Nanoseconds()
	t.Count++
	t.Bytes = 0
	for i, v := range o.Results {
		if err := fits(f, o, v, out[i]); err != nil {
			return err
		}
		f.env[v] = out[i]
		t.Bytes += out[i].Bytes()
		x.live += hostBytes(v, out[i])
	}
	x.peak = max(x.peak, x.live)
	x.progress.end(x, o)
	return nil
}

// nothing are the results of o where none has elements, and so nothing is computed.
func (x *machine) nothing(f *frame, o *ir.Op) (out []*tensor.Tensor, ok bool) {
	d := op.Of(o)
	if d == nil || !d.Is(op.Pure) || d.Is(op.Terminator) || len(o.Regions) > 0 || len(o.Results) == 0 {
		return nil, false
	}
	for _, v := range o.Results {
		t := v.Tensor()
		if t == nil {
			return nil, false
		}
		shape, bad := shapeOf(t, f.bind)
		if bad != nil || !slices.Contains(shape, 0) {
			return nil, false
		}
		out = append(out, tensor.New(t.Elem, shape...))
	}
	return out, true
}

// fits checks a result against its type and binds open sizes. Bare element
// types are not checked: a scalar region runs on whole tensors at once.
func fits(f *frame, o *ir.Op, v *ir.Value, t *tensor.Tensor) error {
	want := v.Tensor()
	if want == nil {
		return nil
	}
	if t.Elem != want.Elem || !unify(want, t.Shape, f.bind) {
		return errorAt(o, "DM704", "", "%s returned %s, but its type is %s", o.Name, t.Type(), want.Bound(f.bind))
	}
	return nil
}

// reserve returns an error for results that do not fit into memory, before it
// is allocated.
func (x *machine) reserve(f *frame, o *ir.Op) error {
	var sum int64
	for _, v := range o.Results {
		t := v.Tensor()
		if t == nil {
			continue
		}
		shape, bad := shapeOf(t, f.bind)
		if bad != nil {
			continue
		}
		n, ok := tensor.Count(shape)
		if !ok || StorageBytes(t.Elem, n) > x.limit-x.live-sum {
			return errorAt(o, "DM705", "", "%s does not fit: live tensors take %.3g GB of the %.3g GB allowed", t, float64(x.live)/1e9, float64(x.limit)/1e9)
		}
		sum += StorageBytes(t.Elem, n)
	}
	return nil
}

func (x *machine) startTiming(o *ir.Op) int {
	slot, ok := x.timing[o]
	if !ok {
		slot = len(x.timings)
		x.timing[o] = slot
		x.timings = append(x.timings, Timing{Op: o, Depth: x.depth})
	}
	return slot
}
