package machine

import (
	"math"

	"dmir/dialect/types"
)

// Processor is what processors have and accelerators do not, as far as it was
// measured. The zero value leaves all times as the rest of a Machine has them.
type Processor struct {
	Caches []Cache // the smallest first
	Read   float64 // bandwidth of the memory for what only reads, B/s; 0: that for reads and writes
	Random float64 // and for lines that are read at random; 0: the same
	// RandomRows is that for rows of four lines that are read at random; 0: such a row begins with a line at random
	RandomRows float64
	Grain      int64   // bytes moved and FLOP for each thread of a kernel; 0: kernels have all threads
	Call       float64 // what a kernel on one thread adds to a step, s; Launch is that of several
	Mispredict float64 // what a core loses where a row is shorter or longer than the one before, s

	// Ops are the FLOP/s of ops whose FLOP take longer than additions do, by element
	// type and by name without the dialect's: "exp". An op without FLOP counts one for each element of its result.
	Ops map[types.Elem]map[string]float64
	// Rows is what an op adds for each row that it reduces, s, of one core, likewise.
	Rows map[types.Elem]map[string]float64
	// Products are the rates of products by the type of their sums. Arch names the plans.
	Products map[types.Elem]ProductRates
}

// Cache is a level of a processor's caches.
type Cache struct {
	Name      string // "L2"
	Size      int64  // bytes; of one core's where PerCore
	PerCore   bool
	Bandwidth float64 // of all cores for as many reads as writes, B/s
	Read      float64 // for what only reads, B/s; 0: the same
	Random    float64 // for lines that are read at random, B/s; 0: that for reads
	// RandomRows is that for rows of four lines that are read at random; 0: such a row begins with a line at random
	RandomRows float64
}

// Move is how data is moved to and from where it lies.
type Move struct {
	Seconds float64
	Level   string // "L2"; "L2 and L3" where it fits neither; "" for the memory
}

// Move is the time of reading and writing so many bytes on some of m's threads; 0 are
// all. What fits a cache is there when a kernel runs again, or after the kernel before
// it. From working sets that nearly fill a cache to those that are larger by a third, less
// and less of them is: replacement is no exact order, and not all of the cache is free.
func (m *Machine) Move(read, written int64, threads int) Move {
	if len(m.Caches) == 0 && m.Read == 0 {
		return Move{float64(read+written) / m.Reach(), ""}
	}
	bytes := float64(read + written)
	part := 1.0 // of the cores
	if m.SMs > 0 && threads > 0 {
		part = min(1, float64(threads)/float64(m.SMs))
	}
	var out Move
	left := 1.0 // of the bytes, not in a smaller cache
	for _, c := range m.Caches {
		size := float64(c.Size)
		if c.PerCore {
			size *= max(1, math.Round(part*float64(m.SMs)))
		}
		if in := left * min(1, max(0, 2.7-2*bytes/size)); in > 0 {
			out.add(c.Name, in*seconds(read, written, c.Bandwidth, c.Read)/part)
			left -= in
		}
	}
	if left > 0 {
		level := "memory"
		if len(m.Caches) == 0 || left == 1 {
			level = ""
		}
		out.add(level, left*seconds(read, written, m.Reach(), m.Read))
	}
	return out
}

func (v *Move) add(level string, seconds float64) {
	v.Seconds += seconds
	if v.Level != "" {
		level = v.Level + " and " + level
	}
	v.Level = level
}

// seconds is the time of a mix of reads and writes where as many of each move both
// bytes a second. Writes take longer than reads, since they read the lines that they
// write to: the difference is theirs.
func seconds(read, written int64, both, reads float64) float64 {
	if reads == 0 {
		return float64(read+written) / both
	}
	return float64(read)/reads + float64(written)*(2/both-1/reads)
}

// Threads is how many threads of m a kernel with so many bytes and FLOP has; 0 are all.
func (m *Machine) Threads(moved, flop int64) int {
	if m.Grain == 0 || m.SMs == 0 {
		return 0
	}
	if n := max(1, (moved+flop)/m.Grain); n < int64(m.SMs) {
		return int(n)
	}
	return 0
}

// Latency is what a kernel on so many threads adds to a step, s.
func (m *Machine) Latency(threads int) float64 {
	if threads == 1 {
		return m.Call
	}
	return m.Gap()
}

// OpRate is the rate in FLOP/s of an op on elements of type e that takes longer than
// additions; 0 where none was measured.
func (m *Machine) OpRate(op string, e types.Elem) float64 {
	return m.Ops[m.computedAs(e)][op]
}

// LongRow is the bytes of a row from which on a core does not read the next ones while it computes: its passes over the row
// are longer than what it reorders.
const LongRow = 1 << 10

// RowTime is what an op on elements of type e adds for each row that it reduces, s, of one core.
func (m *Machine) RowTime(op string, e types.Elem) float64 { return m.Rows[m.computedAs(e)][op] }

// computedAs is the type that numbers of type e are computed in: processors widen half and
// quarter precision, and only tensor cores round to TF32.
func (m *Machine) computedAs(e types.Elem) types.Elem {
	if m.TensorCore[e] == 0 { // without units that take TF32, products are those of f32
		e = e.Stored()
	}
	if m.OneUnit() && e.IsFloat() && e.Bytes() < types.F32.Bytes() && m.TensorCore[e] == 0 && m.Vector[e] == 0 {
		return types.F32
	}
	if m.OneUnit() && !e.IsFloat() { // the same registers have as many
		if e.Bytes() > types.F32.Bytes() {
			return types.F64
		}
		return types.F32
	}
	return e
}

// OneUnit reports whether contractions and all else take turns on the same units.
func (m *Machine) OneUnit() bool { return m.CPU && len(m.Caches) > 0 }
