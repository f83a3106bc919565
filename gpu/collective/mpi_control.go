package collective

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"
)

// mpiControl is the messages by which ranks find out why a call does not end. They have a
// communicator of their own. A rank that waits in a call answers those of others.
type mpiControl struct {
	c       *mpiComm
	comm    mpiHandle
	buf     []byte
	receive *mpiHandle
	mem     mpiMemory
	sent    []*mpiHandle

	answers map[int]string // of ranks, to the query of this one: the calls in which they wait
	over    error          // what another rank has reported
}

// The kinds of messages: the first byte. The rank that has sent it follows, of a
// report the rank that reports, and text.
const (
	msgQuery  = 'q' // in which call do you wait?
	msgAnswer = 'a' // in this one
	msgFail   = 'f' // the run is over for this reason
)

const (
	controlBytes = 2048
	controlHead  = 9
)

func (k *mpiControl) start(c *mpiComm) error {
	k.c, k.answers = c, map[int]string{}
	if err := c.lib.check("MPI_Comm_dup", c.lib.CommDup(c.lib.world, &k.comm)); err != nil {
		return err
	}
	c.lib.OnError(k.comm, c.lib.returnErrors)
	k.buf = make([]byte, controlBytes)
	k.post()
	return nil
}

// post waits for the next message.
func (k *mpiControl) post() {
	m := k.c.lib
	k.receive = new(mpiHandle)
	if m.IReceive(k.mem.at(k.buf), controlBytes, m.bytes, m.anySource, 0, k.comm, k.receive) != 0 {
		k.receive = nil // no diagnosis; time-outs still end calls
	}
}

// poll handles the messages that have come.
func (k *mpiControl) poll() {
	m := k.c.lib
	for k.receive != nil {
		done, code := m.Test(k.receive)
		if code != 0 {
			k.receive = nil
		}
		if code != 0 || !done {
			return
		}
		k.handle()
		k.post()
	}
}

func (k *mpiControl) handle() {
	from := int(binary.LittleEndian.Uint32(k.buf[1:]))
	reporter := int(binary.LittleEndian.Uint32(k.buf[5:]))
	n := binary.LittleEndian.Uint16(k.buf[controlHead:])
	text := string(k.buf[controlHead+2:][:min(int(n), controlBytes-controlHead-2)])
	switch k.buf[0] {
	case msgQuery:
		if k.c.busy != nil {
			k.send(from, msgAnswer, 0, k.c.busy.String())
		}
	case msgAnswer:
		k.answers[from] = text
	case msgFail:
		var other *Ended
		if k.over != nil && !(errors.As(k.over, &other) && reporter < other.Rank) {
			return
		}
		k.over = errors.New(text)
		if reporter != k.c.rank {
			k.over = &Ended{Rank: reporter, Reason: k.over, remote: true}
		}
	}
}

// send sends a message; whether it arrives shows later.
func (k *mpiControl) send(to int, kind byte, reporter int, text string) {
	buf := make([]byte, controlBytes)
	buf[0] = kind
	binary.LittleEndian.PutUint32(buf[1:], uint32(k.c.rank))
	binary.LittleEndian.PutUint32(buf[5:], uint32(reporter))
	n := copy(buf[controlHead+2:], text)
	binary.LittleEndian.PutUint16(buf[controlHead:], uint16(n))
	mem := &mpiMemory{}
	keep(mem) // few are sent
	q := new(mpiHandle)
	m := k.c.lib
	if m.ISend(mem.at(buf), controlBytes, m.bytes, int32(to), 0, k.comm, q) == 0 {
		k.sent = append(k.sent, q)
	}
}

// fail tells ranks that the run is over, and why.
func (k *mpiControl) fail(to []int, reporter int, reason string) {
	for _, rank := range to {
		k.send(rank, msgFail, reporter, reason)
	}
	k.flush(time.Second)
}

// flush waits until what was sent has left, at most so long: a rank that hangs may not take
// it.
func (k *mpiControl) flush(most time.Duration) {
	m := k.c.lib
	for end := time.Now().Add(most); len(k.sent) > 0 && time.Now().Before(end); {
		if done, code := m.Test(k.sent[0]); done || code != 0 {
			k.sent = k.sent[1:]
			continue
		}
		time.Sleep(pollPause)
	}
}

func (k *mpiControl) stop(c *mpiComm) {
	k.flush(time.Second)
	if k.receive != nil && c.lib.Cancel(k.receive) == 0 {
		c.lib.Wait(k.receive, c.lib.noStatus)
	}
	k.mem.Unpin()
}

// grace is how long a rank that waits in a call may take to answer.
const grace = 3 * time.Second

// gaveUp is the error of a call that why has ended, the end of its context or of its time. After a
// time-out it asks all ranks where they are, and is nil if the call ends meanwhile.
func (c *mpiComm) gaveUp(why error, call *mpiCall, ended func() (bool, error)) error {
	if !errors.Is(why, context.DeadlineExceeded) {
		return c.broken(call, why)
	}
	k := &c.control
	clear(k.answers)
	for _, rank := range c.others() {
		k.send(rank, msgQuery, 0, "")
	}
	for end := time.Now().Add(grace); len(k.answers) < c.size-1 && time.Now().Before(end); {
		if done, err := ended(); done {
			return err
		}
		if k.poll(); k.over != nil {
			return k.over
		}
		time.Sleep(pollPause)
	}
	reason := c.diagnosis(call)
	reporter, alive := c.rank, []int{}
	for _, rank := range c.others() {
		if _, ok := k.answers[rank]; ok {
			alive = append(alive, rank)
			reporter = min(reporter, rank)
		}
	}
	k.fail(alive, reporter, reason)
	if reporter != c.rank {
		return &Ended{Rank: reporter, Reason: errors.New(reason), remote: true}
	}
	return errors.New(reason)
}

// diagnosis is why a call has not ended, from the answers of the other ranks.
func (c *mpiComm) diagnosis(call *mpiCall) string {
	var silent, outside []int  // that do not answer: members of the call, and others
	other, elsewhere := -1, "" // a member that waits in another call
	for _, rank := range c.others() {
		text, ok := c.control.answers[rank]
		switch member := call.includes(rank); {
		case !ok && member:
			silent = append(silent, rank)
		case !ok:
			outside = append(outside, rank)
		case member && other < 0 && !sameCall(call, text):
			other, elsewhere = rank, text
		}
	}
	if len(silent) == 0 && other >= 0 {
		silent = outside
	}
	switch {
	case len(silent) == 1:
		return fmt.Sprintf("rank %d has ended, hangs or takes too long: it did not reach %s in time", silent[0], call)
	case len(silent) > 1:
		return fmt.Sprintf("ranks %s have ended, hang or take too long: they did not reach %s in time", list(silent), call)
	case other >= 0:
		return fmt.Sprintf("ranks do not make the same call: rank %d calls %s, rank %d calls %s", c.rank, call, other, elsewhere)
	}
	return fmt.Sprintf("rank %d: %s did not end in time, in which the other ranks wait too", c.rank, call)
}

// sameCall reports whether text, an answer, is of the call. Of a permute each rank has
// other peers.
func sameCall(call *mpiCall, text string) bool {
	if call.op == opPermute {
		return strings.HasPrefix(text, call.op)
	}
	return strings.HasPrefix(call.String(), text) // a long answer is cut
}

// broken is the error of a call that this rank cannot make; it tells the others.
func (c *mpiComm) broken(call *mpiCall, err error) error {
	reason := fmt.Errorf("rank %d: %s: %w", c.rank, call.request, err)
	c.control.fail(c.others(), c.rank, reason.Error())
	return reason
}

// Hold gives the rank that reports err the time to do so, if it is another process: the exit
// of this one could end it before. The rank that has reported waits until the launcher has
// read what it wrote, which MPICH's drops of a process that has ended. Call it before a process
// exits because of err.
func Hold(err error) {
	var e *Ended
	switch {
	case err == nil:
	case errors.As(err, &e) && e.remote:
		// The rank that reports may itself wait for grace, to find out whether a lower one has
		// failed as well (Report). When it exits, the launcher ends this process.
		time.Sleep(4 * grace)
	case met.Load():
		time.Sleep(forward)
	}
}
