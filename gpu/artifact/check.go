package artifact

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// Alignment is the alignment of buffers in bytes.
const Alignment = 256

// The limits that Check enforces. Those of devices with older architectures are
// lower.
const (
	maxKernels  = 1 << 14
	maxSteps    = 1 << 14
	maxBuffers  = 1 << 15
	maxStreams  = 64
	maxParams   = 4096 // bytes of a kernel's parameters
	maxVariants = 16
	maxScratch  = 1 << 30
	maxErrors   = 8 // that are reported
)

// Check reports what is wrong with a program: a buffer outside of the workspace
// or over another that is in use, a step whose arguments are not what its kernel
// takes, a value that is read before it is written, two steps that may run at
// the same time though one needs what the other writes. A program without
// errors can be run by any device without harm to memory that is not its own, if
// its kernels stay within their buffers.
func (p *Program) Check() error {
	c := &checker{p: p}
	c.program()
	if len(c.errs) == 0 {
		c.kernels()
		c.buffers()
		c.views()
	}
	if len(c.errs) == 0 {
		c.divided()
	}
	if len(c.errs) == 0 && p.Stages != nil {
		c.stages()
		c.described()
		return errors.Join(c.errs...)
	}
	if len(c.errs) == 0 {
		c.steps()
	}
	if len(c.errs) == 0 { // the checks that follow use indices
		c.rounds()
	}
	if len(c.errs) == 0 { // and parts
		c.lifetimes()
		c.order()
	}
	if len(c.errs) == 0 {
		c.variants()
	}
	return errors.Join(c.errs...)
}

// described checks what is said of the inputs and the outputs.
func (c *checker) described() {
	p := c.p
	if len(p.Defaults) > 0 && len(p.Defaults) != len(p.Inputs) || len(p.Results) > 0 && len(p.Results) != len(p.Outputs) {
		c.errorf("%d defaults of %d inputs, %d names of %d outputs", len(p.Defaults), len(p.Inputs), len(p.Results), len(p.Outputs))
	}
	c.state()
	c.expectations()
}

// variants checks each variant, and that it has the inputs and outputs of p.
func (c *checker) variants() {
	p := c.p
	c.described()
	if len(p.Variants) > maxVariants {
		c.errorf("%d variants; %d is the most", len(p.Variants), maxVariants)
		return
	}
	for i, v := range p.Variants {
		switch {
		case len(v.Variants) > 0:
			c.errorf("variant %d has variants", i)
		case v.Arch() == "":
			c.errorf("variant %d has no architecture of its own", i)
		default:
			if err := v.Check(); err != nil {
				c.errorf("variant %d: %w", i, firstOf(err))
			} else if !p.sameShape(v) {
				c.errorf("variant %d has other inputs or outputs", i)
			}
		}
	}
}

// state checks that results and the inputs that they are carried to have the
// same bytes, and that each input has one result.
func (c *checker) state() {
	p := c.p
	if len(p.State) > 0 && len(p.State) != len(p.Outputs) {
		c.errorf("state of %d outputs, and there are %d", len(p.State), len(p.Outputs))
		return
	}
	taken := map[int]bool{}
	for i, in := range p.State {
		if in < 0 {
			continue
		}
		if in >= len(p.Inputs) || taken[in] {
			c.errorf("output %d is the state of input %d, which is none or has another", i, in)
			return
		}
		taken[in] = true
		from, to, view := &p.Buffers[p.Outputs[i]], &p.Buffers[p.Inputs[in]], p.ResultView(i)
		if from.Elem != to.Elem || from.Size() != to.Size() || !slices.Equal(view.Shape, to.Shape) || !sameOrder(view.Order, to.Order) {
			c.errorf("output %d is the state of input %s and has another type", i, to.Name)
		}
	}
}

// sameOrder reports whether two orders of dimensions are equal; nil is row-major.
func sameOrder(a, b []int) bool {
	for i := range max(len(a), len(b)) {
		x, y := i, i
		if a != nil {
			x = a[i]
		}
		if b != nil {
			y = b[i]
		}
		if x != y {
			return false
		}
	}
	return true
}

// sameShape reports whether q has the inputs, outputs and state of p.
func (p *Program) sameShape(q *Program) bool {
	if !slices.Equal(p.State, q.State) || !reflect.DeepEqual(p.Divided, q.Divided) {
		return false
	}
	same := func(a, b []int) bool {
		return slices.EqualFunc(a, b, func(i, j int) bool {
			x, y := &p.Buffers[i], &q.Buffers[j]
			return x.Elem == y.Elem && slices.Equal(x.Shape, y.Shape) && slices.Equal(x.Order, y.Order)
		})
	}
	if !same(p.Inputs, q.Inputs) || !same(p.Outputs, q.Outputs) {
		return false
	}
	for i := range p.Outputs {
		if x, y := p.ResultView(i), q.ResultView(i); !slices.Equal(x.Shape, y.Shape) || !slices.Equal(x.Order, y.Order) {
			return false
		}
	}
	return true
}

type checker struct {
	p    *Program
	errs []error
}

func (c *checker) errorf(format string, args ...any) {
	if len(c.errs) < maxErrors {
		c.errs = append(c.errs, fmt.Errorf(format, args...))
	}
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (c *checker) program() {
	p := c.p
	for _, l := range []struct {
		what    string
		n, most int
	}{{"kernels", len(p.Kernels), maxKernels}, {"steps", len(p.Steps), maxSteps}, {"buffers", len(p.Buffers), maxBuffers}} {
		if l.n > l.most {
			c.errorf("the program has %d %s; %d is the most", l.n, l.what, l.most)
		}
	}
	if p.Workspace < 0 {
		c.errorf("the workspace has %d bytes", p.Workspace)
	}
	for what, list := range map[string][]int{"input": p.Inputs, "output": p.Outputs} {
		for i, b := range list {
			if b < 0 || b >= len(p.Buffers) {
				c.errorf("%s %d is buffer %d of %d", what, i, b, len(p.Buffers))
			} else if what == "input" && p.Buffers[b].Kind != Input {
				c.errorf("input %d is the buffer %s, which is of kind %s", i, p.Buffers[b].Name, p.Buffers[b].Kind)
			}
		}
	}
	seen := map[int]bool{}
	for i, b := range p.Inputs {
		if seen[b] {
			c.errorf("input %d is the buffer of another input", i)
		}
		seen[b] = true
	}
}

func (c *checker) kernels() {
	lines := strings.Count(c.p.Source, "\n") + 1
	names := map[string]bool{}
	for _, k := range c.p.Kernels {
		bad := func(format string, args ...any) {
			c.errorf("kernel %s: %s", k.Name, fmt.Sprintf(format, args...))
		}
		if !identifier.MatchString(k.Name) {
			c.errorf("%q is not a valid name for a kernel", k.Name)
		}
		if names[k.Name] {
			bad("there are two of this name")
		}
		names[k.Name] = true
		if !architecture.MatchString(k.Arch) {
			bad("%q is not an architecture", k.Arch)
		}
		if k.Scratch < 0 || k.Scratch > maxScratch {
			bad("%d bytes of memory for each thread; %d is the most", k.Scratch, int64(maxScratch))
		}
		k.Block.check(bad)
		if k.First < 0 || k.Last < k.First || k.Last > lines {
			bad("lines %d to %d of a source of %d lines", k.First, k.Last, lines)
		}
		size := 0
		for _, param := range k.Params {
			switch param.Mode {
			case In, Out, InOut:
				size += 8
			case Map:
				size = (size+127)/128*128 + 128
			default:
				bad("parameter %s has the mode %q", param.Name, param.Mode)
			}
			if _, ok := elemBytes[param.Elem]; !ok {
				bad("parameter %s has the element type %q", param.Name, param.Elem)
			}
		}
		if size > maxParams {
			bad("%d bytes of parameters; %d is the most", size, maxParams)
		}
	}
}

func (c *checker) buffers() {
	for _, b := range c.p.Buffers {
		bad := func(format string, args ...any) {
			c.errorf("buffer %s: %s", b.Name, fmt.Sprintf(format, args...))
		}
		elem, ok := elemBytes[b.Elem]
		if !ok {
			bad("the element type %q", b.Elem)
			continue
		}
		n, ok := b.Len()
		if !ok || n > (1<<62)/elem {
			bad("no shape: %v", b.Shape)
			continue
		}
		if b.Bytes < b.Size() {
			bad("%d bytes for %d elements of %s", b.Bytes, n, b.Elem)
		}
		if b.Offset < 0 || b.Offset%Alignment != 0 {
			bad("offset %d, which is not a multiple of %d", b.Offset, Alignment)
		}
		if b.Bytes < 0 || b.Offset > c.p.Workspace || b.Bytes > c.p.Workspace-b.Offset {
			bad("bytes %d to %d of a workspace of %d", b.Offset, b.Offset+b.Bytes, c.p.Workspace)
		}
		if b.Order != nil && !permutation(b.Order, len(b.Shape)) {
			bad("%v is not an order of %d dimensions", b.Order, len(b.Shape))
		}
		if b.First < -1 || b.Last > len(c.p.Steps) || b.First > b.Last {
			bad("lives from step %d to step %d of %d", b.First, b.Last, len(c.p.Steps))
		}
		switch b.Kind {
		case Constant:
			if int64(len(b.Data)) != b.Size() {
				bad("%d bytes of data for %d elements of %s", len(b.Data), n, b.Elem)
			}
		case Input, Output, Temp:
			if b.Data != nil {
				bad("data, though it is of kind %s", b.Kind)
			}
		default:
			bad("the kind %q", b.Kind)
		}
	}
}

// views checks that the views of results have as many elements as their buffers.
func (c *checker) views() {
	p := c.p
	if len(p.Views) > len(p.Outputs) {
		c.errorf("%d views of %d outputs", len(p.Views), len(p.Outputs))
		return
	}
	for i, v := range p.Views {
		if v == nil {
			continue
		}
		b := p.Buffers[p.Outputs[i]]
		have, _ := b.Len()
		seen := Buffer{Shape: v.Shape}
		switch n, ok := seen.Len(); {
		case !ok || n != have:
			c.errorf("output %d: the view %v of the %d elements of the buffer %s", i, v.Shape, have, b.Name)
		case v.Order != nil && !permutation(v.Order, len(v.Shape)):
			c.errorf("output %d: %v is not an order of %d dimensions", i, v.Order, len(v.Shape))
		}
	}
}

func permutation(order []int, rank int) bool {
	seen := make([]bool, rank)
	for _, d := range order {
		if d < 0 || d >= rank || seen[d] {
			return false
		}
		seen[d] = true
	}
	return len(order) == rank
}

func (c *checker) steps() {
	p := c.p
	names := map[string]bool{}
	for i := range p.Steps {
		s := &p.Steps[i]
		bad := func(format string, args ...any) {
			c.errorf("step %d (%s): %s", i, s.Name, fmt.Sprintf(format, args...))
		}
		if names[s.Name] {
			bad("there are two of this name")
		}
		names[s.Name] = true
		if s.Stream < 0 || s.Stream >= maxStreams {
			bad("stream %d; there are %d", s.Stream, maxStreams)
		}
		for _, w := range s.Waits {
			if w < 0 || w >= i {
				bad("waits for step %d, which is none before it", w)
			}
		}
		switch s.Kind {
		case StepLaunch:
			c.launch(bad, s)
		case StepFill, StepCopy:
			c.move(bad, s)
		case StepLoop, StepRepeat, StepBranch:
			c.decision(bad, s)
		case StepCollective:
			c.collective(bad, s)
		default:
			bad("no kind of steps is %q", s.Kind)
		}
		if s.Kind != StepLaunch && (s.Launch.Kernel != 0 || s.Launch.Grid != Grid{} || s.Launch.Args != nil) {
			bad("a launch, though it is a %s", s.Kind)
		}
		if s.Kind != StepFill && s.Kind != StepCopy && s.Move != (Move{}) {
			bad("buffers to move, though it is a %s", s.Kind)
		}
		if s.Kind != StepCollective && !s.Collective.empty() {
			bad("a collective, though it is a %s", s.Kind)
		}
		if !s.Decides() && s.Decision != (Decision{}) {
			bad("parts, though it decides nothing")
		}
	}
}

// has reports whether there is a buffer of this number.
func (c *checker) has(bad func(string, ...any), buffer int) bool {
	if buffer < 0 || buffer >= len(c.p.Buffers) {
		bad("an argument is buffer %d of %d", buffer, len(c.p.Buffers))
		return false
	}
	return true
}

// launch checks the arguments of a launch against the kernel's parameters.
func (c *checker) launch(bad func(string, ...any), s *Step) {
	l := &s.Launch
	for _, a := range l.Args {
		if !c.has(bad, a.Buffer) {
			return
		}
	}
	if l.Kernel < 0 || l.Kernel >= len(c.p.Kernels) {
		bad("launches kernel %d of %d", l.Kernel, len(c.p.Kernels))
		return
	}
	k := &c.p.Kernels[l.Kernel]
	l.Grid.check(bad, &k.Block)
	if len(l.Args) != len(k.Params) {
		bad("%d arguments for the %d parameters of %s", len(l.Args), len(k.Params), k.Name)
		return
	}
	for j, a := range l.Args {
		c.argument(bad, k.Params[j], a)
	}
	c.alone(bad, k.Params, l.Args)
}

// move checks the fields of a fill or a copy.
func (c *checker) move(bad func(string, ...any), s *Step) {
	if !c.has(bad, s.Move.To) || !c.has(bad, s.Move.From) {
		return
	}
	to, from := &c.p.Buffers[s.Move.To], &c.p.Buffers[s.Move.From]
	switch {
	case s.Kind == StepFill && to.Kind == Constant:
		bad("fills the constant %s", to.Name)
	case s.Kind == StepFill && s.Move.From != 0:
		bad("a fill moves from no buffer")
	case s.Kind == StepFill:
	case s.Move.To == s.Move.From:
		bad("a copy has two buffers")
	default:
		if to.Kind == Constant {
			bad("writes the constant %s", to.Name)
		}
		if to.Size() != from.Size() {
			bad("copies the %d bytes of %s to the %d of %s", from.Size(), from.Name, to.Size(), to.Name)
		}
	}
}

// alone requires that a buffer that a kernel writes is passed as one parameter: in
// place, one of mode InOut. Loads through mode In and through maps may use caches
// that do not observe the kernel's own writes.
func (c *checker) alone(bad func(string, ...any), params []Param, args []Arg) {
	for i, a := range args {
		for j := range i {
			p, q := params[j], params[i]
			if args[j].Buffer == a.Buffer && (p.Mode == Out || p.Mode == InOut || q.Mode == Out || q.Mode == InOut) {
				bad("%s and %s are both the buffer %s, which one of them writes", p.Name, q.Name, c.p.Buffers[a.Buffer].Name)
			}
		}
	}
}

// argument checks one argument against its parameter.
func (c *checker) argument(bad func(string, ...any), param Param, a Arg) {
	b := &c.p.Buffers[a.Buffer]
	if (param.Mode == Map) != (a.Map != nil) {
		bad("parameter %s of mode %s and the argument do not agree on a tensor map", param.Name, param.Mode)
		return
	}
	if b.Elem != param.Elem {
		bad("parameter %s is of %s, the buffer %s of %s", param.Name, param.Elem, b.Name, b.Elem)
	}
	if b.Kind == Constant && (param.Mode == Out || param.Mode == InOut) {
		bad("writes the constant %s", b.Name)
	}
	if a.Map == nil {
		return
	}
	if err := a.Map.check(b); err != nil {
		bad("the tensor map of parameter %s: %v", param.Name, err)
	}
}
