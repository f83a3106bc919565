package native

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"dmir/gpu/artifact"
	"dmir/gpu/device"
)

// endless is a loop that never ends, unless the predicate is false.
func endless() *artifact.Program {
	b := program("endless")
	again, y := b.buffer("again", "i1", artifact.Input, 1), b.buffer("y", "f32", artifact.Output, 3)
	b.fill(y)
	b.decide(artifact.StepLoop, artifact.Decision{On: again, Parts: [2]int{0, 1}})
	b.launch("grow", "%r = fadd float %v0, 1.0", y)
	return b.done()
}

// A cancel ends a loop; the next run is another instance.
func TestCancel(t *testing.T) {
	needClang(t)
	cached(t)
	n, _, err := prepare(t.Context(), endless(), nil)
	must(t, err)
	defer n.Close()
	n.input(0, []byte{1})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for n.lib.At(n.at) < 1 {
			runtime.Gosched()
		}
		cancel()
	}()
	if err := n.run(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := n.run(t.Context(), nil); err == nil {
		t.Error("a cancelled instance runs again")
	}
	if _, err := (processor{}).Run(t.Context(), endless(), [][]byte{{1}}, device.Options{Timeout: time.Millisecond}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without time: %v", err)
	}
	r, err := processor{}.Run(t.Context(), endless(), [][]byte{{0}}, device.Options{Timeout: time.Hour})
	must(t, err)
	if err := equal([]float32{0, 0, 0})(r.Outputs); err != nil {
		t.Error(err)
	}
}

// A kernel that hangs does not keep the caller, and its memory is freed when it ends.
func TestHang(t *testing.T) {
	needClang(t)
	cached(t)
	b := program("hang")
	x, y := b.buffer("x", "i32", artifact.Input, 1), b.buffer("y", "i32", artifact.Output, 1)
	b.launch("hang", "br label %wait\nwait:\n%w = load volatile i32, i32* %at0\n%c = icmp eq i32 %w, 0\nbr i1 %c, label %wait, label %go\ngo:\n%r = add i32 %w, 0", x, y)
	// The loop of the helper continues from another block.
	p := b.done()
	p.Source = strings.Replace(p.Source, "[ %next, %loop ]", "[ %next, %go ]", 1)
	n, _, err := prepare(t.Context(), p, nil)
	must(t, err)
	flag := make([]byte, 4)
	n.input(0, flag)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for n.lib.At(n.at) < 0 {
			runtime.Gosched()
		}
		cancel()
	}()
	if err := n.run(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	must(t, n.Close())
	atomic.StoreInt32((*int32)(unsafe.Pointer(&flag[0])), 1)
	<-n.ended
}

// Launches of many threads and of one, by the work of a step.
func BenchmarkStep(b *testing.B) {
	needClang(b)
	cached(b)
	for _, threads := range []string{"1", "2"} {
		for _, n := range []int64{1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18} {
			for _, split := range []bool{false, true} {
				if threads == "1" && split {
					continue
				}
				b.Run(fmt.Sprintf("threads=%s/bytes=%d/split=%v", threads, 8*n, split), func(b *testing.B) {
					b.Setenv("DMIR_THREADS", threads)
					p := doubled(n)
					if p.Steps[0].FLOP = 1; split { // without a prediction all threads run
						p.Steps[0].FLOP = 0
					}
					i, _, err := prepare(b.Context(), p, nil)
					must(b, err)
					defer i.Close()
					i.input(0, make([]byte, 4*n))
					i.output(0, make([]byte, 4*n))
					total := 0.0
					for b.Loop() {
						must(b, i.run(context.Background(), nil))
						total += i.lib.Time(i.at)
					}
					b.ReportMetric(total/float64(b.N), "ns/step")
				})
			}
		}
	}
}
