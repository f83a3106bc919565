package plan

import (
	"fmt"
	"math"
	"slices"

	"dmir/analysis/units"
	"dmir/dialect/dim"
	"dmir/dialect/op"
)

// The axes of a grid, as they are called until a plan tells what they divide.
const (
	dataAxis    = "data"
	contextAxis = "context"
	expertAxis  = "expert"
	tensorAxis  = "tensor"
)

// settings are all meshes, numbers of micro-batches and ways to recompute, for each form of the step.
func (s *search) settings() []setting {
	var out []setting
	for _, f := range s.forms {
		for _, set := range s.settingsOf(f) {
			if set.form, set.at = f, len(out); f.possible(set) {
				out = append(out, set)
			}
		}
	}
	return out
}

func (s *search) settingsOf(of *form) []setting {
	var out []setting
	f := s.o.Fix
	layers := 1
	if of.layers != nil {
		layers = of.layers.count
	}
	if s.given.mesh != nil {
		if s.given.pipe > layers {
			return nil
		}
		for _, micro := range s.micros(of, 1, int64(s.given.pipe)) {
			out = append(out, setting{axes: s.given.axes, pipe: s.given.pipe, micro: micro})
		}
		return out
	}
	for _, pipe := range divisors(int64(s.o.Devices)) {
		if f.Pipe > 0 && int(pipe) != f.Pipe || int(pipe) > layers || pipe > 1 && of.batch < 2 {
			continue
		}
		n := int64(s.o.Devices) / pipe
		third := f.third()
		if n%int64(third.Size) != 0 {
			continue
		}
		n /= int64(third.Size)
		for _, data := range divisors(n) {
			tensor := n / data
			if data == 1 && n > 1 && f.Data == 0 && f.Tensor == 0 {
				continue // one axis: the setting with tensor = 1 has it
			}
			if f.Data > 0 && int(data) != f.Data || f.Tensor > 0 && int(tensor) != f.Tensor {
				continue
			}
			axes := []Axis{{dataAxis, int(data)}, {tensorAxis, int(tensor)}}
			if third.Size > 1 {
				axes = slices.Insert(axes, 1, third)
			}
			for _, micro := range s.micros(of, data, pipe) {
				out = append(out, setting{axes: axes, pipe: int(pipe), micro: micro})
			}
		}
		if f.Context == 0 && f.Expert == 0 {
			out = append(out, s.ofThree(of, pipe)...)
		}
	}
	return out
}

// ofThree are the settings with an unrequested third axis. One along the sequence is looked at where a device has one sample
// of a micro-batch: where it has several, more devices along the data axis can have them.
func (s *search) ofThree(of *form, pipe int64) (out []setting) {
	f := s.o.Fix
	n := int64(s.o.Devices) / pipe
	add := func(name string, third int64) {
		for _, tensor := range divisors(n / third) {
			data := n / third / tensor
			if data == 1 || tensor == 1 || f.Data > 0 && int(data) != f.Data || f.Tensor > 0 && int(tensor) != f.Tensor {
				continue
			}
			samples := data
			if name == expertAxis {
				samples *= third
			}
			if of.batch%samples != 0 {
				continue
			}
			for _, micro := range s.micros(of, samples, pipe) {
				if name == contextAxis && micro*samples != of.batch {
					continue
				}
				out = append(out, setting{axes: []Axis{{dataAxis, int(data)}, {name, int(third)}, {tensorAxis, int(tensor)}}, pipe: int(pipe), micro: micro, roles: true})
			}
		}
	}
	positions, experts := of.divisibleByRole()
	for _, third := range divisors(n)[1:] {
		if positions%third == 0 {
			add(contextAxis, third)
		}
		if experts%third == 0 {
			add(expertAxis, third)
		}
	}
	return out
}

// divisibleByRole are the largest numbers that divide the positions of each attention, and the experts of each contraction that has
// some; 1 where there are none.
func (g *graph) divisibleByRole() (positions, experts int64) {
	with := func(all *int64, size dim.Dim) {
		if k, ok := size.Int(); ok {
			*all = op.GCD(*all, k)
		}
	}
	for _, n := range g.nodes {
		if n.o == nil || !n.micro {
			continue
		}
		if isAttention(n) {
			with(&positions, n.f.Sizes[n.f.Together[0]])
		}
		if isContraction(n) {
			for _, f := range g.experts(n) {
				with(&experts, n.f.Sizes[f])
			}
		}
	}
	return max(positions, 1), max(experts, 1)
}

// third is the axis between data and tensor that f asks for; its size is 1 where it asks for none.
func (f Setting) third() Axis {
	if f.Expert > 1 {
		return Axis{expertAxis, f.Expert}
	}
	return Axis{contextAxis, max(f.Context, 1)}
}

// micros are the numbers of micro-batches to look at: the one that is asked for, else samples divide into them, each is divided over the data
// axis where that is possible, and their size on a device is a power of two.
func (s *search) micros(of *form, data, pipe int64) []int64 {
	if f := int64(s.o.Fix.Microbatches); f > 0 {
		return []int64{f}
	}
	if of.batch == 0 {
		return []int64{1}
	}
	each := of.batch
	if of.batch%data == 0 {
		each = of.batch / data
	}
	var out []int64
	for size := int64(1); size <= each; size *= 2 {
		if each%size == 0 {
			out = append(out, each/size)
		}
	}
	if !slices.Contains(out, 1) {
		out = append(out, 1)
	}
	if pipe > 1 {
		// A pipeline with fewer micro-batches than stages is idle for most of the time, and one with very many gains
		// nothing.
		out = slices.DeleteFunc(out, func(m int64) bool { return m < min(pipe, slices.Max(out)) })
	}
	slices.Sort(out)
	return out
}

func divisors(n int64) (out []int64) {
	for d := int64(1); d*d <= n; d++ {
		if n%d == 0 {
			out = append(out, d)
			if d*d != n {
				out = append(out, n/d)
			}
		}
	}
	slices.Sort(out)
	return out
}

// noSetting is why no mesh can be looked at.
func (s *search) noSetting() error {
	f := s.o.Fix
	asked, sizes := 1, ""
	for _, a := range f.Axes() {
		if a.Size > 0 {
			asked *= a.Size
			sizes += fmt.Sprintf(", %s %d", a.Name, a.Size)
		}
	}
	if s.o.Devices%asked != 0 {
		return &Error{Code: CodeDevices, Msg: fmt.Sprintf("%d devices do not divide into axes of the sizes asked for%s", s.o.Devices, sizes), Help: "leave one of them out, or change --devices"}
	}
	layers := 1
	if s.layers != nil {
		layers = s.layers.count
	}
	if f.Pipe > layers {
		e := &Error{Code: CodeDevices, Msg: fmt.Sprintf("a pipeline of %d stages needs as many equal layers in a row, and @%s has %d", f.Pipe, s.text.Name, layers), Help: "ask for fewer stages"}
		if len(s.wrt) == 0 {
			e.Msg = fmt.Sprintf("@%s states its backward pass itself, as a step of JAX does, and stages need one that dm.grad makes", s.text.Name)
			e.Help = "leave --pipe out, or trace the model of JAX with gradient=\"dmir\""
		}
		return e
	}
	return &Error{Code: CodeDevices, Msg: fmt.Sprintf("%d devices cannot be arranged so that the step divides over them", s.o.Devices), Help: "ask for another number of devices"}
}

// Axes are the axes that f may ask for, and their sizes; 0 is any.
func (f Setting) Axes() []Axis {
	return []Axis{{dataAxis, f.Data}, {contextAxis, f.Context}, {expertAxis, f.Expert}, {tensorAxis, f.Tensor}, {"pipe", f.Pipe}}
}

// asks reports whether f asks for the size of an axis.
func (f Setting) asks() bool {
	return slices.ContainsFunc(f.Axes(), func(a Axis) bool { return a.Size > 0 })
}

// tooLarge is the error where no plan fits.
func (s *search) tooLarge() error {
	if f := s.o.Fix.Recompute; f != "" && f != None && s.layers == nil {
		e := &Error{Code: CodeStated, Msg: fmt.Sprintf("@%s has no equal layers in a row that the backward pass could compute again", s.text.Name), Help: "leave --recompute out"}
		if len(s.wrt) == 0 {
			e.Msg = fmt.Sprintf("@%s states its backward pass itself, and with it what that computes again", s.text.Name)
			e.Help = "leave --recompute out; a step of JAX has jax.checkpoint"
		}
		return e
	}
	if math.IsInf(s.least.bytes, 1) {
		return &Error{Code: CodeDevices, Msg: fmt.Sprintf("the step cannot be divided over %d devices", s.o.Devices), Help: "ask for another number of devices"}
	}
	set := s.least.setting
	lever := "use more devices, or a machine with more memory"
	switch {
	case set.recompute != Full && s.o.Fix.Recompute != "":
		lever = "allow recomputation (--recompute full)"
	case s.o.Fix.asks():
		lever = "leave the sizes of axes out, so that other meshes are searched"
	case s.o.Memory > 0 && s.o.Memory < s.o.Machine.Memory:
		lever = fmt.Sprintf("the machine has %s, and --memory allows %s", units.Bytes(s.o.Machine.Memory), units.Bytes(s.o.Memory))
	}
	return &Error{
		Code: CodeMemory,
		Msg: fmt.Sprintf("no plan fits into %s on each of %d devices: the smallest one (%s, pipe %d, %d micro-batches, recompute %s) lacks %s",
			units.Bytes(int64(s.memory)), s.o.Devices, axesText(set.axes), set.pipe, set.micro, set.recompute, units.Bytes(int64(s.least.bytes))),
		Help: lever,
	}
}

func axesText(axes []Axis) string {
	text := ""
	for i, a := range axes {
		if i > 0 {
			text += " × "
		}
		text += fmt.Sprintf("%s %d", a.Name, a.Size)
	}
	return text
}
