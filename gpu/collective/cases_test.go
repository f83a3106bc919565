package collective

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"dmir/dialect/types"
)

// elems are all element types.
var elems = []types.Elem{
	types.F64, types.F32, types.F16, types.BF16, types.F8E4M3FN, types.F8E5M2,
	types.I64, types.I32, types.I16, types.I8, types.I4, types.I1,
	types.UI64, types.UI32, types.UI16, types.UI8, types.UI4, types.Index,
}

var reductions = []Reduction{Add, Mul, Max, Min, And, Or}

// groupsOf are the groups of a run of n ranks that the cases use.
func groupsOf(n int) (all [][]int) {
	for set := 1; set < 1<<n; set++ {
		var g []int
		for r := range n {
			if set>>r&1 == 1 {
				g = append(g, r)
			}
		}
		all = append(all, g)
	}
	return all
}

// numbers are n elements of a rank as bits. Sums and products of floating-point ones are exact
// in f32, so that they do not depend on the order; max and min get special values too.
func numbers(elem types.Elem, how Reduction, rank, n int) []uint64 {
	r := rand.New(rand.NewPCG(uint64(rank), uint64(elem)))
	all := make([]uint64, n)
	for i := range all {
		switch {
		case elem == types.I1: // of a byte
			all[i] = r.Uint64() & 1
		case !elem.IsFloat():
			all[i] = r.Uint64() & (1<<elem.Bits() - 1)
			if elem.Bits() == 64 {
				all[i] = r.Uint64()
			}
		case how == Mul:
			all[i] = types.ToBits([]float64{1, -1, 2, -2, 0.5}[r.IntN(5)], elem)
		case how == Max || how == Min:
			special := []float64{0, math.Copysign(0, -1), math.NaN(), 1, -1, 2, -3, 448, -0.5}
			all[i] = types.ToBits(special[r.IntN(len(special))], elem)
		default:
			all[i] = types.ToBits(float64(r.IntN(5)-2), elem)
		}
	}
	return all
}

// buffer are elements as devices have them.
func buffer(elem types.Elem, all []uint64) []byte {
	if elem.Packed() {
		b := make([]byte, len(all)/2)
		for i := range b {
			b[i] = byte(all[2*i]&15 | all[2*i+1]&15<<4)
		}
		return b
	}
	var b []byte
	for _, v := range all {
		b = append(b, binary.LittleEndian.AppendUint64(nil, v)[:elem.Bytes()]...)
	}
	return b
}

// naive combines two elements as their type defines it. sum is the value so far, in f32 or f64.
func naive(elem types.Elem, how Reduction, group []int, at func(rank int) uint64) uint64 {
	if elem.IsFloat() {
		sum := types.FromBits(at(group[0]), elem)
		for _, rank := range group[1:] {
			v := types.FromBits(at(rank), elem)
			switch how {
			case Add:
				sum += v
			case Mul:
				sum *= v
			case Max:
				sum = math.Max(sum, v)
			case Min:
				sum = math.Min(sum, v)
			}
			if elem != types.F64 {
				sum = float64(float32(sum))
			}
		}
		return types.ToBits(sum, elem)
	}
	signed := func(v uint64) int64 { s := 64 - elem.Bits(); return int64(v) << s >> s }
	sum := at(group[0])
	for _, rank := range group[1:] {
		v := at(rank)
		switch how {
		case Add:
			sum += v
			if elem == types.I1 {
				sum = min(sum, 1)
			}
		case Mul:
			sum *= v
		case And:
			sum &= v
		case Or:
			sum |= v
		default:
			less := v < sum
			if !elem.IsUnsigned() && elem != types.I1 {
				less = signed(v) < signed(sum)
			}
			if less == (how == Min) {
				sum = v
			}
		}
	}
	return sum
}

// same compares buffers; NaNs are equal.
func same(elem types.Elem, got, want []byte) error {
	if bytes.Equal(got, want) {
		return nil
	}
	if elem.IsFloat() && len(got) == len(want) {
		n := int(elem.Bytes())
		for i := 0; ; i += n {
			if i == len(got) {
				return nil
			}
			bits := func(b []byte) float64 {
				return types.FromBits(binary.LittleEndian.Uint64(append(slices.Clone(b[i:i+n]), make([]byte, 8)...)), elem)
			}
			if g, w := bits(got), bits(want); !bytes.Equal(got[i:i+n], want[i:i+n]) && !(g != g && w != w) {
				return fmt.Errorf("element %d is %g, want %g", i/n, g, w)
			}
		}
	}
	return fmt.Errorf("%x, want %x", got, want)
}

// runCases makes every call with each type on every group, and calls with as many elements
// as large, and checks the results of this rank.
func runCases(ctx context.Context, c Comm, elems []types.Elem, large int) error {
	for _, group := range groupsOf(c.Size()) {
		if !slices.Contains(group, c.Rank()) {
			continue
		}
		for _, elem := range elems {
			for _, how := range reductions {
				if elem.IsFloat() && (how == And || how == Or) {
					continue
				}
				if err := reduceCase(ctx, c, group, elem, how, 14); err != nil {
					return fmt.Errorf("%s %s on %v: %w", how, elem, group, err)
				}
			}
			if err := moveCase(ctx, c, group, elem, 14); err != nil {
				return fmt.Errorf("%s on %v: %w", elem, group, err)
			}
		}
	}
	for _, elem := range []types.Elem{types.F32, types.BF16, types.I4, types.I1} {
		if err := reduceCase(ctx, c, everyone(c), elem, Add, large); err != nil {
			return fmt.Errorf("large %s: %w", elem, err)
		}
	}
	if err := reduceCase(ctx, c, everyone(c), types.F16, Add, 0); err != nil {
		return fmt.Errorf("empty: %w", err)
	}
	if err := messageCases(ctx, c, large); err != nil {
		return err
	}
	return permuteCases(ctx, c)
}

// messageCases sends to every rank before anything is received, in another order than it is
// received in, and again with the same tags, with collectives between; a large message waits for its
// receiver outside of the call that sent it.
func messageCases(ctx context.Context, c Comm, large int) error {
	n, rank := c.Size(), c.Rank()
	data := func(from, to, tag int) []byte {
		return bytes.Repeat(fmt.Appendf(nil, "from %d to %d, tag %d; ", from, to, tag), 1+tag%7*large/20)
	}
	tags := []int{3, 0, 70_001, 6}
	for round := range 2 {
		for peer := range n {
			for _, tag := range tags {
				buf := data(rank, peer, tag+round)
				if peer == rank {
					continue
				}
				if err := c.Send(ctx, peer, tag, buf); err != nil {
					return err
				}
				clear(buf)
			}
		}
		if err := c.Barrier(ctx); err != nil {
			return err
		}
	}
	for round := range 2 {
		for peer := range n {
			for _, tag := range slices.Backward(tags) {
				want := data(peer, rank, tag+round)
				if peer == rank {
					continue
				}
				got := make([]byte, len(want))
				if err := c.Recv(ctx, peer, tag, got); err != nil {
					return err
				}
				if !bytes.Equal(got, want) {
					return fmt.Errorf("rank %d got %.40q, want %.40q", rank, got, want)
				}
			}
		}
	}
	return nil
}

func reduceCase(ctx context.Context, c Comm, group []int, elem types.Elem, how Reduction, n int) error {
	parts := len(group)
	all := map[int][]uint64{}
	for _, rank := range group {
		all[rank] = numbers(elem, how, rank, parts*n)
	}
	sum := make([]uint64, parts*n)
	for i := range sum {
		sum[i] = naive(elem, how, group, func(rank int) uint64 { return all[rank][i] })
	}
	buf := buffer(elem, all[c.Rank()])
	in := slices.Clone(buf)
	if err := c.AllReduce(ctx, group, how, elem.String(), buf); err != nil {
		return err
	}
	if err := same(elem, buf, buffer(elem, sum)); err != nil {
		return fmt.Errorf("all_reduce: %w", err)
	}
	own := slices.Index(group, c.Rank())
	out := make([]byte, len(in)/parts)
	if err := c.ReduceScatter(ctx, group, how, elem.String(), in, out); err != nil {
		return err
	}
	if err := same(elem, out, buffer(elem, sum[own*n:(own+1)*n])); err != nil {
		return fmt.Errorf("reduce_scatter: %w", err)
	}
	return nil
}

func moveCase(ctx context.Context, c Comm, group []int, elem types.Elem, n int) error {
	parts, own := len(group), slices.Index(group, c.Rank())
	part := func(rank, i int) []byte { return buffer(elem, numbers(elem, Add, 100*rank+i, n)) }
	in := part(c.Rank(), 0)
	out := make([]byte, parts*len(in))
	if err := c.AllGather(ctx, group, elem.String(), in, out); err != nil {
		return err
	}
	var gathered, sent, received []byte
	for i, rank := range group {
		gathered = append(gathered, part(rank, 0)...)
		sent = append(sent, part(c.Rank(), i)...)
		received = append(received, part(rank, own)...)
	}
	if !bytes.Equal(out, gathered) {
		return fmt.Errorf("all_gather: %x, want %x", out, gathered)
	}
	if err := c.AllToAll(ctx, group, elem.String(), sent, out); err != nil {
		return err
	}
	if !bytes.Equal(out, received) {
		return fmt.Errorf("all_to_all: %x, want %x", out, received)
	}
	return nil
}

// permuteCases shifts round a ring both ways, by none, along a chain whose ends get zeros,
// and swaps the first two; the root of a broadcast goes round.
func permuteCases(ctx context.Context, c Comm) error {
	n, rank := c.Size(), c.Rank()
	data := func(rank int) []byte { return []byte(fmt.Sprintf("of rank %04d", rank)) }
	shifts := []func(r int) int{
		func(r int) int { return (r + 1) % n },
		func(r int) int { return (r + n - 1) % n },
		func(r int) int { return r },
		func(r int) int { return map[bool]int{true: -1, false: r + 1}[r == n-1] },
		func(r int) int { return map[bool]int{true: 1 - r, false: -1}[r < 2 && n > 1] },
	}
	for i, to := range shifts {
		from := -1
		for r := range n {
			if to(r) == rank {
				from = r
			}
		}
		want := make([]byte, len(data(0)))
		if from >= 0 {
			want = data(from)
		}
		out := bytes.Repeat([]byte{7}, len(want))
		if err := c.Permute(ctx, to(rank), from, data(rank), out); err != nil {
			return err
		}
		if !bytes.Equal(out, want) {
			return fmt.Errorf("permute %d: %q, want %q", i, out, want)
		}
	}
	for root := range n {
		buf := data(rank)
		if err := c.Broadcast(ctx, root, buf); err != nil {
			return err
		}
		if !bytes.Equal(buf, data(root)) {
			return fmt.Errorf("broadcast: %q, want %q", buf, data(root))
		}
	}
	return c.Barrier(ctx)
}

// blocks is more elements than are converted at a time.
const blocks = 3*foldBytes + 6

// onLocal runs f on each of n ranks and returns their errors.
func onLocal(n int, f func(c Comm) error) []error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i, c := range Local(n) {
		wg.Go(func() { errs[i] = f(c) })
	}
	wg.Wait()
	return errs
}

func TestLocal(t *testing.T) {
	for n := 1; n <= 4; n++ {
		err := errors.Join(onLocal(n, func(c Comm) error {
			return errors.Join(runCases(t.Context(), c, elems, blocks), c.Close())
		})...)
		if err != nil {
			t.Errorf("%d ranks: %v", n, err)
		}
	}
}

// A rank that is done with a permute goes on to the next, of another size, while its neighbours
// still exchange with others.
func TestLocalPermutesOfManySizes(t *testing.T) {
	const n = 4
	err := errors.Join(onLocal(n, func(c Comm) error {
		for i := range 200 {
			in, out := bytes.Repeat([]byte{byte(c.Rank())}, 1+i%3), make([]byte, 1+i%3)
			if err := c.Permute(t.Context(), (c.Rank()+1)%n, (c.Rank()+n-1)%n, in, out); err != nil {
				return err
			}
			if out[0] != byte((c.Rank()+n-1)%n) {
				return fmt.Errorf("rank %d got %v", c.Rank(), out)
			}
		}
		return c.Close()
	})...)
	if err != nil {
		t.Error(err)
	}
}
