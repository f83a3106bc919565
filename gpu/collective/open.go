package collective

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// Open joins the run that a launcher has started. All ranks must run the same program:
// identity is what makes it that, such as a version and a hash; a rank with another one is an
// error on all ranks. A call waits for other ranks until its context ends, and no longer
// than timeout unless that is 0; Open itself until ctx ends. A rank that gives up by time
// takes a few seconds more to find out which rank it has waited for.
func Open(ctx context.Context, l Launch, identity string, timeout time.Duration) (Comm, error) {
	if l.Err != nil {
		return nil, l.Err
	}
	if l.engine == noEngine {
		if l.Size == 1 {
			return Local(1)[0], nil
		}
		return nil, fmt.Errorf("%s gives its %d ranks no MPI to meet in: start them with %s", l.By, l.Size, map[bool]string{
			true: "srun --mpi=pmix (Open MPI) or srun --mpi=pmi2 (MPICH)", false: "mpirun -n " + fmt.Sprint(l.Size) + " in place of torchrun",
		}[l.By == "srun"])
	}
	c, err := meet(ctx, l, timeout)
	if err != nil {
		return nil, err
	}
	if err := agree(ctx, c, identity, false); err != nil {
		return nil, err
	}
	return c, nil
}

// met is set when this process has joined its run, which it can do once.
var met atomic.Bool

// meet initialises the engine.
func meet(ctx context.Context, l Launch, timeout time.Duration) (Comm, error) {
	met.Store(true)
	c, err := openMPIComm(ctx, l, timeout)
	if err != nil {
		return nil, fmt.Errorf("rank %d: %w", l.Rank, err)
	}
	return c, nil
}

// Refuse is for a rank that fails before it has called Open: it tells the others. If they fail
// with the same text, the lowest one reports it and Refuse returns an *Ended on the others; it
// is nil on a rank that reports its failure. Ranks in Open get an *Ended.
func Refuse(ctx context.Context, l Launch, text string) error {
	if l.Err != nil || l.engine == noEngine || l.Size == 1 || met.Load() {
		return nil
	}
	c, err := meet(ctx, l, 0)
	if err == nil {
		err = agree(ctx, c, text, true)
	} else if l.LocalRank > 0 { // what is missing on a machine its first rank reports
		return &Ended{Rank: l.Rank - l.LocalRank, Reason: err, remote: true}
	}
	var ended *Ended
	if errors.As(err, &ended) {
		return err
	}
	return nil
}

// Report is for a rank that fails after Open, outside of a call: it tells the others. If a lower
// rank has failed as well, that one reports, and the error is an *Ended; otherwise it is reason.
func Report(c Comm, reason error) error {
	m, ok := c.(*mpiComm)
	var ended *Ended
	if !ok || reason == nil || errors.As(reason, &ended) {
		return reason
	}
	return m.report(reason)
}

// report is Report. A rank that waits for nothing in vain is ended by its launcher, after the
// lower one has reported.
func (c *mpiComm) report(reason error) error {
	if c.failed.Load() != nil { // the call that failed has told the others
		return reason
	}
	c.turn.Lock()
	defer c.turn.Unlock()
	c.failed.Store(&failure{reason})
	k := &c.control
	k.fail(c.others(), c.rank, reason.Error())
	for end := time.Now().Add(grace); c.rank > 0 && time.Now().Before(end); time.Sleep(pollPause) {
		k.poll()
		var ended *Ended
		if errors.As(k.over, &ended) && ended.Rank < c.rank {
			return k.over
		}
	}
	return reason
}

// agree checks that all ranks have the same identity. If not, the error names those that
// differ from most, or from the lower ranks where there are as many. A rank that fails has the
// text of its failure as its identity.
func agree(ctx context.Context, c Comm, identity string, fails bool) error {
	const size = 1 + sha256.Size
	sum := sha256.Sum256([]byte(identity))
	own := append([]byte{0}, sum[:]...)
	if fails {
		own[0] = 1
	}
	bytes := make([]byte, c.Size()*size)
	group := (&request{}).members(c.Size())
	if err := c.AllGather(ctx, group, "ui8", own, bytes); err != nil {
		return err
	}
	all := make([][size]byte, c.Size())
	for rank := range all {
		all[rank] = [size]byte(bytes[rank*size:])
	}
	if first := slices.IndexFunc(all, func(id [size]byte) bool { return id[0] == 1 }); first >= 0 {
		if fails {
			first = slices.Index(all, [size]byte(own))
		}
		if first == c.Rank() {
			return nil
		}
		return &Ended{Rank: first, Reason: fmt.Errorf("rank %d cannot run its program", first), remote: true}
	}
	votes := map[[size]byte]int{}
	var most [size]byte
	for _, id := range all {
		votes[id]++
	}
	for _, id := range all {
		if votes[id] > votes[most] {
			most = id
		}
	}
	var differ []int
	for rank, id := range all {
		if id != most {
			differ = append(differ, rank)
		}
	}
	if differ == nil {
		return nil
	}
	var reason error
	if len(differ) == 1 {
		reason = fmt.Errorf("rank %d runs another program, or another version of it, than the other ranks", differ[0])
	} else {
		reason = fmt.Errorf("ranks %s run another program, or another version of it, than the other ranks", list(differ))
	}
	if c.Rank() != 0 {
		return &Ended{Rank: 0, Reason: reason, remote: true}
	}
	return reason
}
