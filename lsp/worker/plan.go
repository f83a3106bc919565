package worker

import (
	"context"
	"time"

	"dmir/analysis/plan/request"
)

// plan finds plans for the function, and the edits that write each of them.
func (t *task) plan(ctx context.Context) *Result {
	start := time.Now()
	r, err := request.New(t.program, request.Asked{Func: t.req.Func, Machine: t.req.Machine, Devices: t.req.Devices, Memory: t.req.Memory})
	if err != nil {
		return t.unplanned(r, err)
	}
	r.Options.Progress = func(done, total int) { t.progress(Progress{Done: done, Total: total}) }
	found, err := r.Search(ctx)
	if err != nil {
		return t.unplanned(r, err)
	}
	plans := &Plans{Result: found, Edits: [][]Edit{}}
	for _, p := range found.Plans {
		edits := []Edit{}
		for _, e := range p.Edits() {
			edits = append(edits, Edit{e.Span.Start, e.Span.End, e.Text})
		}
		plans.Edits = append(plans.Edits, edits)
	}
	t.res.OK, t.res.Plans, t.res.ElapsedNs = true, plans, time.Since(start).Nanoseconds()
	return t.res
}

// unplanned makes the reason why there is no plan the result.
func (t *task) unplanned(r *request.Request, err error) *Result {
	if r != nil {
		if d, ok := r.Error(err); ok {
			return t.fail(d)
		}
	}
	return t.failed(err)
}
