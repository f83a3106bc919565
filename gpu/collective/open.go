package collective

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
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
	c, err := openMPIComm(ctx, l, timeout)
	if err != nil {
		return nil, fmt.Errorf("rank %d: %w", l.Rank, err)
	}
	if err := agree(ctx, c, identity); err != nil {
		return nil, err
	}
	return c, nil
}

// agree checks that all ranks have the same identity. If not, the error names those that
// differ from most, or from the lower ranks where there are as many.
func agree(ctx context.Context, c Comm, identity string) error {
	own := sha256.Sum256([]byte(identity))
	all := make([]byte, c.Size()*len(own))
	group := (&request{}).members(c.Size())
	if err := c.AllGather(ctx, group, "ui8", own[:], all); err != nil {
		return err
	}
	votes := map[[sha256.Size]byte]int{}
	var most [sha256.Size]byte
	for _, rank := range group {
		votes[[sha256.Size]byte(all[rank*len(own):])]++
	}
	for _, rank := range group {
		if hash := [sha256.Size]byte(all[rank*len(own):]); votes[hash] > votes[most] {
			most = hash
		}
	}
	var differ []int
	for _, rank := range group {
		if !bytes.Equal(all[rank*len(own):(rank+1)*len(own)], most[:]) {
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
