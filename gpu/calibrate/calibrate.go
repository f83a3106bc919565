package calibrate

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// grain is the bytes and FLOP that the runtime gives each thread of a kernel at least:
// GRAIN in native's pool.h.
const grain = 1 << 16

// Figures are what was measured, in seconds, bytes and operations, for all threads
// together.
type Figures struct {
	Title    string // what the processor is called
	Threads  int
	Memory   int64 // bytes; 0: not known
	Move     Bandwidths
	Caches   []Cache // the smallest first
	F32, F64 Arithmetic
	Launch   float64 // what a kernel on several threads adds to a step
	Call     float64 // and one on one thread
	Grain    int64   // bytes and FLOP that each thread of a kernel has at least
}

// Bandwidths are those for as many reads as writes, for reads alone, which is no less, and for reads of lines and of rows of four lines at
// random.
type Bandwidths struct{ Both, Read, Random, Rows float64 }

// Cache is a level of caches.
type Cache struct {
	Level   int
	Size    int64 // of one thread's where PerCore
	PerCore bool
	Move    Bandwidths
}

// Arithmetic is the operations in a second; a product with a sum is two.
type Arithmetic struct{ FMA, Add float64 }

// Progress is called with what is measured next, and how much of all is done.
type Progress func(what string, done, total int)

// Host is how programs for this machine's processor are compiled and run.
type Host struct {
	Title   string // what the processor is called
	Threads int
	// Compile runs the compiler of kernels in dir for their level of processors, with
	// further arguments.
	Compile func(ctx context.Context, dir string, args ...string) error
}

var findHost = func(context.Context) (Host, error) {
	return Host{}, errors.New("this build compiles no programs for processors")
}

// Register sets the function that finds out how programs are compiled and run; its error
// is why they cannot be.
func Register(find func(context.Context) (Host, error)) { findHost = find }

// Measure measures this machine's processor for some seconds.
func Measure(ctx context.Context, progress Progress) (*Figures, error) {
	progress("compiling", 0, 1)
	h, err := findHost(ctx)
	if err != nil {
		return nil, err
	}
	lib, err := build(ctx, h)
	if err != nil {
		return nil, err
	}
	found := system()
	b, err := lib.start(h.Threads, found.large())
	if err != nil {
		return nil, err
	}
	defer b.stop()
	f, err := measure(ctx, b, found, progress)
	if err != nil {
		return nil, err
	}
	f.Title = h.Title
	return f, nil
}

// measurement is a bench in use.
type measurement struct {
	bench
	ctx      context.Context
	progress Progress
	done     int
	large    int64 // working set that lies in the memory
}

// stages is how many times progress is reported.
const stages = 9

func (x *measurement) stage(what string) error {
	x.progress(what, x.done, stages)
	x.done++
	return x.ctx.Err()
}

// measure is what b, which the system describes as found, reaches.
func measure(ctx context.Context, b bench, found processor, progress Progress) (*Figures, error) {
	x := &measurement{bench: b, ctx: ctx, progress: progress, large: found.large()}
	if err := x.stage("memory"); err != nil {
		return nil, err
	}
	b.time(fill, x.large, 1)
	f := &Figures{Threads: b.threads(), Memory: found.memory, Grain: grain}
	f.Move = x.bandwidths(x.large)
	for _, k := range []struct {
		to       *Arithmetic
		bytes    int64
		fma, add int
	}{{&f.F32, 4, fma32, add32}, {&f.F64, 8, fma64, add64}} {
		if err := x.stage(fmt.Sprintf("arithmetic on f%d", 8*k.bytes)); err != nil {
			return nil, err
		}
		k.to.FMA = 2 * x.rate(k.fma, k.bytes)
		k.to.Add = min(k.to.FMA, x.rate(k.add, k.bytes))
	}
	if err := x.caches(f, found); err != nil {
		return nil, err
	}
	if err := x.stage("launches"); err != nil {
		return nil, err
	}
	f.Launch = x.best(empty, 0)
	f.Call = min(f.Launch, callLatency)
	return f, ctx.Err()
}

// callLatency is what the runtime takes for a step beside its kernel: a call, and a look
// at the clock.
const callLatency = 50e-9

// caches measures the caches, the smallest first.
func (x *measurement) caches(f *Figures, found processor) error {
	below := int64(64 * kib * x.threads()) // more than caches that only one thread has
	for i, c := range found.caches {
		if i == len(found.caches)-1 && i > 0 {
			break
		}
		if err := x.stage(fmt.Sprintf("cache L%d", c.level)); err != nil {
			return err
		}
		total := c.size
		if c.own {
			total *= int64(x.threads())
		}
		f.Caches = append(f.Caches, Cache{c.level, c.size, c.own, x.bandwidths(total / 2)})
		below = max(below, total)
	}
	if err := x.stage("last cache"); err != nil {
		return err
	}
	if last, ok := x.last(f, found, 3*below); ok {
		f.Caches = append(f.Caches, last)
	}
	slower := f.Move
	for i := len(f.Caches) - 1; i >= 0; i-- { // a smaller cache is no slower, whatever disturbed the measurement
		c := &f.Caches[i].Move
		c.Both, c.Read, c.Random, c.Rows = max(c.Both, slower.Both), max(c.Both, c.Read, slower.Read), max(c.Random, slower.Random), max(c.Random, c.Rows, slower.Rows)
		slower = *c
	}
	return nil
}

// last is the cache that all cores share. How much of it a program has depends on what
// else runs on the machine, and on others than this one where it is virtual: its size is
// measured, the working set whose time lies half-way to the memory's. first is one that
// the other caches do not hold.
func (x *measurement) last(f *Figures, found processor, first int64) (Cache, bool) {
	c := Cache{Level: 1}
	if n := len(found.caches); n > 0 {
		c.Level = max(found.caches[n-1].level, len(f.Caches)+1)
	}
	if first*2 > x.large {
		return c, false
	}
	c.Move = x.bandwidths(first)
	if c.Move.Both < 1.3*f.Move.Both {
		return c, false
	}
	half := (1/c.Move.Both + 1/f.Move.Both) / 2
	lo, hi := math.Log(float64(first)), math.Log(float64(x.large))
	for hi-lo > math.Log(1.1) && x.ctx.Err() == nil {
		size := int64(math.Exp((lo + hi) / 2))
		if x.best(copied, size)/float64(size) < half {
			lo = math.Log(float64(size))
		} else {
			hi = math.Log(float64(size))
		}
	}
	c.Size = int64(math.Exp(lo))
	if c.Size > mib {
		c.Size &^= mib - 1
	}
	c.Move.Random, c.Move.Rows = x.atRandom(int64(math.Sqrt(float64(first) * float64(c.Size)))) // of which the other caches hold little
	return c, true
}

// bandwidths are those of a working set: for as many reads as writes, for reads, and for reads at random.
func (x *measurement) bandwidths(size int64) Bandwidths {
	both, reads := float64(size)/x.best(copied, size), float64(size)/x.best(read, size)
	random, rows := x.atRandom(size)
	return Bandwidths{both, max(both, reads), random, rows}
}

// atRandom are the bandwidths of lines and of rows of a working set that are read at random.
func (x *measurement) atRandom(size int64) (random, rows float64) {
	random = float64(size) / x.best(gathered, size)
	return random, max(random, float64(size)/x.best(gatheredRows, size))
}

// rate is the operations of a job of arithmetic in a second, on elements of so many bytes.
func (x *measurement) rate(job int, bytes int64) float64 {
	lanes := x.vector() / bytes
	return float64(chains*lanes*int64(x.threads())) / x.best(job, 0)
}

// A measurement takes the shortest of several times: others lengthen a time, and
// nothing shortens it. Times are short, so that some lie between the turns of other
// processes.
const (
	short  = 1e-3 // seconds of one time, as far as the job allows
	enough = 0.2  // seconds of all
	least  = 5    // times
)

// best is the seconds of one repeat of a job.
func (x *measurement) best(job int, bytes int64) float64 {
	repeats, shortest, total := int64(1), math.Inf(1), 0.0
	for n := 0; n < least || total < enough; {
		t := max(x.time(job, bytes, repeats), 1e-9)
		shortest = min(shortest, t/float64(repeats))
		switch {
		case x.ctx.Err() != nil:
			return shortest
		case t < short/2 && repeats < 1<<24: // what begins and ends the job is still part of the time
			repeats *= 2
			continue
		}
		total += t
		n++
	}
	return shortest
}
