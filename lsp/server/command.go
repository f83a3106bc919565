package server

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/feature"
	"dmir/lsp/workspace"
)

// The commands of workspace/executeCommand. Each takes one object.
const (
	commandRun     = "dmir.run"
	commandCost    = "dmir.cost"
	commandTargets = "dmir.targets"
)

// commandArgs are the arguments of dmir.run and dmir.cost, and of dmir.targets,
// which may have none and reads no more than the URI.
type commandArgs struct {
	URI    string  `json:"uri"`
	Func   string  `json:"func"`
	Device *string `json:"device"`
	Seed   *int64  `json:"seed"`
}

func executeCommand(s *server, raw jsonrpc2.RawMessage) (work, error) {
	p, err := decode[protocol.ExecuteCommandParams](raw)
	if err != nil {
		return nil, err
	}
	var args commandArgs
	if p.Command == commandTargets {
		if len(p.Arguments) > 0 && json.Unmarshal(p.Arguments[0], &args) != nil {
			return nil, jsonrpc2.Errorf(jsonrpc2.InvalidParams, `%s takes at most one argument {"uri": …}`, commandTargets)
		}
		where := address(uri.URI(args.URI))
		snap := s.docs.Snapshot(where.Key)
		return func(context.Context) (any, error) { return s.targets(snap) }, nil
	}
	if p.Command != commandRun && p.Command != commandCost {
		return nil, jsonrpc2.Errorf(jsonrpc2.InvalidParams, "there is no command %q", strings.Clone(p.Command))
	}
	if len(p.Arguments) != 1 || json.Unmarshal(p.Arguments[0], &args) != nil || args.URI == "" {
		return nil, jsonrpc2.Errorf(jsonrpc2.InvalidParams, `%s takes one argument {"uri": …, "func": …}`, strings.Clone(p.Command))
	}
	args.Func = strings.TrimPrefix(args.Func, "@")
	where := address(uri.URI(args.URI))
	snap := s.docs.Snapshot(where.Key)
	return func(ctx context.Context) (any, error) {
		if snap == nil {
			var err error
			if snap, err = s.docs.Read(where); err != nil {
				return nil, jsonrpc2.NewError(requestFailed, err.Error())
			}
		}
		if p.Command == commandCost {
			return s.costCommand(place{snap}, args.Func)
		}
		return s.runCommand(ctx, place{snap}, args, p.WorkDoneToken)
	}, nil
}

func (s *server) costCommand(p place, fn string) (any, error) {
	c, err := feature.CostOf(p.Program(), p.Measured, fn)
	if err != nil {
		return nil, jsonrpc2.NewError(requestFailed, err.Error())
	}
	return answer(struct {
		Title string          `json:"title"`
		Text  string          `json:"text"`
		JSON  json.RawMessage `json:"json"`
	}{c.Title, c.Text, c.JSON})
}

// targets are the machines that dmir knows and those of the dmir.toml files
// that apply to open documents; current is the one that the times of the
// document are for, where one is given.
func (s *server) targets(doc *workspace.Snapshot) (any, error) {
	type target struct {
		Name    string `json:"name"`
		Title   string `json:"title"`
		Current bool   `json:"current,omitempty"`
	}
	current := ""
	if doc != nil {
		current = doc.Program().Target.Name
	}
	out := []target{}
	for _, m := range s.docs.Machines() {
		out = append(out, target{m.Name, m.Title, m.Name == current})
	}
	return answer(out)
}

// answer encodes a result that is none of the protocol's types.
func answer(v any) (any, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encoding the result: %w", err)
	}
	return jsonrpc2.RawMessage(b), nil
}
