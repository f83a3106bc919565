package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.lsp.dev/protocol"

	"dmir/analysis/machine"
	"dmir/analysis/plan"
	"dmir/analysis/plan/present"
	"dmir/lsp/feature"
	"dmir/lsp/session"
	"dmir/lsp/worker"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// PlanArgs are the arguments of dmir.plan.
type PlanArgs struct {
	URI     string `json:"uri"`
	Func    string `json:"func"`
	Devices int    `json:"devices"` // 0: those of the program, the settings or dmir.toml
	Target  string `json:"target"`  // "": that of the settings, of dmir.toml, or a cluster of the program's
}

// PlanResult is the answer to dmir.plan.
type PlanResult struct {
	OK      bool         `json:"ok"`
	Func    string       `json:"func"`
	Message string       `json:"message"`
	Code    string       `json:"code,omitempty"`
	Devices int          `json:"devices"`
	Target  string       `json:"target"`
	Version int32        `json:"version"` // of the text that the plans are for
	Plans   *plan.Result `json:"plans,omitempty"`
}

// Planned are plans that were made for a function of a text.
type Planned struct {
	Key, Func string
	Path      string
	Src       *source.File
	Version   int32
	Machine   *machine.Machine
	*worker.Plans
}

// Text is the text with plan n, from 1, in it; ok is false if there is no such plan.
func (p *Planned) Text(n int) (text string, ok bool) {
	edits, ok := p.EditsOf(n)
	var b strings.Builder
	at := 0
	for _, e := range edits {
		b.WriteString(p.Src.Slice(source.Span{Start: at, End: e.Span.Start}) + e.Text)
		at = e.Span.End
	}
	return b.String() + p.Src.Slice(source.Span{Start: at, End: p.Src.Len()}), ok
}

// EditsOf are the edits that write plan n, from 1, into the text.
func (p *Planned) EditsOf(n int) (edits []diag.Edit, ok bool) {
	if n < 1 || n > len(p.Edits) {
		return nil, false
	}
	at := 0
	for _, e := range p.Edits[n-1] {
		if e.Start < at || e.End < e.Start || e.End > p.Src.Len() {
			return nil, false // of a worker that is not sound
		}
		at = e.End
		edits = append(edits, diag.Edit{Span: source.Span{Start: e.Start, End: e.End}, Text: e.Text})
	}
	return edits, true
}

// plans are those that were made last, the newest at the end.
type plans struct {
	mu   sync.Mutex
	made []*Planned
}

// keptPlans bounds how many functions have plans that are remembered.
const keptPlans = 8

func (l *plans) keep(p *Planned) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.made = slices.DeleteFunc(l.made, func(o *Planned) bool { return o.Key == p.Key && o.Func == p.Func })
	if l.made = append(l.made, p); len(l.made) > keptPlans {
		l.made = slices.Delete(l.made, 0, 1)
	}
}

// Planned are the plans that were made last for a function of a document, nil for none.
func (j *Jobs) Planned(key, fn string) *Planned {
	j.plans.mu.Lock()
	defer j.plans.mu.Unlock()
	for _, p := range j.plans.made {
		if p.Key == key && p.Func == fn {
			return p
		}
	}
	return nil
}

// PlanChoiceOf is what the settings for a document choose.
func PlanChoiceOf(p session.Place) feature.PlanChoice {
	return feature.PlanChoice{Devices: p.Settings.PlanDevices, Target: p.Settings.PlanTarget}
}

// Plan finds plans for a function in a worker process and remembers them.
func (j *Jobs) Plan(ctx context.Context, p session.Place, args PlanArgs, token protocol.ProgressToken) (PlanResult, error) {
	res := PlanResult{Func: args.Func, Version: p.Version}
	ctx, done, refusal := j.admitted(ctx, worker.KindPlan, args.Func, token)
	if done == nil {
		res.Message = refusal
		return res, nil
	}
	defer done()
	choice, prog, head := PlanChoiceOf(p), p.Program(), headOf(p, args.Func)
	if args.Target != "" {
		choice.Target = args.Target
	}
	refused := func(code, message string, at source.Span) (PlanResult, error) {
		j.mark(p, code, message, at)
		res.Code, res.Message = code, message
		return res, nil
	}
	if _, ok := prog.Config.Machine(choice.Target); choice.Target != "" && !ok {
		res.Message = fmt.Sprintf("there is no machine %q; %s", choice.Target, prog.Config.Meant(choice.Target))
		return res, nil
	}
	asked, err := feature.PlanRequest(prog, args.Func, args.Devices, choice)
	if err != nil {
		var why *plan.Error
		if asked == nil || !errors.As(err, &why) {
			res.Message = err.Error()
			return res, nil
		}
		d, _ := asked.Error(err)
		if d.Help != "" {
			d.Message += " (" + d.Help + ")"
		}
		return refused(d.Code, d.Message, d.Span)
	}
	o := asked.Options
	res.Devices, res.Target = o.Devices, o.Machine.Name
	req := request(p, worker.KindPlan, args.Func)
	req.Device, req.Seed, req.Machine, req.Devices, req.Memory = "", 0, o.Machine, o.Devices, o.Memory
	bar := j.Begin(ctx, token, fmt.Sprintf("Planning @%s for %d × %s", args.Func, o.Devices, o.Machine.Title))
	p.Release() // the text may change while it runs
	got, err := j.build(ctx, req, func(w worker.Progress) { bar.Report(w) })
	bar.End()
	j.s.Flush(ctx)
	if err != nil {
		code, msg, err := j.Failure(ctx, worker.KindPlan, args.Func, err)
		if err != nil {
			return res, err
		}
		return refused(code, msg, head)
	}
	if !got.OK || got.Plans == nil || got.Plans.Result == nil || len(got.Plans.Result.Plans) == 0 {
		if got.OK {
			got.Code, got.Message = plan.CodeDevices, "there is no plan"
		}
		return refused(got.Code, got.Message, placeOf(p, got.Start, got.End))
	}
	j.plans.keep(&Planned{Key: p.Key, Func: args.Func, Path: p.Path, Src: p.Src, Version: p.Version, Machine: o.Machine, Plans: got.Plans})
	res.OK, res.Plans = true, got.Plans.Result
	best := res.Plans.Plans[0]
	res.Message = fmt.Sprintf("@%s on %d × %s: %s, %s a step; %s", args.Func, o.Devices, o.Machine.Title, present.Sentence(best),
		present.Time(best), present.Optimality(res.Plans))
	j.s.Show(protocol.MessageTypeInfo, res.Message)
	return res, nil
}
