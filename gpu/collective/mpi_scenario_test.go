package collective

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"dmir/dialect/types"
)

// scenarios are what ranks do under mpirun.
var scenarios = map[string]func(ctx context.Context, l Launch, join func(ctx context.Context) (Comm, error)) error{
	"cases": func(ctx context.Context, l Launch, join func(ctx context.Context) (Comm, error)) error {
		return inRun(ctx, join, func(c Comm) error { return runCases(ctx, c, elems, blocks) })
	},
	// Calls of the library for few elements at a time, as for more than it counts.
	"chunks": func(ctx context.Context, l Launch, join func(ctx context.Context) (Comm, error)) error {
		return inRun(ctx, join, func(c Comm) error {
			c.(*mpiComm).limit = 5
			return runCases(ctx, c, []types.Elem{types.F32, types.BF16, types.I4}, 22)
		})
	},
	"identity": func(ctx context.Context, l Launch, join func(ctx context.Context) (Comm, error)) error {
		return inRun(ctx, join, func(c Comm) error { return nil })
	},
	// How long an all-reduce takes here, and by direct calls of the library.
	"latency": func(ctx context.Context, l Launch, join func(ctx context.Context) (Comm, error)) error {
		return inRun(ctx, join, func(c Comm) error {
			for _, n := range []int{4, 4 << 10, 4 << 20} {
				buf, calls := make([]byte, n), 200
				if n > 1<<20 {
					calls = 20
				}
				if err := c.Barrier(ctx); err != nil {
					return err
				}
				begin := time.Now()
				for range calls {
					if err := c.AllReduce(ctx, everyone(c), Add, "f32", buf); err != nil {
						return err
					}
				}
				took := time.Since(begin)
				direct, err := c.(Direct).DirectAllReduce(buf, calls)
				if err != nil {
					return err
				}
				if c.Rank() == 0 {
					fmt.Printf("all_reduce of %d bytes: %v, direct %v\n", n, took/time.Duration(calls), direct/time.Duration(calls))
				}
			}
			return nil
		})
	},
	// MPI itself waits for all ranks.
	"no start": func(ctx context.Context, l Launch, join func(ctx context.Context) (Comm, error)) error {
		if l.Rank == l.Size-1 {
			select {}
		}
		return soon(ctx, func(ctx context.Context) error {
			return inRun(ctx, join, func(c Comm) error { return nil })
		})
	},
	"hang": lastRank(func(ctx context.Context, c Comm) error { select {} },
		func(ctx context.Context, c Comm) error {
			return soon(ctx, func(ctx context.Context) error {
				return c.AllReduce(ctx, everyone(c), Add, "f32", make([]byte, 64))
			})
		}),
	"hang in group": lastRank(func(ctx context.Context, c Comm) error { select {} },
		func(ctx context.Context, c Comm) error {
			if c.Rank() != 0 && c.Size() > 2 {
				return c.Barrier(ctx)
			}
			return soon(ctx, func(ctx context.Context) error {
				group := []int{0, c.Size() - 1}
				return c.AllGather(ctx, group, "f32", make([]byte, 64), make([]byte, 128))
			})
		}),
	"no message": lastRank(func(ctx context.Context, c Comm) error { return c.Barrier(ctx) },
		func(ctx context.Context, c Comm) error {
			if c.Rank() > 0 {
				return c.Barrier(ctx)
			}
			return soon(ctx, func(ctx context.Context) error { return c.Recv(ctx, c.Size()-1, 1, make([]byte, 8)) })
		}),
	"give up": lastRank(func(ctx context.Context, c Comm) error { return fmt.Errorf("rank %d: the input is missing", c.Rank()) },
		func(ctx context.Context, c Comm) error { return c.Barrier(ctx) }),
	"give up waiting": lastRank(func(ctx context.Context, c Comm) error {
		reason := errors.New("the disk is full")
		done := make(chan error)
		go func() { done <- c.Permute(ctx, 0, 0, make([]byte, 8), make([]byte, 8)) }()
		report(c.Rank(), fmt.Errorf("rank %d: %w", c.Rank(), reason))
		c.Abort(reason)
		return <-done
	}, func(ctx context.Context, c Comm) error { return c.Barrier(ctx) }),
	"interrupt": lastRank(func(ctx context.Context, c Comm) error {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		return c.Barrier(ctx)
	}, func(ctx context.Context, c Comm) error { return c.Barrier(ctx) }),
	"mismatch": lastRank(func(ctx context.Context, c Comm) error {
		return c.Permute(ctx, 0, 0, make([]byte, 64), make([]byte, 64))
	}, func(ctx context.Context, c Comm) error {
		if c.Rank() > 0 {
			return c.Barrier(ctx)
		}
		return soon(ctx, c.Barrier)
	}),
	"exit":   lastRank(func(ctx context.Context, c Comm) error { os.Exit(3); return nil }, func(ctx context.Context, c Comm) error { return c.Barrier(ctx) }),
	"exit 0": lastRank(func(ctx context.Context, c Comm) error { os.Exit(0); return nil }, func(ctx context.Context, c Comm) error { return soon(ctx, c.Barrier) }),
	"kill": lastRank(func(ctx context.Context, c Comm) error {
		p, err := os.FindProcess(os.Getpid())
		if err != nil {
			return err
		}
		return errors.Join(p.Kill(), errors.New("it lives"))
	}, func(ctx context.Context, c Comm) error { return c.Barrier(ctx) }),
}

// inRun runs f between joining and leaving.
func inRun(ctx context.Context, join func(ctx context.Context) (Comm, error), f func(c Comm) error) error {
	c, err := join(ctx)
	if err != nil {
		return err
	}
	if err := f(c); err != nil {
		return err
	}
	return c.Close()
}

// lastRank is a scenario in which the last rank does something else than the others, once
// all have met.
func lastRank(last, others func(ctx context.Context, c Comm) error) func(ctx context.Context, l Launch, join func(ctx context.Context) (Comm, error)) error {
	return func(ctx context.Context, l Launch, join func(ctx context.Context) (Comm, error)) error {
		return inRun(ctx, join, func(c Comm) error {
			if err := c.Barrier(ctx); err != nil {
				return err
			}
			if c.Rank() == c.Size()-1 {
				return last(ctx, c)
			}
			return others(ctx, c)
		})
	}
}

// soon gives a call a short time, after which it must not have ended: however slow the
// machine is, what it waits for never comes.
func soon(ctx context.Context, call func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	return call(ctx)
}

func everyone(c Comm) []int { return (&request{}).members(c.Size()) }
