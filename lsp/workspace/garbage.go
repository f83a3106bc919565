package workspace

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// garbage lets the collector rest while texts are read. Nearly all that reading
// makes stays: to look for garbage meanwhile takes a quarter of the time and
// finds nothing.
type garbage struct {
	mu      sync.Mutex
	resting int // texts that are being read, or have just been
	percent int // what to go back to
	limit   int64
	base    int64 // memory in use when the rest began
}

var collector garbage

const (
	anyAmount = 10_000                // percent of new memory before the collector works
	spare     = 32 << 20              // bytes that reading any text may take,
	perByte   = 20                    // and for each of its bytes, before the collector works all the same
	afterward = 50 * time.Millisecond // in which diagnostics are sent
	largeText = 1 << 20               // bytes from which a text leaves enough behind to give it back at once
	hugeText  = 8 << 20               // bytes from which it is worth a collection before and after it is read
)

// rest has the collector rest until shortly after wake is called, or until more
// memory is in use than a text of n bytes should take.
func (g *garbage) rest(n int) (wake func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n >= hugeText {
		runtime.GC() // takes the message that brought the text, while little else is there
	}
	if g.resting++; g.resting == 1 {
		g.limit = debug.SetMemoryLimit(-1)
		g.percent = debug.SetGCPercent(anyAmount)
		g.base = inUse()
	}
	room := g.base + spare + perByte*int64(n)
	if now := debug.SetMemoryLimit(-1); room < g.limit && (now == g.limit || room > now) {
		debug.SetMemoryLimit(room)
	}
	return func() {
		time.AfterFunc(afterward, func() {
			g.wake()
			if n >= hugeText {
				runtime.GC() // before lint asks for more memory
			}
		})
	}
}

func (g *garbage) wake() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.resting--; g.resting == 0 {
		debug.SetMemoryLimit(g.limit)
		debug.SetGCPercent(g.percent)
	}
}

// inUse is the memory of this process that Go manages.
func inUse() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64() - s[1].Value.Uint64())
}
