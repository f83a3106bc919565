package collective

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"dmir/compile/tensor"
	"dmir/dialect/types"
)

// What fails on one rank ends all others, with one reason.
func TestLocalFailures(t *testing.T) {
	b := func() []byte { return make([]byte, 16) }
	both := []int{0, 1}
	for _, c := range []struct {
		name  string
		ranks []func(ctx context.Context, c Comm) error // what each rank calls
		want  string
	}{
		{"other op", calls(
			func(ctx context.Context, c Comm) error { return c.AllReduce(ctx, both, Add, "f32", b()) },
			func(ctx context.Context, c Comm) error { return c.AllGather(ctx, both, "f32", b()[:8], b()) },
		), "ranks do not make the same call: rank 0 calls all_reduce add f32 of 16 bytes on ranks 0, 1, rank 1 calls all_gather f32 of 8 bytes on ranks 0, 1"},
		{"other reduction", calls(
			func(ctx context.Context, c Comm) error { return c.AllReduce(ctx, both, Add, "f32", b()) },
			func(ctx context.Context, c Comm) error { return c.AllReduce(ctx, both, Max, "f32", b()) },
		), "ranks do not make the same call: rank 0 calls all_reduce add f32 of 16 bytes on ranks 0, 1, rank 1 calls all_reduce max f32"},
		{"other size", calls(
			func(ctx context.Context, c Comm) error { return c.AllReduce(ctx, both, Add, "f32", b()) },
			func(ctx context.Context, c Comm) error { return c.AllReduce(ctx, both, Add, "f32", b()[:8]) },
		), "ranks do not make the same call: rank 0 calls all_reduce add f32 of 16 bytes on ranks 0, 1, rank 1 calls all_reduce add f32 of 8 bytes"},
		{"other group", calls(
			func(ctx context.Context, c Comm) error { return c.AllReduce(ctx, both, Add, "f32", b()) },
			func(ctx context.Context, c Comm) error { return c.AllReduce(ctx, []int{0, 1, 2}, Add, "f32", b()) },
			func(ctx context.Context, c Comm) error { return nil },
		), "ranks do not make the same call: rank 0 calls all_reduce add f32 of 16 bytes on ranks 0, 1, rank 1 calls all_reduce add f32 of 16 bytes on ranks 0, 1, 2"},
		{"groups in a circle", calls(
			func(ctx context.Context, c Comm) error { return c.AllReduce(ctx, []int{0, 1}, Add, "f32", b()) },
			func(ctx context.Context, c Comm) error { return c.AllReduce(ctx, []int{1, 2}, Add, "f32", b()) },
			func(ctx context.Context, c Comm) error { return c.AllReduce(ctx, []int{0, 2}, Add, "f32", b()) },
		), "ranks do not make the same call: rank 0 calls all_reduce add f32 of 16 bytes on ranks 0, 1, rank 1 calls all_reduce add f32 of 16 bytes on ranks 1, 2"},
		{"messages of other sizes", calls(
			func(ctx context.Context, c Comm) error { return c.Permute(ctx, 1, -1, b(), b()) },
			func(ctx context.Context, c Comm) error { return c.Permute(ctx, -1, 0, b()[:8], b()[:8]) },
		), "ranks do not make the same call: rank 0 calls collective_permute of 16 bytes to rank 1 from none, rank 1 calls collective_permute of 8 bytes to none from rank 0"},
		{"a message that is not received", calls(
			func(ctx context.Context, c Comm) error { return c.Permute(ctx, 1, -1, b(), b()) },
			func(ctx context.Context, c Comm) error { return c.Permute(ctx, -1, -1, b(), b()) },
		), "rank 0 waits in collective_permute of 16 bytes to rank 1 from none for rank 1, which has left the run"},
		{"a message and a barrier", calls(
			func(ctx context.Context, c Comm) error { return c.Permute(ctx, 1, -1, b(), b()) },
			func(ctx context.Context, c Comm) error { return c.Barrier(ctx) },
		), "ranks do not make the same call: rank 0 calls collective_permute of 16 bytes to rank 1 from none, rank 1 calls barrier"},
		{"a message that was not sent", calls(
			func(ctx context.Context, c Comm) error { return c.Recv(ctx, 1, 5, b()) },
			func(ctx context.Context, c Comm) error { return c.Send(ctx, 0, 4, b()) },
		), "rank 0 waits in recv of 16 bytes from rank 1 with tag 5 for rank 1, which has left the run"},
		{"receivers in a circle", calls(
			func(ctx context.Context, c Comm) error {
				return errors.Join(c.Recv(ctx, 1, 5, b()), c.Send(ctx, 1, 5, b()))
			},
			func(ctx context.Context, c Comm) error {
				return errors.Join(c.Recv(ctx, 0, 5, b()), c.Send(ctx, 0, 5, b()))
			},
		), "ranks do not make the same call: rank 0 calls recv of 16 bytes from rank 1 with tag 5, rank 1 calls recv of 16 bytes from rank 0 with tag 5"},
		{"a message of another size", calls(
			func(ctx context.Context, c Comm) error { return c.Recv(ctx, 1, 5, b()) },
			func(ctx context.Context, c Comm) error { return c.Send(ctx, 0, 5, b()[:4]) },
		), "rank 0: recv of 16 bytes from rank 1 with tag 5: rank 1 has sent 4 bytes"},
		{"a message and a collective", calls(
			func(ctx context.Context, c Comm) error { return c.Recv(ctx, 1, 5, b()) },
			func(ctx context.Context, c Comm) error { return c.Barrier(ctx) },
		), "ranks do not make the same call: rank 0 calls recv of 16 bytes from rank 1 with tag 5, rank 1 calls barrier"},
		{"other roots", calls(
			func(ctx context.Context, c Comm) error { return c.Broadcast(ctx, 0, b()) },
			func(ctx context.Context, c Comm) error { return c.Broadcast(ctx, 1, b()) },
		), "ranks do not make the same call: rank 0 calls broadcast of 16 bytes from rank 0, rank 1 calls broadcast of 16 bytes from rank 1"},
		{"a rank has left", calls(
			func(ctx context.Context, c Comm) error { return c.Barrier(ctx) },
			func(ctx context.Context, c Comm) error { return nil },
		), "rank 0 waits in barrier for rank 1, which has left the run"},
		{"a rank gives up", calls(
			func(ctx context.Context, c Comm) error { return c.Barrier(ctx) },
			func(ctx context.Context, c Comm) error {
				c.Abort(errors.New("the disk is full"))
				return c.Barrier(ctx)
			},
			func(ctx context.Context, c Comm) error { return c.Permute(ctx, 1, 1, b(), b()) },
		), "rank 1: the disk is full"},
		{"a rank is interrupted", calls(
			func(ctx context.Context, c Comm) error { return c.AllReduce(ctx, both, Add, "f32", b()) },
			func(ctx context.Context, c Comm) error {
				ctx, cancel := context.WithCancel(ctx)
				cancel()
				return c.AllReduce(ctx, both, Add, "f32", b())
			},
		), "rank 1: all_reduce add f32 of 16 bytes on ranks 0, 1: context canceled"},
		{"a rank is interrupted while it waits", calls(
			func(ctx context.Context, c Comm) error {
				ctx, cancel := context.WithTimeout(ctx, 1) // ends before or in the call
				defer cancel()
				return c.Barrier(ctx)
			},
			func(ctx context.Context, c Comm) error { return c.Permute(ctx, 2, 2, b(), b()) },
			func(ctx context.Context, c Comm) error { <-ctx.Done(); return nil },
		), "rank 0: barrier: context deadline exceeded"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			reports := 0
			for rank, err := range onLocal(len(c.ranks), func(comm Comm) error {
				err := c.ranks[comm.Rank()](ctx, comm)
				if err != nil {
					cancel()
				}
				closed := comm.Close()
				if err == nil {
					err = closed
				}
				return err
			}) {
				if err == nil {
					continue // a rank that waited for nothing
				}
				if !strings.HasPrefix(err.Error(), c.want) {
					t.Errorf("rank %d: %v, want %s", rank, err, c.want)
				}
				if ended := (*Ended)(nil); !errors.As(err, &ended) {
					reports++
				}
			}
			if reports != 1 {
				t.Errorf("%d ranks report the failure", reports)
			}
		})
	}
}

func calls(f ...func(ctx context.Context, c Comm) error) []func(ctx context.Context, c Comm) error {
	return f
}

// What a call refuses is an error of that rank alone; the run goes on.
func TestWrongArguments(t *testing.T) {
	ctx, c := t.Context(), Local(2)[1]
	b := func(n int) []byte { return make([]byte, n) }
	for _, test := range []struct {
		err  error
		want string
	}{
		{c.AllReduce(ctx, []int{0, 1}, Add, "f7", b(4)), `rank 1: all_reduce: buffers do not hold elements of "f7"`},
		{c.AllReduce(ctx, []int{0, 1}, Add, "f32", b(6)), "rank 1: all_reduce: buffers of 6 and 6 bytes do not have 1 equal parts of f32"},
		{c.AllReduce(ctx, []int{0}, Add, "f32", b(4)), "rank 1: all_reduce: rank 1 is not in the group [0] that it calls with"},
		{c.AllReduce(ctx, []int{1, 0}, Add, "f32", b(4)), "rank 1: all_reduce: the group [1 0] must list ranks from 0 to 1 in ascending order"},
		{c.AllReduce(ctx, []int{1, 2}, Add, "f32", b(4)), "rank 1: all_reduce: the group [1 2] must list ranks from 0 to 1 in ascending order"},
		{c.AllReduce(ctx, nil, Add, "f32", b(4)), "rank 1: all_reduce: rank 1 is not in the group [] that it calls with"},
		{c.AllReduce(ctx, []int{0, 1}, Or, "bf16", b(4)), `rank 1: all_reduce: the reduction "or" is of integers, not of bf16`},
		{c.AllReduce(ctx, []int{0, 1}, "xor", "i8", b(4)), `rank 1: all_reduce: there is no reduction "xor"`},
		{c.ReduceScatter(ctx, []int{0, 1}, Add, "i32", b(4), b(4)), "rank 1: reduce_scatter: buffers of 4 and 4 bytes do not have 2 equal parts of i32"},
		{c.ReduceScatter(ctx, []int{0, 1}, "", "i32", b(8), b(4)), `rank 1: reduce_scatter: there is no reduction ""`},
		{c.AllGather(ctx, []int{0, 1}, "i32", b(4), b(12)), "rank 1: all_gather: buffers of 4 and 12 bytes do not have 2 equal parts of i32"},
		{c.AllToAll(ctx, []int{0, 1}, "i32", b(8), b(4)), "rank 1: all_to_all: buffers of 8 and 4 bytes do not have 2 equal parts of i32"},
		{c.AllToAll(ctx, []int{0, 1}, "i32", b(9), b(9)), "rank 1: all_to_all: buffers of 9 and 9 bytes do not have 2 equal parts of i32"},
		{c.Permute(ctx, 2, 0, b(4), b(4)), "rank 1: collective_permute: there is no rank 2 to exchange with: the run has 2 ranks"},
		{c.Permute(ctx, 1, 0, b(4), b(4)), "rank 1: collective_permute: rank 1 must both send to itself and receive from itself, or neither"},
		{c.Permute(ctx, 0, 0, b(4), b(8)), "rank 1: collective_permute: 4 bytes to send and 8 to receive: both must be of one size"},
		{c.Send(ctx, 2, 0, b(4)), "rank 1: send: there is no rank 2: the run has 2 ranks"},
		{c.Recv(ctx, 1, 0, b(4)), "rank 1: recv: rank 1 sends nothing to itself"},
		{c.Recv(ctx, 0, -1, b(4)), "rank 1: recv: the tag -1 is negative"},
		{c.Broadcast(ctx, -1, b(4)), "rank 1: broadcast: there is no rank -1 to broadcast from: the run has 2 ranks"},
	} {
		if test.err == nil || test.err.Error() != test.want {
			t.Errorf("%v, want %s", test.err, test.want)
		}
	}
}

// A rank that is ahead does not disturb those that still exchange.
func TestLocalRanksRunAhead(t *testing.T) {
	err := errors.Join(onLocal(4, func(c Comm) error {
		for range 50 {
			if err := permuteCases(t.Context(), c); err != nil {
				return err
			}
		}
		return c.Close()
	})...)
	if err != nil {
		t.Error(err)
	}
}

// Sums go from rank to rank in f32 and are rounded once, so that the result is that of
// the formula, to the bit.
func TestLocalSumsInOrder(t *testing.T) {
	values := []float32{1 << 24, 1, 1, -(1 << 24)}
	for elem, want := range map[types.Elem]float64{types.F64: 2, types.F32: 0} {
		err := errors.Join(onLocal(4, func(c Comm) error {
			v := float64(values[c.Rank()])
			b := buffer(elem, []uint64{types.ToBits(v, elem)})
			if err := c.AllReduce(t.Context(), everyone(c), Add, elem.String(), b); err != nil {
				return err
			}
			return same(elem, b, buffer(elem, []uint64{types.ToBits(want, elem)}))
		})...)
		if err != nil {
			t.Errorf("%s: %v", elem, err)
		}
	}
	// 256 and four times 1 are 260 if rounded once, and 256 in bf16 step by step.
	parts := []float64{256, 1, 1, 2}
	err := errors.Join(onLocal(4, func(c Comm) error {
		b := buffer(types.BF16, []uint64{types.ToBits(parts[c.Rank()], types.BF16)})
		if err := c.AllReduce(t.Context(), everyone(c), Add, "bf16", b); err != nil {
			return err
		}
		return same(types.BF16, b, buffer(types.BF16, []uint64{types.ToBits(260, types.BF16)}))
	})...)
	if err != nil {
		t.Error(err)
	}
}

// Small floating-point types are read and rounded as everywhere else: every encoding, the
// values between each two, and beyond.
func TestNarrowTypesAreThoseOfTensors(t *testing.T) {
	for _, elem := range []types.Elem{types.F16, types.BF16, types.F8E4M3FN, types.F8E5M2} {
		n := int(elem.Bytes())
		var got [1]float32
		var last float32
		for bits := range uint64(1) << elem.Bits() {
			b := binary.LittleEndian.AppendUint64(nil, bits)[:n]
			widen(elem.String(), b, got[:])
			want := float32(types.FromBits(bits, elem))
			if math.Float32bits(got[0]) != math.Float32bits(want) && !(want != want && got[0] != got[0]) {
				t.Fatalf("%s %#x is %g, want %g", elem, bits, got[0], want)
			}
			mid := (last + got[0]) / 2
			for _, v := range []float32{got[0], mid, math.Nextafter32(mid, 1), math.Nextafter32(mid, -1), got[0] * 3} {
				out := make([]byte, n)
				round(elem.String(), []float32{v}, out)
				want := buffer(elem, []uint64{types.ToBits(float64(tensor.Round(elem, v)), elem)})
				if err := same(elem, out, want); err != nil {
					t.Fatalf("%s of %g (%#x): %v", elem, v, math.Float32bits(v), err)
				}
			}
			last = got[0]
		}
	}
}

// What MPI reduces in place of elements it does not reduce converts back.
func TestWireConvertsBack(t *testing.T) {
	for _, elem := range elems {
		for _, how := range reductions {
			if elem.IsFloat() && (how == And || how == Or) {
				continue
			}
			in := buffer(elem, numbers(elem, Max, 1, 2*blocks))
			w := wireOf(how, elem.String())
			out := make([]byte, len(in))
			encoded := w.encode(in)
			if w.count(encoded) == 0 || len(encoded)%w.unit != 0 || mpichTypes[w.elem] == 0 || openMPITypes[w.elem] == "" {
				t.Fatalf("%s %s is %d bytes of %s", how, elem, len(encoded), w.elem)
			}
			if w.write == nil {
				copy(out, encoded)
			} else {
				w.decode(encoded, out)
			}
			if err := same(elem, out, in); err != nil {
				t.Errorf("%s %s: %v", how, elem, err)
			}
		}
	}
}
