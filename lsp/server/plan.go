package server

import (
	"context"
	"strings"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"

	"dmir/lsp/connection"
	"dmir/lsp/job"
	"dmir/lsp/session"
)

// planCommand finds plans for a training step, and has the editor show the program with the best
// one beside the text.
func planCommand(s *server, p *protocol.ExecuteCommandParams) (connection.Work, error) {
	token := session.CloneToken(p.WorkDoneToken)
	return onArgs(`{"uri": …, "func": …, "devices": NUMBER}`, func(s *server, args job.PlanArgs) (connection.Work, error) {
		if args.URI == "" || args.Devices < 0 {
			return nil, jsonrpc2.NewError(jsonrpc2.InvalidParams, "no document is named, or no number of devices")
		}
		args.Func = strings.TrimPrefix(args.Func, "@")
		var res job.PlanResult
		find := s.OnPlace(args.URI, func(ctx context.Context, at session.Place) (_ any, err error) {
			res, err = s.jobs.Plan(ctx, at, args, token)
			return nil, err
		})
		return func(ctx context.Context) (any, error) {
			if _, err := find(ctx); err != nil {
				return nil, err
			}
			if res.OK {
				s.RefreshLenses()
				if err := s.pages.ShowPlan(ctx, args.URI, args.Func); err != nil {
					return nil, err
				}
			}
			return session.Answer(res)
		}, nil
	})(s, p)
}
