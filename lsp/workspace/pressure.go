package workspace

import (
	"context"
	"math"
	"runtime/debug"
	"time"
)

// pressure is how near the server is to its memory ceiling, at which the system might
// end it.
type pressure struct {
	ceiling int64        // of the collector when the workspace began
	used    func() int64 // bytes
}

// looks is how often memory is looked at while a deep diagnosis runs.
const looks = 100 * time.Millisecond

// ceiling is the memory limit of the process, math.MaxInt64 where there is none.
func ceiling() int64 { return debug.SetMemoryLimit(-1) }

// high reports whether less than a tenth of the memory is left.
func (p *pressure) high() bool {
	return p.ceiling < math.MaxInt64 && p.used() > p.ceiling/10*9
}

// watch gives up the deep diagnosis of d, by cancel, and forgets the analyses of other
// documents once memory runs out; until stop is called.
func (w *Workspace) watch(d *document, cancel context.CancelFunc) (stop func()) {
	if w.pressure.ceiling == math.MaxInt64 {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		t := time.NewTicker(looks)
		defer t.Stop()
		for {
			select {
			case <-done:
				return
			case <-t.C:
				if w.pressure.high() {
					cancel()
					w.shed(d)
					return
				}
			}
		}
	}()
	return func() { close(done) }
}

// relieve makes room before a text is analysed.
func (w *Workspace) relieve(d *document) {
	if w.pressure.high() {
		w.shed(d)
	}
}

// shed forgets the analyses of all documents but d that no request uses. The next
// request makes them again.
func (w *Workspace) shed(d *document) {
	w.mu.Lock()
	for _, other := range w.docs {
		if other != d {
			other.snap.analysis.drop()
		}
	}
	w.mu.Unlock()
	debug.FreeOSMemory()
}
