package server

import (
	"context"
	"slices"

	"go.lsp.dev/protocol"

	"dmir/lsp/connection"
	"dmir/lsp/feature"
	"dmir/lsp/job"
	"dmir/lsp/session"
)

// A command that begins others refers to the table that holds it.
func init() { commands[commandMore] = moreLenses }

// moreLenses offers what the lens More of a function holds, for editors that do not show
// the choice themselves, and does what is chosen. The document is not held while a
// person chooses.
func moreLenses(s *server, p *protocol.ExecuteCommandParams) (connection.Work, error) {
	return onArgs(`{"uri": …, "func": …}`, func(s *server, args job.Args) (connection.Work, error) {
		var items []protocol.Command
		list := s.OnPlace(args.URI, func(_ context.Context, at session.Place) (any, error) {
			lenses := feature.Lenses(at.Program(), s.lensOptions(at))
			i := slices.IndexFunc(lenses, func(l feature.Lens) bool { return l.Func == args.Func && l.More != nil })
			if i < 0 {
				return nil, nil
			}
			for _, l := range lenses[i].More {
				c, err := lensCommand(at.URI, l)
				if err != nil {
					return nil, err
				}
				items = append(items, c)
			}
			return nil, nil
		})
		return func(ctx context.Context) (any, error) {
			if _, err := list(ctx); err != nil || len(items) == 0 {
				return nil, err
			}
			ask := &protocol.ShowMessageRequestParams{Type: protocol.MessageTypeInfo, Message: "@" + args.Func}
			for _, c := range items {
				ask.Actions = append(ask.Actions, protocol.MessageActionItem{Title: c.Title})
			}
			var chosen *protocol.MessageActionItem
			if err := s.Call(ctx, protocol.MethodWindowShowMessageRequest, ask, &chosen); err != nil || chosen == nil {
				return nil, err
			}
			i := slices.IndexFunc(items, func(c protocol.Command) bool { return c.Title == chosen.Title })
			if i < 0 {
				return nil, nil
			}
			do, err := commands[items[i].Command](s, &protocol.ExecuteCommandParams{Command: items[i].Command, Arguments: items[i].Arguments})
			if err != nil {
				return nil, err
			}
			return do(ctx)
		}, nil
	})(s, p)
}
