package ptx

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"dmir/gpu/artifact"
)

// Argument is what a kernel gets for a parameter: a buffer, with a map of it perhaps.
type Argument struct {
	Data []byte
	Map  *artifact.TensorMap
}

// maxRun bounds the instructions of a run.
const maxRun = 1 << 18

// Run executes a kernel of one cluster, which has this many blocks, on the values of its arguments, which change in place. It
// is for tests that compare single instructions with what emulates them: it knows
// those of the prelude's inline assembly, and the integer and float arithmetic
// around them; an error names an instruction that it does not know. Copies end at
// once, and of several threads at different places those that are furthest behind go
// first, which is one of the orders that a correct kernel may run in.
func Run(f *Func, threads, cluster, shared int, args []Argument) error {
	c, err := decode(f)
	if err != nil {
		return err
	}
	size := c.static
	for _, v := range c.vars {
		if v.open {
			size = int(v.at) - sharedBase + shared
		}
	}
	m := &machine{c: c, args: args, threads: threads, barriers: map[spot]*tally{}, pc: make([]int, threads*cluster)}
	for range cluster {
		m.shared = append(m.shared, make([]byte, size))
	}
	for range threads * cluster {
		m.regs = append(m.regs, make([]uint64, c.regs))
	}
	for range maxRun {
		at := slices.Min(m.pc)
		if at >= len(c.list) {
			return nil
		}
		o := &c.list[at]
		var on []int
		for t, pc := range m.pc {
			if pc != at {
				continue
			}
			m.pc[t]++
			if o.guard >= 0 && (m.regs[t][o.guard]&1 == 1) == o.in.Negate {
				continue
			}
			on = append(on, t)
		}
		if len(on) == 0 {
			continue
		}
		if err := m.execute(o, on); err != nil {
			return &Error{o.in.Pos, fmt.Sprintf("%s: %v", o.in.Op, err)}
		}
	}
	return fmt.Errorf("%s has not ended after %d instructions", f.Name, maxRun)
}

// machine is the blocks of a cluster that run, with their threads behind each other.
type machine struct {
	c        *code
	args     []Argument
	threads  int        // of a block
	regs     [][]uint64 // by thread
	pc       []int
	shared   [][]byte // by block
	barriers map[spot]*tally
}

// spot is an address of the shared memory of a block.
type spot struct {
	block int
	at    uint64
}

// spot is where an address of shared memory is, for a thread.
func (m *machine) spot(at uint64, t int) spot {
	if rank := at >> peerShift; rank > 0 {
		return spot{int(rank - 1), at & (1<<peerShift - 1)}
	}
	return spot{t / m.threads, at}
}

// tally is an mbarrier.
type tally struct{ count, pending, bytes, phase int }

func (b *tally) complete() {
	if b.pending <= 0 && b.bytes == 0 {
		b.phase++
		b.pending = b.count
	}
}

func (m *machine) get(a arg, t int) uint64 {
	switch {
	case a.reg >= 0:
		return m.regs[t][a.reg]
	case a.reg == -1:
		return a.value
	}
	switch specials[-2-a.reg] {
	case "%tid.x":
		return uint64(t % m.threads)
	case "%laneid":
		return uint64(t & 31)
	case "%warpid":
		return uint64(t % m.threads >> 5)
	case "%ntid.x":
		return uint64(m.threads)
	case "%ctaid.x", "%cluster_ctarank":
		return uint64(t / m.threads)
	case "%nctaid.x", "%cluster_nctarank":
		return uint64(len(m.shared))
	case "%ctaid.y", "%ctaid.z", "%tid.y", "%tid.z":
		return 0
	}
	return 1
}

// address is where an operand in brackets points.
func (m *machine) address(a arg, t int) uint64 { return m.get(a, t) + uint64(a.off) }

func (m *machine) set(o *op, i, t int, v uint64) {
	if o.dst[i] >= 0 {
		m.regs[t][o.dst[i]] = v
	}
}

// memory is n bytes at an address, for a thread.
func (m *machine) memory(space string, at uint64, n, t int) ([]byte, error) {
	var data []byte
	if space == "shared" {
		s := m.spot(at, t)
		if s.block >= len(m.shared) {
			return nil, fmt.Errorf("block %d of a cluster of %d", s.block, len(m.shared))
		}
		data, at = m.shared[s.block], s.at-sharedBase
	} else {
		p := int(at>>globalShift) - int(globalBase>>globalShift) - 1
		if p < 0 || p >= len(m.args) {
			return nil, fmt.Errorf("no buffer is at %#x", at)
		}
		data, at = m.args[p].Data, at&(1<<globalShift-1)
	}
	if at > uint64(len(data)) || uint64(n) > uint64(len(data))-at {
		return nil, fmt.Errorf("%d bytes at %d of %d", n, int64(at), len(data))
	}
	if at%uint64(n) != 0 && n <= 16 {
		return nil, fmt.Errorf("%d bytes at %d, which is no multiple", n, at)
	}
	return data[at : at+uint64(n)], nil
}

func little(b []byte) uint64 {
	var v [8]byte
	copy(v[:], b)
	return binary.LittleEndian.Uint64(v[:])
}

func (m *machine) execute(o *op, on []int) error {
	switch o.kind {
	case opALU:
		for _, t := range on {
			var x [3]uint64
			for i := range min(3, len(o.src)) {
				x[i] = m.get(o.src[i], t)
			}
			m.set(o, 0, t, o.f(x[0], x[1], x[2]))
		}
	case opSelect:
		for _, t := range on {
			v := m.get(o.src[1], t)
			if m.get(o.src[2], t)&1 == 1 {
				v = m.get(o.src[0], t)
			}
			m.set(o, 0, t, v)
		}
	case opBranch:
		for _, t := range on {
			m.pc[t] = o.target
		}
	case opExit:
		for _, t := range on {
			m.pc[t] = len(m.c.list)
		}
	case opLoad, opStore:
		return m.move(o, on)
	case opReduce:
		return m.reduce(o, on)
	case opBarrier, opCluster, opFence, opCopyCommit, opCopyWait, opBulkCommit, opBulkWait, opProductFence, opProductCommit, opProductWait, opRegisters, opDependency, opNone:
	case opCopy:
		return m.copy(o, on)
	case opInit:
		for _, t := range on {
			n := int(m.get(o.src[1], t))
			m.barriers[m.spot(m.address(o.src[0], t), t)] = &tally{count: n, pending: n}
		}
	case opArrive, opWait:
		return m.barrier(o, on)
	case opBulk:
		return m.bulk(o, on)
	case opPrefetch:
		for _, t := range on {
			if p, ok := paramOf(m.get(o.src[0], t) + uint64(o.src[0].off)); !ok || p >= len(m.args) || m.args[p].Map == nil {
				return fmt.Errorf("no tensor map")
			}
		}
	case opMatrix:
		return m.matrices(o, on)
	case opProduct:
		return m.wgmma(o, on)
	case opWarp:
		switch o.words[0] {
		case "mma":
			return m.mma(o, on)
		case "vote":
			return m.ballot(o, on)
		case "bar":
		default:
			return fmt.Errorf("it is not known")
		}
	default:
		return m.float(o, on)
	}
	return nil
}

func (m *machine) move(o *op, on []int) error {
	values := o.dst
	if o.kind == opStore {
		values = make([]int, len(o.src)-1)
	}
	if len(values) == 0 || o.bytes%len(values) != 0 || o.bytes == 0 {
		return fmt.Errorf("it is not known")
	}
	size := o.bytes / len(values)
	for _, t := range on {
		if o.space == "param" {
			p, ok := paramOf(o.src[0].value)
			if !ok {
				return fmt.Errorf("a part of a parameter")
			}
			m.set(o, 0, t, globalBase+uint64(p+1)<<globalShift)
			continue
		}
		at := m.address(o.src[0], t)
		b, err := m.memory(o.space, at, o.bytes, t)
		if err != nil {
			return err
		}
		for i := range values {
			part := b[i*size : (i+1)*size]
			if o.kind == opLoad {
				m.set(o, i, t, extend(o.words[len(o.words)-1], little(part)))
				continue
			}
			var v [8]byte
			binary.LittleEndian.PutUint64(v[:], m.get(o.src[1+i], t))
			copy(part, v[:])
		}
	}
	return nil
}

// reduce is red.add of floats, whose subnormal numbers are zeros.
func (m *machine) reduce(o *op, on []int) error {
	if !o.has("add") || o.words[len(o.words)-1] != "f32" || o.bytes != 4*(len(o.src)-1) {
		return fmt.Errorf("it is not known")
	}
	for _, t := range on {
		b, err := m.memory(o.space, m.address(o.src[0], t), o.bytes, t)
		if err != nil {
			return err
		}
		for i := range o.bytes / 4 {
			to := b[4*i:]
			sum := flushed(math.Float32frombits(uint32(m.get(o.src[1+i], t)))) + flushed(math.Float32frombits(binary.LittleEndian.Uint32(to)))
			binary.LittleEndian.PutUint32(to, math.Float32bits(flushed(sum)))
		}
	}
	return nil
}

// flushed is x, or a zero of its sign where it is subnormal.
func flushed(x float32) float32 {
	if y := float32(math.Abs(float64(x))); y > 0 && y < 0x1p-126 {
		return float32(math.Copysign(0, float64(x)))
	}
	return x
}

// copy is cp.async: bytes behind those that are read are zeros.
func (m *machine) copy(o *op, on []int) error {
	for _, t := range on {
		n := int(m.get(o.src[2], t))
		if n != 4 && n != 8 && n != 16 {
			return fmt.Errorf("%d bytes", n)
		}
		take := n
		if len(o.src) > 3 {
			take = int(m.get(o.src[3], t))
		}
		if o.has("cg") && n != 16 || take > n || take < 0 {
			return fmt.Errorf("%d of %d bytes", take, n)
		}
		to, err := m.memory("shared", m.address(o.src[0], t), n, t)
		if err != nil {
			return err
		}
		clear(to)
		if take == 0 {
			continue
		}
		from, err := m.memory("global", m.address(o.src[1], t), n, t)
		if err != nil {
			return err
		}
		copy(to[:take], from)
	}
	return nil
}

func (m *machine) barrier(o *op, on []int) error {
	for _, t := range on {
		b := m.barriers[m.spot(m.address(o.src[0], t), t)]
		if b == nil {
			return fmt.Errorf("no mbarrier is initialised there")
		}
		if o.kind == opWait {
			m.set(o, 0, t, uint64(b.phase&1)^m.get(o.src[1], t)&1)
			continue
		}
		if o.has("expect_tx") {
			b.bytes += int(m.get(o.src[1], t))
		}
		b.pending--
		b.complete()
	}
	return nil
}

// bulk copies a box of a tensor map to shared memory, perhaps of several blocks, or from it.
func (m *machine) bulk(o *op, on []int) error {
	store, args := o.has("bulk_group"), o.src
	var mask arg
	if o.has("multicast::cluster") {
		mask, args = args[len(args)-1], args[:len(args)-1]
	}
	source, first, rest := args[1], 2, 3 // the map, the first coordinate, and the operands besides coordinates
	place := args[0]
	if store {
		source, first, rest, place = args[0], 1, 2, args[len(args)-1]
	}
	for _, t := range on {
		p, ok := paramOf(m.get(source, t))
		if !ok || p >= len(m.args) || m.args[p].Map == nil || !o.has("tensor") {
			return fmt.Errorf("no tensor map")
		}
		tm, data := m.args[p].Map, m.args[p].Data
		if len(args) != rest+len(tm.Box) || !o.has(fmt.Sprintf("%dd", len(tm.Box))) {
			return fmt.Errorf("%d coordinates of a tensor of %d dimensions", len(args)-rest, len(tm.Box))
		}
		var from []int
		for d := range tm.Box {
			from = append(from, int(int32(m.get(args[first+d], t))))
		}
		to := m.address(place, t)
		if store {
			if err := m.box(tm, data, from, to, t, true); err != nil {
				return err
			}
			continue
		}
		ranks := uint64(1) << (t / m.threads)
		if len(args) < len(o.src) {
			ranks = m.get(mask, t)
		}
		for rank := range 64 {
			if ranks>>rank&1 == 0 {
				continue
			}
			if err := m.box(tm, data, from, peerAddress(to, uint64(rank), 0), t, false); err != nil {
				return err
			}
			b := m.barriers[spot{rank, m.address(args[len(args)-1], t)}]
			if b == nil {
				return fmt.Errorf("no mbarrier is initialised there")
			}
			bytes, _ := boxOf(tm)
			b.bytes -= bytes
			b.complete()
		}
	}
	return nil
}

// box copies the box of a tensor at these coordinates to shared memory, or stores it.
func (m *machine) box(tm *artifact.TensorMap, data []byte, from []int, to uint64, t int, store bool) error {
	elem, count := int(elemBytes(tm)), 1
	for _, n := range tm.Box {
		count *= int(n)
	}
	for i := range count {
		at, rest, inside := 0, i, true
		for d := range from {
			x := rest%int(tm.Box[d]) + from[d]
			rest /= int(tm.Box[d])
			inside = inside && x >= 0 && x < int(tm.Dims[d])
			if d == 0 {
				at += x * elem
			} else {
				at += x * int(tm.Strides[d-1])
			}
		}
		place := to + uint64(i*elem)
		if tm.Swizzle > 0 {
			place ^= place >> 7 & uint64(tm.Swizzle/16-1) << 4
		}
		b, err := m.memory("shared", place, elem, t)
		if err != nil {
			return err
		}
		inside = inside && at+elem <= len(data)
		switch {
		case store && inside:
			copy(data[at:], b)
		case !store:
			clear(b)
			if inside {
				copy(b, data[at:])
				if tm.Rounds() {
					binary.LittleEndian.PutUint32(b, tf32(binary.LittleEndian.Uint32(b)))
				}
			}
		}
	}
	return nil
}
