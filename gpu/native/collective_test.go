package native

import (
	"context"
	"encoding/binary"
	"strings"
	"sync"
	"testing"

	"dmir/gpu/artifact"
	"dmir/gpu/collective"
)

// sums is a program of two devices with two all-reduces on a stream of their own: of a and b, beside which runs a fill of c.
func sums() *artifact.Program {
	buffer := func(name string, n int64) artifact.Buffer {
		return artifact.Buffer{Name: name, Elem: "i32", Shape: []int64{n}, Bytes: 4 * n}
	}
	reduce := func(b int, waits ...int) artifact.Step {
		return artifact.Step{Name: "sum", Kind: artifact.StepCollective, Stream: 1, Waits: waits, Collective: artifact.Collective{
			Op: artifact.AllReduce, Reduction: "add", From: b, To: b, Axes: []artifact.Span{{Size: 2, Stride: 1}},
		}}
	}
	fill := func(waits ...int) artifact.Step {
		return artifact.Step{Name: "fill", Kind: artifact.StepFill, Move: artifact.Move{To: 2}, Waits: waits}
	}
	return &artifact.Program{
		Name: "sums", Divided: &artifact.Distribution{Mesh: "pair", Axes: []artifact.MeshAxis{{Name: "x", Size: 2}}},
		Buffers: []artifact.Buffer{buffer("a", 1), buffer("b", 2), buffer("c", 1)},
		Steps:   []artifact.Step{reduce(0), fill(), reduce(1, 1), fill(0), fill(2)},
	}
}

// Steps run beside a collective where the next one does not wait for it, nor for one behind it.
func TestBackground(t *testing.T) {
	p := sums()
	for _, c := range []struct {
		name           string
		change         func()
		beside, behind []int
	}{
		{"a fill beside each", func() {}, []int{1, 0, 1, 0, 0}, []int{-1, -1, -1, 0, 2}},
		{"the next step waits", func() { p.Steps[1].Waits = []int{0} }, []int{0, 0, 1, 0, 0}, []int{-1, 0, -1, 0, 2}},
		{"for a later one", func() { p.Steps[1], p.Steps[2] = p.Steps[2], p.Steps[1]; p.Steps[2].Waits = []int{1} }, []int{0, 0, 0, 0, 0}, []int{-1, -1, 1, 0, -1}},
		{"on the stream of kernels", func() { p.Steps[0].Stream = 0 }, []int{0, 0, 1, 0, 0}, []int{-1, -1, -1, -1, 2}},
		{"last", func() { p.Steps = p.Steps[:1] }, []int{0}, []int{-1}},
	} {
		p = sums()
		c.change()
		beside, behind := background(p)
		for i := range p.Steps {
			if beside[i] != c.beside[i] || behind[i] != c.behind[i] {
				t.Errorf("%s: %v beside, %v behind; want %v, %v", c.name, beside, behind, c.beside, c.behind)
				break
			}
		}
	}
}

// expired is a context whose deadline passes when done is closed.
type expired struct {
	context.Context
	done chan struct{}
}

func (e expired) Done() <-chan struct{} { return e.done }

func (e expired) Err() error {
	select {
	case <-e.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// run lets each rank begin collectives in its order and finish them, as C code does, and gives the ranks' values and errors;
// rank 1 calls ended at its end.
func run(ctx context.Context, orders [2][]int32, ended func()) (values [2][3]int32, errs [2]error) {
	p := sums()
	var all sync.WaitGroup
	for rank, c := range collective.Local(2) {
		all.Go(func() {
			x := &exchange{ctx: ctx, n: &instance{p: p}, comm: c, last: map[int32]int{}}
			x.changed.L = &x.mu
			a, b := []byte{byte(rank + 1), 0, 0, 0}, []byte{10, 0, 0, 0, 20, 0, 0, 0}
			buffers := map[int32][]byte{0: a, 2: b}
			good := true
			for _, step := range orders[rank] {
				good = x.begin(exchanged{step, []collective.Value{{From: buffers[step], To: buffers[step]}}}) && good
			}
			for _, step := range append(orders[rank][:len(orders[rank]):len(orders[rank])], -1) {
				good = x.finish(step) && good
			}
			x.mu.Lock()
			x.over = true
			x.changed.Broadcast()
			errs[rank] = x.err
			if good != (x.err == nil) {
				panic("an error that C code was not told")
			}
			x.mu.Unlock()
			if rank == 1 {
				ended()
			}
			values[rank] = [3]int32{int32(binary.LittleEndian.Uint32(a)), int32(binary.LittleEndian.Uint32(b)), int32(binary.LittleEndian.Uint32(b[4:]))}
		})
	}
	all.Wait()
	return values, errs
}

// Collectives in the background end in the order in which they are begun. Ranks that begin them in different orders, which no
// two ranks of one program do, and a rank that begins one less, are told and do not hang; so is one whose run is cancelled.
func TestExchangeInTheBackground(t *testing.T) {
	values, errs := run(t.Context(), [2][]int32{{0, 2}, {0, 2}}, func() {})
	if want := [3]int32{3, 20, 40}; values[0] != want || values[1] != want || errs[0] != nil || errs[1] != nil {
		t.Errorf("%v, %v", values, errs)
	}
	_, errs = run(t.Context(), [2][]int32{{0, 2}, {2, 0}}, func() {})
	for rank, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "ranks do not make the same call") {
			t.Errorf("in different orders: rank %d: %v", rank, err)
		}
	}
	over := expired{t.Context(), make(chan struct{})}
	_, errs = run(over, [2][]int32{{0, 2}, {0}}, func() { close(over.done) })
	if errs[0] == nil || !strings.Contains(errs[0].Error(), context.DeadlineExceeded.Error()) || errs[1] != nil {
		t.Errorf("one rank alone: %v", errs)
	}
}
