package cuda

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"dmir/analysis/cost"
	"dmir/compile/kernel"
	"dmir/compile/pass"
	"dmir/compile/schedule"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
	"dmir/internal/escape"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// Codes lists the diagnostics of the package.
var Codes = diag.Register([]diag.Code{
	{Code: "DM850", Name: "no-kernel", Doc: "A kernel contains ops that cannot run as one kernel: reductions over different rows, a contraction whose result is reduced, or an op that has a kernel of its own.", Help: "take ops out of the kernel, or let `dmir opt` fuse it again"},
	{Code: "DM851", Name: "scratch", Doc: "A kernel needs more scratch memory than `dm.scratch` of its step reserves, so it would overwrite other values of the plan. The pass kernels writes the attribute; it is too small if it or the tile (`dm.tile`) was edited afterwards.", Help: "run the passes kernels and plan again, or write the number that the message gives and run plan"},
	{Code: "DM852", Name: "unsound-kernel", Doc: "The code generator made a kernel that reads a value before it is computed. This is a bug in dmir, not in the program; the kernel is refused, and its text is part of the message.", Help: "report the program and this message; `dmir run --device reference` runs it without kernels"},
})

// formOf is the form of the step o, a dm.kernel or a single op.
func formOf(p *op.InPlace, o *ir.Op) (f *kernel.Form, results []*ir.Value, err error) {
	over := kernel.Updating(p, o)
	if o.Name != op.Kernel {
		f, err = kernel.OfOver([]*ir.Op{o}, o.Results, over)
		return f, o.Results, wrap(o, err)
	}
	body := o.Body(0)
	last := body.Terminator()
	var outs []*ir.Value
	for i, v := range last.Operands {
		if slices.Contains(outs, v) {
			return nil, nil, failure(o, "the kernel yields %s twice", v.Name)
		}
		outs, results = append(outs, v), append(results, o.Results[i])
	}
	f, err = kernel.OfOver(body.Ops[:len(body.Ops)-1], outs, over)
	return f, results, wrap(o, err)
}

func wrap(o *ir.Op, err error) error {
	if err == nil {
		return nil
	}
	if u, ok := err.(*invalidError); ok {
		return pass.Errorf(o, "DM852", "%v", u)
	}
	if r, ok := err.(*kernel.Reason); ok && r.Op != nil && r.Op.Span != (source.Span{}) {
		o = r.Op
	}
	return failure(o, "%v", err)
}

func failure(o *ir.Op, format string, args ...any) error {
	return pass.Errorf(o, "DM850", format, args...)
}

// Plan chooses how each kernel of u's body runs and records the bytes of its
// partial results, for the memory plan.
func (c codegen) Plan(u *pass.Unit) error {
	target, err := c.target(u)
	if err != nil {
		return err
	}
	body := u.Body()
	var inPlace op.InPlace
	var steps []*ir.Op
	for _, o := range slices.Clone(body.Ops) {
		if !runs(o) || pass.Controls(o) || o.Name == op.Empty {
			continue
		}
		placeConstants(o)
		o.RemoveAttr(cost.ScratchReadAttr)
		o.RemoveAttr(cost.ScratchWrittenAttr)
		steps = append(steps, o)
	}
	costs := cost.Block(body.Block, u.Func, u.Module, u.Options.Bind)
	flow := cost.NewFlow(u.Func, u.Module, u.Options.Bind)
	for i, o := range steps {
		if err := u.Step(i, len(steps)); err != nil {
			return err
		}
		f, _, err := formOf(&inPlace, o)
		if err != nil {
			return err
		}
		p, err := target.plan(f, options{tile: o.Str(cost.TileAttr)})
		if err != nil {
			return wrap(o, err)
		}
		ls, err := p.launches()
		if err != nil {
			return wrap(o, err)
		}
		if tile, _ := p.tile(); tile != "" {
			o.SetAttr(cost.TileAttr, types.Str(tile))
		}
		if n := p.scratch(); n > 0 {
			o.SetAttr(schedule.ScratchAttr, types.Int{V: n})
		}
		if e := costs[o]; e != nil {
			setScratchBytes(o, e, launchBytes(o, p, ls, flow))
		}
	}
	return nil
}

// runs reports whether o, an op of a function's body, is a step.
func runs(o *ir.Op) bool {
	return len(o.Results) > 0 && o.Name != op.Constant && !op.IsView(o)
}

func aligned(n int64) int64 { return (n + schedule.Align - 1) &^ (schedule.Align - 1) }

// generate returns the artifact of u's function, on which all passes have run.
func generate(u *pass.Unit, target Target) (*artifact.Program, error) {
	m, fn := u.Module, u.Func
	if err := schedule.Check(fn); err != nil { // the text may have been edited
		return nil, err
	}
	body := pass.BodyOf(fn)
	s, err := schedule.Read(body)
	if err != nil {
		return nil, err
	}
	if err := u.Step(0, len(body.Ops)); err != nil {
		return nil, err
	}
	b := &builder{
		target: target, unit: u, level: level{body: body, schedule: s}, buffer: map[*ir.Value]int{}, kernels: map[string]int{}, used: map[string]bool{},
		costs: cost.Block(body.Block, fn, m, nil), flow: cost.NewFlow(fn, m, nil),
		out: &artifact.Program{Name: fn.Name, Target: Backend{}.Name(), Workspace: s.Workspace},
	}
	if m.Src != nil {
		b.source, b.out.File = m.Src, m.Src.Path
	}
	if err := b.block(); err != nil {
		return nil, err
	}
	for _, v := range fn.Args {
		b.out.Inputs = append(b.out.Inputs, b.buffer[v])
	}
	if err := b.outputs(fn); err != nil {
		return nil, err
	}
	b.setLifetimes(len(b.out.Steps))
	b.finish()
	return b.out, nil
}

// block adds the buffers and the steps of the current level.
func (b *builder) block() error {
	if err := b.buffers(); err != nil {
		return err
	}
	for i, st := range b.schedule.Steps {
		err := context.Cause(b.unit.Context())
		if !b.body.IsRegion() {
			err = b.unit.Step(i, len(b.schedule.Steps))
		}
		if err != nil {
			return err
		}
		add := b.step
		switch {
		case pass.Controls(st.Op):
			add = b.control
		case st.Op.Name == op.Empty:
			add = b.empty
		}
		if err := add(i, st); err != nil {
			return err
		}
	}
	return nil
}

// builder makes the artifact of a scheduled function.
type builder struct {
	target Target
	level
	unit    *pass.Unit
	buffer  map[*ir.Value]int
	kernels map[string]int // by declaration and body
	used    map[string]bool
	texts   []*text // of the artifact's kernels
	places  []int   // the default line of the program for each text
	costs   map[*ir.Op]*cost.Entry
	flow    *cost.Flow
	source  *source.File // of the program; nil: it has none
	out     *artifact.Program
	// floor is the step after the last decision or the last boundary of one of
	// its parts.
	floor int
}

// level is a body: that of the function, or of a region.
type level struct {
	body     pass.Body
	schedule *schedule.Schedule
	inPlace  op.InPlace
	base     int64 // where its memory begins
	// steps is the first and last step of the artifact for each of the schedule's.
	steps [][2]int
	own   []int // its buffers, with live ranges in steps of the schedule
}

// buffers adds the buffers of the memory plan.
func (b *builder) buffers() error {
	region := b.body.IsRegion()
	over := b.overwritten()
	for _, p := range b.schedule.Buffers {
		if p.Value == nil {
			continue
		}
		if region && p.Kind == artifact.Input { // it belongs to the enclosing level
			for _, v := range p.Views {
				b.buffer[v] = b.buffer[p.Value]
			}
			continue
		}
		if region && p.Kind == artifact.Output {
			p.Kind = artifact.Temp
		}
		if in := over[p.Value]; in != nil {
			b.shareBuffer(p, in)
			continue
		}
		buf := bufferOf(p)
		buf.Offset += b.base
		if p.Offset < 0 { // a tensor of the host is copied to the device with the inputs
			buf.Bytes = buf.Size()
			buf.Offset = b.out.Workspace
			b.out.Workspace += aligned(buf.Bytes)
		}
		if p.Kind == artifact.Constant {
			data, err := constantBytes(p.Value)
			if err != nil {
				return err
			}
			buf.Data = data
		}
		n := len(b.out.Buffers)
		b.buffer[p.Value] = n
		for _, v := range p.Views {
			b.buffer[v] = n
		}
		b.own = append(b.own, n)
		b.out.Buffers = append(b.out.Buffers, buf)
	}
	return nil
}

// outputs sets the buffers that fn returns.
func (b *builder) outputs(fn *ir.Func) error {
	for _, v := range fn.Body.Terminator().Operands {
		n, ok := b.buffer[v]
		if !ok {
			return failure(fn.Body.Terminator(), "%s, which is returned, has no buffer", v.Name)
		}
		b.out.Outputs = append(b.out.Outputs, n)
		shape, _ := kernel.ShapeOf(v)
		var order []int
		if t := v.Tensor(); t != nil {
			order = t.At.Order
		}
		if buf := b.out.Buffers[n]; !slices.Equal(buf.Shape, shape) || !slices.Equal(buf.Order, order) {
			b.out.Views = append(b.out.Views, make([]*artifact.View, len(b.out.Outputs)-1-len(b.out.Views))...)
			b.out.Views = append(b.out.Views, &artifact.View{Shape: shape, Order: order})
		}
	}
	return nil
}

// bufferOf is a buffer of the memory plan with memory of its own.
func bufferOf(p schedule.Buffer) artifact.Buffer {
	shape, _ := kernel.ShapeOf(p.Value)
	buf := artifact.Buffer{
		Name: strings.TrimPrefix(p.Value.Name, "%"), Elem: p.Value.Elem().String(), Shape: shape, Kind: p.Kind,
		Offset: p.Offset, Bytes: p.Bytes, First: p.First, Last: p.Last,
	}
	if t := p.Value.Tensor(); t != nil {
		buf.Order = t.At.Order
	}
	return buf
}

// constantBytes is the literal of a dm.constant as bytes in memory.
func constantBytes(v *ir.Value) ([]byte, error) {
	d, ok := v.Op.Attr("value").(*types.Dense)
	if !ok {
		return nil, failure(v.Op, "a constant without a literal")
	}
	data, err := d.All()
	if err != nil {
		return nil, pass.Errorf(v.Op, types.MissingArray, "%v", err)
	}
	return data, nil
}

// empty adds no step: updates fill the buffer.
func (b *builder) empty(_ int, st schedule.Step) error {
	n, ok := b.buffer[st.Op.Results[0]]
	if !ok {
		return failure(st.Op, "%s has no buffer", st.Op.Results[0].Name)
	}
	b.out.Buffers[n].Filled = true
	b.steps = append(b.steps, [2]int{len(b.out.Steps), len(b.out.Steps)})
	return nil
}

// step adds the launches of step i of the schedule.
func (b *builder) step(i int, st schedule.Step) error {
	f, results, err := formOf(&b.inPlace, st.Op)
	if err != nil {
		return err
	}
	for k, v := range f.Outputs {
		b.buffer[v] = b.buffer[results[k]]
	}
	name := b.unique(stepName(st.Op))
	over, err := inPlaceResults(st, f, results)
	if err != nil {
		return err
	}
	plan, err := b.target.plan(f, options{tile: st.Op.Str(cost.TileAttr), over: over})
	if err != nil {
		return wrap(st.Op, err)
	}
	ls, err := plan.launches()
	if err != nil {
		return wrap(st.Op, err)
	}
	written, err := texts(ls)
	if err != nil {
		return wrap(st.Op, err)
	}
	if n := plan.scratch(); n > aligned(st.Scratch) {
		return pass.Errorf(st.Op, "DM851", "%s needs %d bytes of scratch memory; %s is %d", stepName(st.Op), n, schedule.ScratchAttr, st.Scratch)
	}
	scratch := map[*temp]int{}
	at := b.base + st.ScratchOffset
	first := len(b.out.Steps)
	for _, t := range plan.temps() {
		scratch[t] = len(b.out.Buffers)
		b.own = append(b.own, len(b.out.Buffers))
		n := t.bytes()
		b.out.Buffers = append(b.out.Buffers, artifact.Buffer{
			Name: fmt.Sprintf("%s.partial%d", name, len(scratch)), Elem: t.elem.String(), Shape: []int64{t.n}, Kind: artifact.Temp,
			Offset: at, Bytes: n, First: i, Last: i,
		})
		at += aligned(n)
	}
	each := launchBytes(st.Op, plan, ls, b.flow)
	for k, l := range ls {
		// The cost model has one kernel: if it differs from the first launch, so do
		// the others.
		step := artifact.Step{Name: name + l.suffix, Kind: artifact.StepLaunch, Stream: st.Stream, Differs: orElse(l.differs, ls[0].differs)}
		var args []artifact.Arg
		for _, p := range l.params {
			var n int
			var ok bool
			if p.temp != nil {
				n, ok = scratch[p.temp], true
			} else {
				n, ok = b.buffer[p.value]
			}
			if !ok {
				return failure(st.Op, "%s has no buffer", p.value.Name)
			}
			args = append(args, artifact.Arg{Buffer: n, Map: p.tmap})
		}
		if step.Differs == "" && b.readsTwice(args, l.params) {
			step.Differs = overlap
		}
		lines := b.lines(st.Op)
		n := b.kernel(written[k], step.Name, lines)
		b.from(n, st.Op)
		step.Lines = slices.Sorted(slices.Values(lines))
		step.Launch = artifact.Launch{Kernel: n, Grid: l.grid, Args: args}
		if k == 0 {
			step.Tile, step.Product = plan.tile()
			for _, w := range st.Waits {
				if last := b.steps[w][1]; last >= b.floor { // else a decision orders them
					step.Waits = append(step.Waits, last)
				}
			}
		}
		if e := b.costs[st.Op]; e != nil && l.suffix == "" {
			step.FLOP, _ = e.FLOP.Int()
			step.ReadBytes, _ = e.Read.Int()
			step.WrittenBytes, _ = e.Written.Int()
			if b.target.Machine != nil {
				step.TimeNs = e.Time(b.target.Machine).Ns
			}
		}
		if each != nil {
			step.ReadBytes, step.WrittenBytes = each[k].read, each[k].written
		}
		b.out.Steps = append(b.out.Steps, step)
	}
	b.steps = append(b.steps, [2]int{first, len(b.out.Steps) - 1})
	return nil
}

// readsTwice reports whether two operands overlap in memory. In a region, views
// of one value are separate inputs.
func (b *builder) readsTwice(args []artifact.Arg, params []param) bool {
	for i, a := range args {
		for k, c := range args[:i] {
			x, y := &b.out.Buffers[a.Buffer], &b.out.Buffers[c.Buffer]
			if params[i].mode == artifact.In && params[k].mode == artifact.In && x.Offset < y.Offset+y.Bytes && y.Offset < x.Offset+x.Bytes {
				return true
			}
		}
	}
	return false
}

// setLifetimes converts the live ranges of the level's buffers from steps of
// the schedule to steps of the artifact; end is the last step of those that
// live to the end.
func (b *builder) setLifetimes(end int) {
	for _, i := range b.own {
		buf := &b.out.Buffers[i]
		if buf.First >= 0 && buf.First < len(b.steps) {
			buf.First = b.steps[buf.First][0]
		}
		if buf.Last >= len(b.steps) {
			buf.Last = end
		} else if buf.Last >= 0 {
			buf.Last = b.steps[buf.Last][1]
		}
	}
}

// lines are the lines of the program of o, a kernel or an op: its own first,
// then those of its ops in order.
func (b *builder) lines(o *ir.Op) []int {
	var out []int
	ir.Walk([]*ir.Op{o}, func(o *ir.Op) bool {
		if line := b.line(o); line > 0 && !slices.Contains(out, line) {
			out = append(out, line)
		}
		return true
	})
	return out
}

func firstOf(lines []int) int {
	if len(lines) == 0 {
		return 0
	}
	return lines[0]
}

// stepName is the name of a step: from the fuse pass, else that of its first
// result.
func stepName(o *ir.Op) string {
	if n := o.Str("dm.name"); n != "" {
		return identifier(n)
	}
	if len(o.Results) > 0 && o.Results[0].Name != "" {
		return identifier(o.Results[0].Name)
	}
	return identifier(strings.TrimPrefix(o.Name, "dm."))
}

func (b *builder) unique(name string) string {
	if reserved[name] {
		name += "_kernel"
	}
	try := name
	for i := 2; b.used[try]; i++ {
		try = fmt.Sprintf("%s_%d", name, i)
	}
	b.used[try] = true
	return try
}

// kernel is the index of the kernel with text t; an equal text is reused.
func (b *builder) kernel(t *text, name string, lines []int) int {
	same := printer{kernel: "k", renamed: map[string]string{}} // compared without names and lines
	for i, p := range t.params {
		same.renamed[string(p.name)] = fmt.Sprintf("$%d", i) // no name of a program
	}
	same.statements(t.before.statements(), 0)
	same.statements([]*stmt{t.kernel()}, 0)
	key := same.b.String() + t.arch
	if n, ok := b.kernels[key]; ok {
		k := &b.out.Kernels[n]
		for _, line := range lines {
			if !slices.Contains(k.Lines, line) {
				k.Lines = append(k.Lines, line)
			}
		}
		return n
	}
	n := len(b.out.Kernels)
	b.kernels[key] = n
	k := artifact.Kernel{
		Name:  fmt.Sprintf("k%d_%s", n, name), // the prefix avoids the names of the C library
		Class: t.class, Block: artifact.Block{Threads: t.threads, Shared: t.shared}, Arch: t.arch, Lines: slices.Clone(lines),
	}
	for _, p := range t.params {
		k.Params = append(k.Params, artifact.Param{Name: string(p.name), Elem: p.elem.String(), Mode: p.mode})
	}
	b.out.Kernels = append(b.out.Kernels, k)
	place := b.line(t.of)
	if place == 0 {
		place = firstOf(lines)
	}
	b.texts, b.places = append(b.texts, t), append(b.places, place)
	return n
}

// finish renders the text of all kernels.
func (b *builder) finish() {
	p := printer{line: b.line, file: b.out.File}
	fmt.Fprintf(&p.b, "// @%s of %s, for %s. Steps run in the order of the kernels.\n", escape.Comment(b.out.Name),
		escape.Comment(orElse(b.out.File, "a program")), escape.Comment(orElse(b.target.Arch, "any architecture")))
	includes := []string{"dm.cuh", "ops.cuh"}
	for _, t := range b.texts {
		for _, inc := range strings.Fields(t.include) {
			if !slices.Contains(includes, inc) {
				includes = append(includes, inc)
			}
		}
	}
	for _, inc := range includes {
		fmt.Fprintf(&p.b, "#include \"%s\"\n", inc)
	}
	line, counted := 1, 0
	lines := func() int {
		line, counted = line+strings.Count(p.b.String()[counted:], "\n"), p.b.Len()
		return line
	}
	for i, t := range b.texts {
		p.b.WriteByte('\n')
		k := &b.out.Kernels[i]
		k.First = lines()
		if b.places[i] > 0 {
			fmt.Fprintf(&p.b, "// %s, from %s\n", t.class, linesText(k.Lines))
		}
		p.kernel, p.lineSet, p.at = k.Name, 0, b.places[i]
		p.statements(t.before.statements(), 0)
		p.at = b.places[i]
		p.statements([]*stmt{t.kernel()}, 0)
		k.Last = lines() - 1
	}
	b.out.Source = p.b.String()
}

func linesText(lines []int) string {
	texts := make([]string, len(lines))
	for i, n := range lines {
		texts[i] = fmt.Sprint(n)
	}
	if len(texts) == 1 {
		return "line " + texts[0]
	}
	return "lines " + strings.Join(texts, ", ")
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
