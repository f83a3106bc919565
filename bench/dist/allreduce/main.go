// Command allreduce compares the wall time of an all-reduce through package collective with direct calls of
// MPI_Allreduce in the same processes, as the OSU micro-benchmarks make them: the slowest rank, the mean of many
// calls, the best of several turns.
//
//	mpirun -n 2 go run ./bench/dist/allreduce
package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"log"
	"math"
	"time"

	"dmir/analysis/units"
	"dmir/gpu/collective"
)

// turns are how often each size is measured, with both in turn; the best counts.
const turns = 5

func main() {
	log.SetFlags(0)
	l, ok := collective.Launched()
	if !ok {
		log.Fatal("start it with mpirun -n 2")
	}
	ctx := context.Background()
	c, err := collective.Open(ctx, l, "allreduce", time.Minute)
	if err != nil {
		log.Fatal(err)
	}
	if err := measure(ctx, c, l); err != nil {
		c.Abort(err)
	}
	if err := c.Close(); err != nil {
		log.Fatal(err)
	}
}

func measure(ctx context.Context, c collective.Comm, l collective.Launch) error {
	direct, ok := c.(collective.Direct)
	if !ok {
		return fmt.Errorf("%s gives %d rank no MPI", l.By, l.Size)
	}
	if c.Rank() == 0 {
		fmt.Printf("All-reduce of f32, add, %d processes, %s. Time of one; the ratio is direct calls by dmir.\n\n", c.Size(), l.By)
		fmt.Print("| size | dmir | MPI_Allreduce | ratio |\n|--:|--:|--:|--:|\n")
	}
	group := make([]int, c.Size())
	for i := range group {
		group[i] = i
	}
	for size := 4; size <= 16<<20; size *= 16 {
		calls := max(5, min(1000, 32<<20/size))
		buf := make([]byte, size)
		ours, theirs := math.Inf(1), math.Inf(1)
		for range turns {
			if err := c.Barrier(ctx); err != nil {
				return err
			}
			begin := time.Now()
			for range calls {
				if err := c.AllReduce(ctx, group, collective.Add, "f32", buf); err != nil {
					return err
				}
			}
			took, err := slowest(ctx, c, group, time.Since(begin))
			if err != nil {
				return err
			}
			ours = min(ours, took/float64(calls))
			if err := c.Barrier(ctx); err != nil {
				return err
			}
			own, err := direct.DirectAllReduce(buf, calls)
			if err != nil {
				return err
			}
			if took, err = slowest(ctx, c, group, own); err != nil {
				return err
			}
			theirs = min(theirs, took/float64(calls))
		}
		if c.Rank() == 0 {
			fmt.Printf("| %s | %s | %s | %.2f |\n", units.Bytes(int64(size)), units.Time(ours), units.Time(theirs), theirs/ours)
		}
	}
	return nil
}

// slowest is the longest time of all ranks, in ns.
func slowest(ctx context.Context, c collective.Comm, group []int, own time.Duration) (float64, error) {
	b := binary.LittleEndian.AppendUint64(nil, math.Float64bits(float64(own.Nanoseconds())))
	err := c.AllReduce(ctx, group, collective.Max, "f64", b)
	return math.Float64frombits(binary.LittleEndian.Uint64(b)), err
}
