package page

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/analysis/plan/present"
	"dmir/analysis/report"
	"dmir/lsp/connection"
	"dmir/lsp/job"
	"dmir/lsp/session"
)

// CommandApplyPlan writes a plan of a function into its document.
const CommandApplyPlan = "dmir.applyPlan"

// ApplyPlanArgs are the arguments of dmir.applyPlan.
type ApplyPlanArgs struct {
	URI  string `json:"uri"`
	Func string `json:"func"`
	Plan int    `json:"plan"` // its number, from 1; 0 is the best one
}

// planNumber is the number of the plan that a view shows, 0 for other views.
func planNumber(view string) int {
	text, ok := strings.CutPrefix(view, session.PlannedPrefix)
	n, err := strconv.Atoi(text)
	if !ok || err != nil || n < 1 {
		return 0
	}
	return n
}

// planText is the text of the view of plans that were made for a function: plan n in the program, or
// for n = 0 the table of all.
func (ps *Pages) planText(document, fn string, n int) string {
	made := ps.jobs.Planned(session.AddressOf(uri.URI(document)).Key, fn)
	if made == nil {
		return comment(fmt.Sprintf("There is no plan of @%s: make one with its lens.", fn))
	}
	if n > 0 {
		text, ok := made.Text(n)
		if !ok {
			return comment(fmt.Sprintf("@%s has no plan %d.", fn, n))
		}
		return text
	}
	var b strings.Builder
	present.Table(&b, made.Machine, made.Result, present.Options{})
	present.Explain(&b, made.Result, present.Options{})
	return b.String()
}

// plans returns the data of the panel of the plans that were made for a function, and the version of the
// document that they are for.
func (ps *Pages) plans(args PanelArgs) (int32, report.Data, error) {
	fn := strings.TrimPrefix(args.Function, "@")
	made := ps.jobs.Planned(session.AddressOf(uri.URI(args.URI)).Key, fn)
	if made == nil {
		return 0, report.Data{}, jsonrpc2.NewError(connection.RequestFailed, fmt.Sprintf("there is no plan of @%s: make one with its lens", fn))
	}
	data, err := report.BuildPlans(ps.s.Folders.Relative(made.Path), made.Result)
	if err == nil && now(ps, made) != made.Src.Text() {
		data.Stale = "of the text before it was edited"
	}
	return made.Version, data, err
}

// now is the present text of the document of plans.
func now(ps *Pages, made *job.Planned) string {
	if snap := ps.s.Docs.Snapshot(made.Key); snap != nil {
		return snap.Src.Text()
	}
	return made.Src.Text()
}

// ShowPlan has the editor show the program with the best plan that was made for a function, and
// brings views of older plans up to date.
func (ps *Pages) ShowPlan(ctx context.Context, document, fn string) error {
	ps.Changed(session.AddressOf(uri.URI(document)).Key)
	if !ps.s.Features.VirtualDocuments || !ps.s.Features.ShowDocument {
		return nil
	}
	return ps.s.ShowDocument(ctx, session.ViewAddress(session.PlannedPrefix+"1", document, fn), nil)
}

// ApplyPlan has the editor write a plan into the document, in one step of undo. It refuses if the
// text is another one than the plan was made for.
func (ps *Pages) ApplyPlan(ctx context.Context, args ApplyPlanArgs) (any, error) {
	refuse := func(format string, more ...any) (any, error) {
		return nil, jsonrpc2.NewError(connection.RequestFailed, fmt.Sprintf("cannot apply the plan: "+format, more...))
	}
	if !ps.s.Features.ApplyEdit {
		return refuse("the editor does not support workspace/applyEdit")
	}
	fn, n := strings.TrimPrefix(args.Func, "@"), max(args.Plan, 1)
	key := session.AddressOf(uri.URI(args.URI)).Key
	made, now := ps.jobs.Planned(key, fn), ps.s.Docs.Snapshot(key)
	switch {
	case made == nil:
		return refuse("none was made for @%s", fn)
	case now == nil:
		return refuse("the document is not open")
	case now.Src.Text() != made.Src.Text():
		return refuse("the document has changed since it was made; plan again")
	}
	edits, ok := made.EditsOf(n)
	if !ok {
		return refuse("there is no plan %d", n)
	}
	label := "Plan: " + present.Sentence(made.Result.Plans[n-1])
	var res protocol.ApplyWorkspaceEditResult
	params := &protocol.ApplyWorkspaceEditParams{Label: &label, Edit: *ps.s.Features.WorkspaceEdit(session.Bare(now), edits)}
	if err := ps.s.Call(ctx, protocol.MethodWorkspaceApplyEdit, params, &res); err != nil {
		return nil, err
	}
	if !res.Applied {
		return refuse("the editor has not applied the edit; the text may have changed meanwhile")
	}
	return session.Answer(map[string]any{"title": label, "plan": n})
}
