package collective

import (
	"context"
	"fmt"
	"sync"
)

// Local is n ranks in this process, for a goroutine each. Reductions go in ascending order
// of rank, so that results are the same every time. A call that can never be answered, since
// all ranks wait in calls that do not match or have left, is an error.
func Local(n int) []Comm {
	w := &localWorld{waiting: make([]*pending, n), closed: make([]bool, n), mail: map[parcel][][]byte{}, over: make(chan struct{})}
	all := make([]Comm, n)
	for i := range all {
		c := &localComm{world: w}
		c.member = member{rank: i, size: n, do: c.run}
		all[i] = c
	}
	return all
}

type localComm struct {
	member
	world *localWorld
}

// localWorld is what the ranks share.
type localWorld struct {
	mu      sync.Mutex
	waiting []*pending          // the call of each rank that waits for others
	closed  []bool              // ranks that have left
	mail    map[parcel][][]byte // what was sent and not yet received
	over    chan struct{}       // closed when the run has ended early
	by      int                 // the rank that ended it
	reason  error
}

// parcel tells apart what ranks send to each other.
type parcel struct{ from, to, tag int }

// pending is a call until all that it needs have called.
type pending struct {
	*request
	ready          chan struct{}
	sent, received bool  // of a permute
	team           *team // once ready, of other calls
}

// team executes a call: each member does a share of it, and none returns before all have,
// since they read each other's buffers.
type team struct {
	parts []*pending // in the order of the group
	sum   []byte     // of an all-reduce
	done  sync.WaitGroup
}

func (c *localComm) run(ctx context.Context, r *request) error {
	w := c.world
	p := &pending{request: r, ready: make(chan struct{})}
	w.mu.Lock()
	switch err := ctx.Err(); {
	case w.reason != nil:
	case err != nil:
		w.end(c.rank, fmt.Errorf("rank %d: %s: %w", c.rank, r, err))
	default:
		w.waiting[c.rank] = p
		w.match(c.rank, p)
	}
	w.mu.Unlock()
	select {
	case <-p.ready:
	case <-w.over:
	case <-ctx.Done():
	}
	w.mu.Lock()
	waits := w.waiting[c.rank] == p
	if waits && w.reason == nil {
		w.end(c.rank, fmt.Errorf("rank %d: %s: %w", c.rank, r, ctx.Err()))
	}
	if waits {
		w.waiting[c.rank] = nil
	}
	err := w.failure(c.rank)
	w.mu.Unlock()
	if p.team != nil { // the others of the team need this rank's share even if the run is over
		p.execute(c.rank)
		return nil
	}
	select {
	case <-p.ready:
		return nil
	default:
		return err
	}
}

// end ends the run for the reason that rank reports. The first one stays.
func (w *localWorld) end(rank int, reason error) {
	if w.reason == nil {
		w.by, w.reason = rank, reason
		close(w.over)
	}
}

// failure is the error of a rank if the run is over.
func (w *localWorld) failure(rank int) error {
	if w.reason == nil || rank == w.by {
		return w.reason
	}
	return &Ended{Rank: w.by, Reason: w.reason}
}

// match completes what the new call of rank allows, or ends the run if it cannot be
// answered.
func (w *localWorld) match(rank int, p *pending) {
	switch p.op {
	case opPermute:
		w.exchange(rank, p)
	case opSend:
		w.send(rank, p)
		return
	case opRecv:
		if w.receive(rank, p) {
			return
		}
	default:
		if w.gather(rank, p) {
			return
		}
	}
	w.blocked()
}

// send hands on what a send has, to the recv that waits for it if there is one.
func (w *localWorld) send(rank int, p *pending) {
	key := parcel{rank, p.to, p.tag}
	w.mail[key] = append(w.mail[key], append([]byte(nil), p.in...))
	w.waiting[rank] = nil
	close(p.ready)
	if q := w.waiting[p.to]; q != nil && q.op == opRecv && q.from == rank && q.tag == p.tag {
		w.receive(p.to, q)
	}
}

// receive completes a recv if what it waits for was sent. It reports whether the run goes on without
// rank waiting, or ended.
func (w *localWorld) receive(rank int, p *pending) bool {
	key := parcel{p.from, rank, p.tag}
	list := w.mail[key]
	if len(list) == 0 {
		return false
	}
	if len(list) == 1 {
		delete(w.mail, key)
	} else {
		w.mail[key] = list[1:]
	}
	if len(list[0]) != len(p.out) {
		w.end(rank, fmt.Errorf("rank %d: %s: rank %d has sent %d bytes", rank, p, p.from, len(list[0])))
		return true
	}
	copy(p.out, list[0])
	w.waiting[rank] = nil
	close(p.ready)
	return true
}

// gather starts a collective if all its members have called. It reports whether the run
// goes on without rank waiting, or ended.
func (w *localWorld) gather(rank int, p *pending) bool {
	members := p.members(len(w.waiting))
	t := &team{}
	for _, m := range members {
		q := w.waiting[m]
		if q == nil {
			continue
		}
		if q.String() == p.String() {
			t.parts = append(t.parts, q)
		} else if q.meets(rank) && !q.answered(rank) {
			w.mismatch(rank, p, m, q)
			return true
		}
	}
	if len(t.parts) < len(members) {
		return false
	}
	if p.op == opAllReduce {
		t.sum = make([]byte, len(p.in))
	}
	t.done.Add(len(t.parts))
	for i, q := range t.parts {
		w.waiting[members[i]] = nil
		q.team = t
		close(q.ready)
	}
	return true
}

// answered reports whether a permute has already exchanged with the rank.
func (p *pending) answered(rank int) bool {
	return p.op == opPermute && (p.to != rank || p.sent) && (p.from != rank || p.received)
}

func (w *localWorld) mismatch(rank int, p *pending, other int, q *pending) {
	if other < rank {
		rank, p, other, q = other, q, rank, p
	}
	w.end(rank, fmt.Errorf("ranks do not make the same call: rank %d calls %s, rank %d calls %s", rank, p, other, q))
}

// exchange copies what a permute and those that wait have for each other.
func (w *localWorld) exchange(rank int, p *pending) {
	if p.from < 0 {
		clear(p.out)
	}
	if p.to == rank {
		copy(p.out, p.in)
	}
	p.sent, p.received = p.to < 0 || p.to == rank, p.from < 0 || p.from == rank
	for _, peer := range []int{p.to, p.from} {
		q := w.partner(peer, rank)
		if q == nil {
			continue
		}
		// One that has exchanged with rank already waits for its other peer, and is an earlier call.
		meets := peer == p.to && q.from == rank && !q.received || peer == p.from && q.to == rank && !q.sent
		if q.op != opPermute || meets && len(q.in) != len(p.in) {
			w.mismatch(rank, p, peer, q)
			return
		}
		if peer == p.to && !p.sent && q.from == rank && !q.received {
			copy(q.out, p.in)
			p.sent, q.received = true, true
		}
		if peer == p.from && !p.received && q.to == rank && !q.sent {
			copy(p.out, q.in)
			q.sent, p.received = true, true
		}
		w.leave(peer, q)
	}
	w.leave(rank, p)
}

// partner is the call in which peer waits for rank, if it does.
func (w *localWorld) partner(peer, rank int) *pending {
	if peer < 0 || peer == rank || w.waiting[peer] == nil || !w.waiting[peer].meets(rank) {
		return nil
	}
	return w.waiting[peer]
}

// leave lets a permute return that has sent and received.
func (w *localWorld) leave(rank int, p *pending) {
	if p.sent && p.received && w.waiting[rank] == p {
		w.waiting[rank] = nil
		close(p.ready)
	}
}

// blocked ends the run if no rank can go on: each has left or waits.
func (w *localWorld) blocked() {
	for i, p := range w.waiting {
		if p == nil && !w.closed[i] {
			return
		}
	}
	for i, p := range w.waiting {
		if p == nil {
			continue
		}
		for j, q := range w.waiting {
			if j == i || !p.includes(j) || p.answered(j) || q != nil && p.op != opPermute && q.String() == p.String() {
				continue
			}
			if q == nil {
				w.end(i, fmt.Errorf("rank %d waits in %s for rank %d, which has left the run", i, p, j))
			} else {
				w.mismatch(i, p, j, q)
			}
			return
		}
	}
}

// execute does this rank's share.
func (p *pending) execute(rank int) {
	t := p.team
	own, parts := 0, len(t.parts)
	for i, q := range t.parts {
		if q == p {
			own = i
		}
	}
	switch p.op {
	case opAllReduce:
		unit := width(p.elem)
		n := len(p.in) / unit
		lo, hi := n*own/parts*unit, n*(own+1)/parts*unit
		fold(p.how, p.elem, t.inputs(lo, hi), t.sum[lo:hi])
	case opReduceScatter:
		fold(p.how, p.elem, t.inputs(own*len(p.out), (own+1)*len(p.out)), p.out)
	case opAllGather:
		for i, q := range t.parts {
			copy(p.out[i*len(p.in):], q.in)
		}
	case opAllToAll:
		n := len(p.in) / parts
		for i, q := range t.parts {
			copy(p.out[i*n:(i+1)*n], q.in[own*n:])
		}
	case opBroadcast:
		if rank != p.root {
			copy(p.out, t.parts[p.root].in)
		}
	}
	t.done.Done()
	t.done.Wait()
	if p.op == opAllReduce {
		copy(p.out, t.sum)
	}
}

// inputs are the bytes lo to hi of all members' inputs.
func (t *team) inputs(lo, hi int) [][]byte {
	in := make([][]byte, len(t.parts))
	for i, q := range t.parts {
		in[i] = q.in[lo:hi]
	}
	return in
}

func (c *localComm) Abort(reason error) {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	c.world.end(c.rank, fmt.Errorf("rank %d: %w", c.rank, reason))
}

func (c *localComm) Close() error {
	w := c.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed[c.rank] {
		w.closed[c.rank] = true
		w.blocked()
	}
	return w.failure(c.rank)
}
