package cuda

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"
)

// fake is a driver without a device. It computes what the kernels of the tests'
// program compute, in any order that streams, events and graphs allow, and
// collects in problems the calls that are invalid for a real driver.
type fake struct {
	t        *testing.T
	problems []string
	rand     *rand.Rand

	count    int // devices
	version  int32
	calls    []string
	failCall string // this call fails
	failCode status
	faults   string // this kernel breaks the context
	hangs    bool   // nothing ever ends
	stuck    bool   // the kernel "next" counts no further

	next     handle
	live     map[handle]string // kind of each handle
	current  handle
	ctx      handle
	retained int
	broken   status
	memory   []byte
	second   []byte
	base     deviceVA
	queues   map[handle][]*node // of streams, outside of a capture
	last     map[handle]*node   // of streams, in a capture
	marks    map[handle]*node   // of events, in a capture
	times    map[handle]float64
	clock    float64
	capture  []*node
	inside   map[handle]bool
	graphs   map[handle][]*node
	names    map[handle]string // of functions
	launches []launched
	maps     []string
}

// node is an operation of a stream or a graph.
type node struct {
	what string
	run  func()
	deps []*node
}

type launched struct {
	name    string
	grid    [3]uint32
	threads uint32
	shared  uint32
	cluster uint32
	// dependent launches may start before the kernel before them on the stream has ended.
	dependent bool
}

const fakeBase = 0x7f0000001000 &^ 0xff

// secondBase is the address of the second allocation, which clears the cache in
// timed runs.
const secondBase = fakeBase + 1<<40

func newFake(t *testing.T) *fake {
	f := &fake{
		t: t, rand: rand.New(rand.NewPCG(1, 2)), count: 1, version: 13010, next: 100, live: map[handle]string{}, queues: map[handle][]*node{},
		last: map[handle]*node{}, marks: map[handle]*node{}, times: map[handle]float64{}, inside: map[handle]bool{},
		graphs: map[handle][]*node{}, names: map[handle]string{},
	}
	t.Cleanup(func() {
		for _, p := range f.problems {
			t.Error(p)
		}
	})
	return f
}

func (f *fake) problem(format string, args ...any) {
	f.problems = append(f.problems, fmt.Sprintf(format, args...))
}

// call records a call; ok is false if it must fail.
func (f *fake) call(name string, needsContext bool) (status, bool) {
	f.calls = append(f.calls, name)
	if needsContext && (f.current == 0 || f.current != f.ctx) {
		f.problem("%s without the device's context", name)
	}
	if f.broken != success && needsContext {
		return f.broken, false
	}
	if name == f.failCall {
		return f.failCode, false
	}
	return success, true
}

func (f *fake) handle(kind string) handle {
	f.next++
	f.live[f.next] = kind
	return f.next
}

func (f *fake) free(h handle, kind string) status {
	s, ok := f.call("free "+kind, true)
	if f.live[h] != kind {
		f.problem("%d is freed as a %s; it is %q", h, kind, f.live[h])
	}
	if ok {
		delete(f.live, h)
	}
	return s
}

func (f *fake) bytes(at deviceVA, n uint64) []byte {
	if s := uint64(len(f.second)); at >= secondBase && uint64(at-secondBase)+n <= s {
		return f.second[at-secondBase:][:n]
	}
	if at < f.base || uint64(at-f.base)+n > uint64(len(f.memory)) {
		f.problem("%d bytes at %#x are not in the allocation", n, at)
		return make([]byte, n)
	}
	return f.memory[at-f.base:][:n]
}

// add adds an operation to a stream, or to the graph that captures it.
func (f *fake) add(on handle, what string, run func()) *node {
	if f.live[on] != "stream" {
		f.problem("%s on %d, which is no stream", what, on)
	}
	n := &node{what: what, run: run}
	if f.inside[on] {
		if before := f.last[on]; before != nil {
			n.deps = append(n.deps, before)
		}
		f.last[on] = n
		f.capture = append(f.capture, n)
		return n
	}
	if f.capture != nil {
		f.problem("%s on a stream outside of the capture", what)
	}
	f.queues[on] = append(f.queues[on], n)
	return n
}

// drain runs the operations of a stream.
func (f *fake) drain(on handle) {
	for _, n := range f.queues[on] {
		if f.broken == success {
			n.run()
		}
	}
	f.queues[on] = nil
}

// replay runs a graph in a random order that its edges allow.
func (f *fake) replay(nodes []*node) {
	left := append([]*node(nil), nodes...)
	done := map[*node]bool{}
	for len(left) > 0 {
		f.rand.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
		for i, n := range left {
			ready := true
			for _, d := range n.deps {
				ready = ready && done[d]
			}
			if ready {
				if f.broken == success {
					n.run()
				}
				done[n] = true
				left = append(left[:i], left[i+1:]...)
				break
			}
		}
	}
}

func text(s string) *byte { return &append([]byte(s), 0)[0] }

// api is the fake's implementation of the driver's functions.
func (f *fake) api() *api {
	names := map[status]string{success: "CUDA_SUCCESS", outOfMemory: "CUDA_ERROR_OUT_OF_MEMORY", illegalAccess: "CUDA_ERROR_ILLEGAL_ADDRESS", noBinary: "CUDA_ERROR_NO_BINARY_FOR_GPU"}
	texts := map[status]string{outOfMemory: "out of memory", illegalAccess: "an illegal memory access was encountered", noBinary: "no kernel image is available for execution on the device"}
	attributes := map[int32]int32{attrMajor: 9, attrMinor: 0, attrMultiprocessors: 132, attrSharedOptin: 232448}
	a := &api{
		Init:        func(uint32) status { return success },
		Version:     func(v *int32) status { *v = f.version; return success },
		ErrorName:   func(s status, p **byte) status { *p = text(names[s]); return success },
		ErrorString: func(s status, p **byte) status { *p = text(texts[s]); return success },
		DeviceCount: func(n *int32) status {
			if *n = int32(f.count); f.count == 0 {
				return noDevice
			}
			return success
		},
		DeviceGet: func(d *device, i int32) status { *d = device(i); return success },
		DeviceName: func(p *byte, n int32, _ device) status {
			copy(unsafe.Slice(p, n), "NVIDIA Fake 900\x00")
			return success
		},
		DeviceMemory: func(n *uint64, _ device) status { *n = 1 << 30; return success },
		DeviceAttr:   func(v *int32, a int32, _ device) status { *v = attributes[a]; return success },
		CtxRetain: func(c *handle, _ device) status {
			s, ok := f.call("retain", false)
			if ok {
				if f.ctx == 0 {
					f.ctx = f.handle("context")
				}
				f.retained++
				*c = f.ctx
			}
			return s
		},
		CtxRelease: func(device) status {
			if f.retained--; f.retained < 0 {
				f.problem("the context is released once too often")
			}
			return success
		},
		CtxSet: func(c handle) status { f.current = c; return success },
		ModuleLoad: func(m *handle, image *byte) status {
			s, ok := f.call("load", true)
			if ok {
				*m = f.handle("module")
			}
			return s
		},
		ModuleUnload: func(m handle) status { return f.free(m, "module") },
		ModuleFunc: func(p *handle, m handle, name string) status {
			s, ok := f.call("function", true)
			if ok {
				f.next++
				*p = f.next
				f.names[*p] = name
			}
			return s
		},
		FuncSet: func(h handle, attribute, value int32) status {
			s, _ := f.call(fmt.Sprintf("set %s %d %d", f.names[h], attribute, value), true)
			return s
		},
		MemAlloc: func(p *deviceVA, n uint64) status {
			s, ok := f.call("alloc", true)
			if ok {
				if f.memory != nil {
					if f.second != nil {
						f.problem("a third allocation")
					}
					f.second, *p = make([]byte, n), secondBase
					return s
				}
				f.memory, f.base = make([]byte, n), fakeBase
				for i := range f.memory {
					f.memory[i] = 0xcd // unwritten memory is not zero
				}
				*p = f.base
			}
			return s
		},
		MemFree: func(p deviceVA) status {
			s, _ := f.call("free memory", true)
			if p == secondBase && f.second != nil {
				f.second = nil
				return s
			}
			if p != f.base || f.memory == nil {
				f.problem("%#x is freed", p)
			}
			f.memory = nil
			return s
		},
		CopyIn: func(to deviceVA, from *byte, n uint64, on handle) status {
			s, ok := f.call("copy in", true)
			if ok {
				data := append([]byte(nil), unsafe.Slice(from, n)...)
				f.add(on, "copy in", func() { copy(f.bytes(to, n), data) })
			}
			return s
		},
		CopyOut: func(to *byte, from deviceVA, n uint64, on handle) status {
			s, ok := f.call("copy out", true)
			if ok {
				f.add(on, "copy out", func() { copy(unsafe.Slice(to, n), f.bytes(from, n)) })
			}
			return s
		},
		CopyOn: func(to, from deviceVA, n uint64, on handle) status {
			s, ok := f.call("copy on", true)
			if ok {
				f.add(on, "copy on", func() { copy(f.bytes(to, n), f.bytes(from, n)) })
			}
			return s
		},
		Fill: func(to deviceVA, v uint8, n uint64, on handle) status {
			s, ok := f.call("fill", true)
			if ok {
				f.add(on, "fill", func() {
					b := f.bytes(to, n)
					for i := range b {
						b[i] = v
					}
				})
			}
			return s
		},
		StreamCreate: func(p *handle, flags uint32) status {
			s, ok := f.call("stream", true)
			if ok {
				*p = f.handle("stream")
			}
			return s
		},
		StreamFree: func(h handle) status { return f.free(h, "stream") },
		StreamQuery: func(h handle) status {
			if f.capture != nil {
				f.problem("a stream is waited for in a capture")
			}
			if f.hangs {
				return notReady
			}
			f.drain(h)
			s, _ := f.call("query", true)
			return s
		},
		EventCreate: func(p *handle, flags uint32) status {
			s, ok := f.call("event", true)
			if ok {
				*p = f.handle("event")
				if flags&eventNoTiming != 0 {
					f.times[*p] = math.NaN()
				}
			}
			return s
		},
		EventFree: func(h handle) status { return f.free(h, "event") },
		EventRecord: func(e, on handle) status {
			s, ok := f.call("record", true)
			if ok && f.inside[on] {
				f.marks[e] = f.last[on]
			} else if ok {
				f.add(on, "record", func() { f.times[e] = f.clock })
			}
			return s
		},
		EventNode: func(e, on handle, flags uint32) status {
			s, ok := f.call("record node", true)
			if flags != recordExternal || !f.inside[on] {
				f.problem("an event node outside of a capture")
			}
			if ok {
				f.add(on, "time", func() { f.times[e] = f.clock })
			}
			return s
		},
		StreamWait: func(on, e handle, _ uint32) status {
			s, ok := f.call("wait", true)
			if f.live[e] != "event" || f.live[on] != "stream" {
				f.problem("stream %d waits for %d", on, e)
			}
			if ok {
				before, marked := f.marks[e]
				if !marked {
					f.problem("a wait for an event that is not recorded")
				}
				f.inside[on] = true
				n := &node{what: "join", run: func() {}}
				for _, d := range []*node{f.last[on], before} {
					if d != nil {
						n.deps = append(n.deps, d)
					}
				}
				f.last[on] = n
				f.capture = append(f.capture, n)
			}
			return s
		},
		EventElapsed: func(ms *float32, from, to handle) status {
			*ms = float32(f.times[to] - f.times[from])
			if math.IsNaN(f.times[to] - f.times[from]) {
				f.problem("the time of an event that has none")
			}
			return success
		},
		MapEncode: func(m *tensorMap, elem, rank uint32, base deviceVA, dims, strides *uint64, box, steps *uint32, _, swizzle, _, _ uint32) status {
			if uintptr(unsafe.Pointer(m))%128 != 0 {
				f.problem("a tensor map at %p", m)
			}
			binary.LittleEndian.PutUint64(m[:], uint64(base))
			f.maps = append(f.maps, fmt.Sprint(elem, unsafe.Slice(dims, rank), unsafe.Slice(strides, rank-1), unsafe.Slice(box, rank), unsafe.Slice(steps, rank), swizzle))
			return success
		},
		Capture: func(on handle, mode uint32) status {
			s, ok := f.call("capture", true)
			if ok {
				f.capture, f.inside = []*node{}, map[handle]bool{on: true}
				f.last, f.marks = map[handle]*node{}, map[handle]*node{}
			}
			return s
		},
		CaptureEnd: func(on handle, g *handle) status {
			s, ok := f.call("capture end", true)
			if ok {
				*g = f.handle("graph")
				f.graphs[*g] = f.capture
				reached := map[*node]bool{}
				var reach func(n *node)
				reach = func(n *node) {
					if n != nil && !reached[n] {
						reached[n] = true
						for _, d := range n.deps {
							reach(d)
						}
					}
				}
				reach(f.last[on])
				for _, n := range f.capture {
					if !reached[n] && f.failCall == "" {
						f.problem("the capture ends before %s is joined", n.what)
					}
				}
			}
			f.capture, f.inside = nil, map[handle]bool{}
			return s
		},
		GraphMake: func(p *handle, g handle, _ uint64) status {
			s, ok := f.call("instantiate", true)
			if ok {
				*p = f.handle("exec")
				f.graphs[*p] = f.graphs[g]
			}
			return s
		},
		GraphFree: func(g handle) status { return f.free(g, "graph") },
		ExecFree:  func(g handle) status { return f.free(g, "exec") },
		GraphLaunch: func(g, on handle) status {
			s, ok := f.call("graph launch", true)
			if f.live[g] != "exec" {
				f.problem("%d is launched and is no graph", g)
			}
			if ok {
				f.add(on, "graph", func() { f.replay(f.graphs[g]) })
			}
			return s
		},
	}
	a.LaunchPlain = func(h handle, gx, gy, gz, bx, by, bz, shared uint32, on handle, args, extra unsafe.Pointer) status {
		return f.launch(launched{f.names[h], [3]uint32{gx, gy, gz}, bx * by * bz, shared, 1, false}, on, args)
	}
	a.Launch = func(c *launchConfig, h handle, args, extra unsafe.Pointer) status {
		at := unsafe.Slice(c.attributes, c.count)
		l := launched{f.names[h], c.grid, c.block[0] * c.block[1] * c.block[2], c.shared, 1, false}
		for _, a := range at {
			switch {
			case a.id == launchClusterDimension && a.value[0] > 0 && l.cluster == 1:
				l.cluster = a.value[0]
			case a.id == launchProgrammaticSerial && a.value[0] == 1 && !l.dependent:
				l.dependent = true
			default:
				f.problem("the attributes of %s are %v", f.names[h], at)
			}
		}
		if before := f.last[c.stream]; l.dependent && (!f.inside[c.stream] || before == nil || !strings.HasPrefix(before.what, "launch ")) {
			f.problem("%s depends on no kernel", l.name)
		}
		return f.launch(l, c.stream, args)
	}
	return a
}

// launch reads the parameters as the driver does and enqueues the kernel.
func (f *fake) launch(l launched, on handle, args unsafe.Pointer) status {
	s, ok := f.call("launch "+l.name, true)
	if !ok {
		return s
	}
	var at []deviceVA
	for i := 0; ; i++ {
		p := *(*unsafe.Pointer)(unsafe.Add(args, i*8))
		if p == nil {
			break
		}
		at = append(at, *(*deviceVA)(p)) // a map's first bytes are its address, here
	}
	f.launches = append(f.launches, l)
	f.add(on, "launch "+l.name, func() {
		f.clock += 0.002
		if l.name == f.faults {
			f.broken = illegalAccess
			return
		}
		f.kernel(l.name, at)
	})
	return success
}

// word is the i32 at an address.
func (f *fake) word(at deviceVA) int32 { return int32(binary.LittleEndian.Uint32(f.bytes(at, 4))) }

// kernel computes the kernel of that name of the tests' program.
func (f *fake) kernel(name string, at []deviceVA) {
	const n = 1000
	get := func(b, i int) float32 {
		return math.Float32frombits(binary.LittleEndian.Uint32(f.bytes(at[b]+deviceVA(4*i), 4)))
	}
	set := func(b, i int, v float32) {
		binary.LittleEndian.PutUint32(f.bytes(at[b]+deviceVA(4*i), 4), math.Float32bits(v))
	}
	switch name {
	case "scaled":
		for i := range n {
			set(2, i, get(0, i)*get(1, 0))
		}
	case "total":
		for i := range n {
			set(1, 0, get(1, 0)+get(0, i))
		}
	case "negated":
		for i := range n {
			set(1, i, -get(0, i))
		}
	case "joined":
		for i := range n {
			set(3, i, get(0, i)+get(1, i)+get(2, 0))
		}
	case "below":
		f.bytes(at[2], 1)[0] = 0
		if f.word(at[0]) < f.word(at[1]) {
			f.bytes(at[2], 1)[0] = 1
		}
	case "twice":
		for i := range n {
			set(1, i, 2*get(0, i))
		}
	case "next":
		if !f.stuck {
			binary.LittleEndian.PutUint32(f.bytes(at[0], 4), uint32(f.word(at[0])+1))
		}
	default:
		f.problem("a launch of %q", name)
	}
}

// device is the fake's one device.
func (f *fake) device() *Device {
	list, err := f.api().devices()
	if err != nil || len(list) != 1 {
		f.t.Fatalf("devices %v, %v", list, err)
	}
	return list[0]
}

// left lists resources that were not released.
func (f *fake) left() string {
	var out []string
	for _, kind := range f.live {
		if kind != "context" {
			out = append(out, kind)
		}
	}
	if f.memory != nil || f.second != nil {
		out = append(out, "memory")
	}
	if f.retained != 0 {
		out = append(out, fmt.Sprintf("%d uses of the context", f.retained))
	}
	return strings.Join(out, ", ")
}
