package cuda

import (
	"context"
	"fmt"
	"runtime"
	"unsafe"

	"dmir/gpu/artifact"
)

// prepare captures what the host launches as graphs, once: streams become branches and waits edges.
func (s *Session) prepare() error {
	if s.course == nil {
		s.course = s.planned()
	}
	for _, g := range graphs(s.course) {
		if g.exec != 0 {
			continue
		}
		exec, err := s.capture(func() (err error) {
			last := -1
			for _, r := range g.graph {
				if last, err = s.stretch(r[0], r[1], last); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		g.exec = exec
	}
	return nil
}

// stretch enqueues the steps [from, to), which take no decisions, from the first
// stream on and back to it. directly is the step that the first stream's next work follows directly, before and afterwards; -1: none.
func (s *Session) stretch(from, to, directly int) (_ int, err error) {
	ended := make([]handle, to-from) // an event after each step that another waits for
	used := make([]bool, len(s.streams))
	for _, step := range s.p.Steps[from:to] {
		used[step.Stream] = true
		for _, w := range step.Waits {
			if w >= from && ended[w-from] == 0 {
				if ended[w-from], err = s.event(eventNoTiming); err != nil {
					return -1, err
				}
			}
		}
	}
	last := make([]int, len(s.streams)) // the step that the stream's next work follows directly; -1: none does
	for k := range last {
		last[k] = -1
	}
	last[0] = directly
	main := s.streams[0]
	for k, other := range s.streams {
		if k > 0 && used[k] { // they start after the first stream's event
			if err := s.join(other, main); err != nil {
				return -1, err
			}
		}
	}
	for i := from; i < to; i++ {
		step := &s.p.Steps[i]
		on := s.streams[step.Stream]
		for _, w := range step.Waits {
			if w < from || s.p.Steps[w].Stream == step.Stream {
				continue // on the same stream steps follow one another, and behind an earlier stretch
			}
			if err := s.a.check("cuStreamWaitEvent", s.a.StreamWait(on, ended[w-from], 0)); err != nil {
				return -1, err
			}
			last[step.Stream] = -1
		}
		if err := s.enqueueAfter(i, last[step.Stream], on); err != nil {
			return -1, err
		}
		last[step.Stream] = i
		if e := ended[i-from]; e != 0 {
			if err := s.a.check("cuEventRecord", s.a.EventRecord(e, on)); err != nil {
				return -1, err
			}
		}
	}
	for k, other := range s.streams {
		if k > 0 && used[k] { // and the first stream waits for their end
			if err := s.join(main, other); err != nil {
				return -1, err
			}
			last[0] = -1
		}
	}
	return last[0], nil
}

// holds waits for all enqueued work and reads the predicate of a decision. Between
// two iterations of a loop ctx can cancel the run, since no kernel runs then.
func (s *Session) holds(ctx context.Context, step int) (bool, error) {
	b := &s.p.Buffers[s.p.Steps[step].Decision.On]
	if s.flag == nil {
		s.flag = make([]byte, 1)
	}
	// A copy to host memory may block in the driver until all work before it is
	// done, and cannot be cancelled.
	if err := s.wait(ctx); err != nil {
		return false, err
	}
	if err := s.a.check("cuMemcpyDtoH", s.a.CopyOut(&s.flag[0], s.address(b), 1, s.streams[0])); err != nil {
		return false, err
	}
	if err := s.wait(ctx); err != nil {
		return false, err
	}
	return s.flag[0] != 0, ctx.Err()
}

// join makes later work on the stream to wait for all work on the stream from.
func (s *Session) join(to, from handle) error {
	e, err := s.event(eventNoTiming)
	if err != nil {
		return err
	}
	if err := s.a.check("cuEventRecord", s.a.EventRecord(e, from)); err != nil {
		return err
	}
	return s.a.check("cuStreamWaitEvent", s.a.StreamWait(to, e, 0))
}

// capture records what fill enqueues, from the first stream on, as a graph.
func (s *Session) capture(fill func() error) (exec handle, err error) {
	main := s.streams[0]
	if err := s.a.check("cuStreamBeginCapture", s.a.Capture(main, captureThreadLocal)); err != nil {
		return 0, err
	}
	var graph handle
	filled := fill()
	ended := s.a.check("cuStreamEndCapture", s.a.CaptureEnd(main, &graph))
	if graph != 0 {
		defer s.a.GraphFree(graph)
	}
	if filled != nil {
		return 0, filled
	}
	if ended != nil {
		return 0, ended
	}
	return exec, s.a.check("cuGraphInstantiate", s.a.GraphMake(&exec, graph, 0))
}

// enqueue adds step i to a stream, behind all that is there.
func (s *Session) enqueue(i int, on handle) error { return s.enqueueAfter(i, -1, on) }

// enqueueAfter adds step i to a stream, directly behind step before; -1: behind other work.
func (s *Session) enqueueAfter(i, before int, on handle) error {
	step := &s.p.Steps[i]
	to, from := &s.p.Buffers[step.Move.To], &s.p.Buffers[step.Move.From]
	switch n := to.Size(); {
	case step.Kind == artifact.StepLaunch:
		return s.launch(i, s.p.Dependent(i, before), on)
	case step.Kind == artifact.StepCollective:
		return s.enqueueCollective(i, on)
	case n == 0:
		return nil
	case step.Kind == artifact.StepCopy:
		return s.a.check("cuMemcpyDtoDAsync "+step.Name, s.a.CopyOn(s.address(to), s.address(from), uint64(n), on))
	default:
		return s.a.check("cuMemsetD8Async "+step.Name, s.a.Fill(s.address(to), 0, uint64(n), on))
	}
}

// launch adds the kernel of step i to a stream. A dependent one may start while the kernel before it on the stream still
// runs; in a captured graph that is a programmatic edge.
func (s *Session) launch(i int, dependent bool, on handle) error {
	step := &s.p.Steps[i]
	k, l := s.p.KernelOf(step), &step.Launch
	// The parameters by value, and their addresses. The driver copies them before
	// it returns.
	values := make([]deviceVA, len(l.Args))
	args := make([]unsafe.Pointer, len(l.Args)+1)
	for j, a := range l.Args {
		if a.Map != nil {
			args[j] = unsafe.Pointer(s.maps[[2]int{i, j}])
			continue
		}
		values[j] = s.address(&s.p.Buffers[a.Buffer])
		args[j] = unsafe.Pointer(&values[j])
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&args[0])
	if len(values) > 0 {
		pin.Pin(&values[0])
	}
	grid := [3]uint32{uint32(l.Grid[0]), uint32(l.Grid[1]), uint32(l.Grid[2])}
	f := s.functions[l.Kernel]
	dependent = dependent && s.d.Major >= 9 && s.a.dependents()
	var attributes [2]launchAttribute
	n := 0
	if k.Block.Cluster > 1 {
		attributes[n].id = launchClusterDimension
		attributes[n].value = [16]uint32{uint32(k.Block.Cluster), 1, 1}
		n++
	}
	if dependent {
		attributes[n].id = launchProgrammaticSerial
		attributes[n].value[0] = 1
		n++
	}
	if n == 0 {
		return s.a.check("cuLaunchKernel "+step.Name,
			s.a.LaunchPlain(f, grid[0], grid[1], grid[2], uint32(k.Block.Threads), 1, 1, uint32(k.Block.Shared), on, unsafe.Pointer(&args[0]), nil))
	}
	if s.a.Launch == nil {
		return fmt.Errorf("kernel %s runs in clusters, which this NVIDIA driver does not support", k.Name)
	}
	pin.Pin(&attributes[0])
	c := &launchConfig{grid: grid, block: [3]uint32{uint32(k.Block.Threads), 1, 1}, shared: uint32(k.Block.Shared), stream: on, attributes: &attributes[0], count: uint32(n)}
	pin.Pin(c)
	return s.a.check("cuLaunchKernelEx "+step.Name, s.a.Launch(c, f, unsafe.Pointer(&args[0]), nil))
}

// mapTable holds the encoded tensor maps of a program, by step and argument.
type mapTable map[[2]int]*tensorMap

// mapTypes are the numbers of CUtensorMapDataType.
var mapTypes = map[string]uint32{
	"ui8": 0, "i8": 0, "i1": 0, "f8E4M3FN": 0, "f8E5M2": 0, "ui16": 1, "i16": 1, "ui32": 2, "i32": 3, "ui64": 4, "i64": 5, "index": 5,
	"f16": 6, "f32": 7, "f64": 8, "bf16": 9, "tf32": 11,
}

// The numbers of CUtensorMapSwizzle, by bytes, and of the other choices.
var swizzles = map[int]uint32{0: 0, 32: 1, 64: 2, 128: 3}

const (
	interleaveNone = 0
	promotion128   = 2
	fillZero       = 0
)

// encodeMaps encodes the program's tensor maps once, since buffers do not move.
func (s *Session) encodeMaps() (mapTable, error) {
	t := mapTable{}
	ones := [5]uint32{1, 1, 1, 1, 1}
	for i := range s.p.Steps {
		for j, a := range s.p.Steps[i].Launch.Args {
			if a.Map == nil {
				continue
			}
			if s.a.MapEncode == nil {
				return nil, fmt.Errorf("step %s needs tensor maps, which this NVIDIA driver does not support", s.p.Steps[i].Name)
			}
			m := alignedMap()
			strides := append(append([]uint64(nil), a.Map.Strides...), 0)
			st := s.a.MapEncode(m, mapTypes[a.Map.Elem], uint32(len(a.Map.Dims)), s.address(&s.p.Buffers[a.Buffer]),
				&a.Map.Dims[0], &strides[0], &a.Map.Box[0], &ones[0], interleaveNone, swizzles[a.Map.Swizzle], promotion128, fillZero)
			if err := s.a.check("cuTensorMapEncodeTiled "+s.p.Steps[i].Name, st); err != nil {
				return nil, err
			}
			t[[2]int{i, j}] = m
		}
	}
	return t, nil
}

// alignedMap is a tensor map at a multiple of 128 bytes, which is the alignment
// of CUtensorMap from CUDA 13 on; it was 64 before.
func alignedMap() *tensorMap {
	b := make([]byte, len(tensorMap{})+127)
	skip := -uintptr(unsafe.Pointer(&b[0])) & 127
	return (*tensorMap)(unsafe.Pointer(&b[skip]))
}
