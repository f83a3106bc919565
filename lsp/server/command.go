package server

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"dmir/lsp/connection"
	"dmir/lsp/feature"
	"dmir/lsp/job"
	"dmir/lsp/page"
	"dmir/lsp/session"
	"dmir/lsp/worker"
	"dmir/lsp/workspace"
)

// The names of the commands.
const (
	commandRun     = "dmir.run"
	commandProfile = "dmir.profile"
	commandCompile = "dmir.compile"
	commandCost    = "dmir.cost"
	commandTargets = "dmir.targets"
	commandPanel   = "dmir.panel"
	commandView    = "dmir.view"
	commandToggle  = "dmir.toggle"
	commandMore    = "dmir.more"
	commandPlan    = "dmir.plan"
	// commandTraceAgain runs the command of the trace that is shown beside a Python file.
	commandTraceAgain = "dmir.traceAgain"
	// commandLintWorkspace lints all programs of the workspace, open or not, and shows
	// what it finds; with {"clear": true} it takes back what it shows of closed files.
	commandLintWorkspace = "dmir.lintWorkspace"
)

// commandMethod begins a command on the reading loop, as a callMethod does.
type commandMethod func(s *server, p *protocol.ExecuteCommandParams) (connection.Work, error)

// commands are those of workspace/executeCommand. Each takes one object.
var commands = map[string]commandMethod{
	commandRun: onFunction(func(ctx context.Context, s *server, p session.Place, args job.Args, token protocol.ProgressToken) (any, error) {
		return s.jobs.Run(ctx, p, worker.KindRun, args, token)
	}),
	commandProfile: onFunction(func(ctx context.Context, s *server, p session.Place, args job.Args, token protocol.ProgressToken) (any, error) {
		return s.jobs.Run(ctx, p, worker.KindProfile, args, token)
	}),
	commandCompile: onFunction(func(ctx context.Context, s *server, p session.Place, args job.Args, token protocol.ProgressToken) (any, error) {
		return s.jobs.Compile(ctx, p, args, token)
	}),
	page.CommandReveal: onArgs(`{"uri": …, "first": LINE, "last": LINE}`, func(s *server, args page.RevealArgs) (connection.Work, error) { return s.pages.Reveal(args) }),
	page.CommandRevert: onArgs(`{"uri": …, "id": NUMBER}`, func(s *server, args page.RevertArgs) (connection.Work, error) {
		return func(ctx context.Context) (any, error) { return s.pages.Revert(ctx, args) }, nil
	}),
	commandCost: onFunction(func(_ context.Context, s *server, p session.Place, args job.Args, _ protocol.ProgressToken) (any, error) {
		return s.costCommand(p, args.Func)
	}),
	commandPlan: planCommand,
	page.CommandApplyPlan: onArgs(`{"uri": …, "func": …, "plan": NUMBER}`, func(s *server, args page.ApplyPlanArgs) (connection.Work, error) {
		return func(ctx context.Context) (any, error) { return s.pages.ApplyPlan(ctx, args) }, nil
	}),
	commandTargets:    targetsCommand,
	commandTraceAgain: onArgs(`{"uri": …}`, traceAgain),
	commandLintWorkspace: func(s *server, p *protocol.ExecuteCommandParams) (connection.Work, error) {
		token := session.CloneToken(p.WorkDoneToken)
		var args struct {
			Clear bool `json:"clear"`
		}
		if len(p.Arguments) > 0 {
			if err := json.Unmarshal(p.Arguments[0], &args); err != nil {
				return nil, jsonrpc2.NewError(jsonrpc2.InvalidParams, `the argument is not {"clear": BOOL}`)
			}
		}
		return func(ctx context.Context) (any, error) {
			if args.Clear {
				return s.diagnostics.ClearLint(ctx)
			}
			return s.diagnostics.Lint(ctx, token)
		}, nil
	},
	commandPanel: onArgs(`{"uri": …, "kind": …, "function": …}`, func(s *server, args page.PanelArgs) (connection.Work, error) {
		return func(ctx context.Context) (any, error) { return s.pages.Panel(ctx, args) }, nil
	}),
	commandView: func(s *server, p *protocol.ExecuteCommandParams) (connection.Work, error) {
		token := session.CloneToken(p.WorkDoneToken)
		return onArgs(`{"uri": …, "view": …}`, func(s *server, args page.ViewArgs) (connection.Work, error) { return s.pages.View(args, token) })(s, p)
	},
	commandToggle: onArgs(`{"setting": "hints" | "lint"}`, func(s *server, args toggleArgs) (connection.Work, error) {
		if switches[args.Setting] == nil {
			return nil, jsonrpc2.Errorf(jsonrpc2.InvalidParams, "%q cannot be toggled; %s and %s can", args.Setting, switchHints, switchLint)
		}
		return func(context.Context) (any, error) {
			return session.Answer(map[string]bool{args.Setting: s.flip(args.Setting)})
		}, nil
	}),
}

// commandNames are the names of the commands, in order.
func commandNames() []string { return slices.Sorted(maps.Keys(commands)) }

// toggleArgs are the arguments of dmir.toggle.
type toggleArgs struct {
	Setting string `json:"setting"`
}

func executeCommand(s *server, raw jsonrpc2.RawMessage) (connection.Work, error) {
	p, err := connection.Decode[protocol.ExecuteCommandParams](raw)
	if err != nil {
		return nil, err
	}
	begin := commands[p.Command]
	if begin == nil {
		return nil, jsonrpc2.Errorf(jsonrpc2.InvalidParams, "there is no command %q", strings.Clone(p.Command))
	}
	return begin(s, p)
}

// onArgs makes a commandMethod of a function of one object, which form shows.
func onArgs[A any](form string, f func(*server, A) (connection.Work, error)) commandMethod {
	return func(s *server, p *protocol.ExecuteCommandParams) (connection.Work, error) {
		var args A
		if len(p.Arguments) != 1 || json.Unmarshal(p.Arguments[0], &args) != nil {
			return nil, jsonrpc2.Errorf(jsonrpc2.InvalidParams, `%s takes one argument %s`, strings.Clone(p.Command), form)
		}
		return f(s, args)
	}
}

// onFunction makes a commandMethod of a function of a document, open or on disk,
// and the name of one of its functions.
func onFunction(f func(context.Context, *server, session.Place, job.Args, protocol.ProgressToken) (any, error)) commandMethod {
	return func(s *server, p *protocol.ExecuteCommandParams) (connection.Work, error) {
		return onArgs(`{"uri": …, "func": …}`, func(s *server, args job.Args) (connection.Work, error) {
			if args.URI == "" {
				return nil, jsonrpc2.NewError(jsonrpc2.InvalidParams, "no document is named")
			}
			args.Func = strings.TrimPrefix(args.Func, "@")
			return s.OnPlace(args.URI, func(ctx context.Context, at session.Place) (any, error) { return f(ctx, s, at, args, p.WorkDoneToken) }), nil
		})(s, p)
	}
}

func targetsCommand(s *server, p *protocol.ExecuteCommandParams) (connection.Work, error) {
	var args job.Args
	if len(p.Arguments) > 0 && json.Unmarshal(p.Arguments[0], &args) != nil {
		return nil, jsonrpc2.NewError(jsonrpc2.InvalidParams, commandTargets+` takes at most one argument {"uri": …}`)
	}
	snap := s.Docs.Snapshot(session.AddressOf(uri.URI(args.URI)).Key)
	return func(context.Context) (any, error) { return s.targets(snap) }, nil
}

func (s *server) costCommand(p session.Place, fn string) (any, error) {
	c, err := feature.CostOf(p.Program(), p.Measured, fn)
	if err != nil {
		return nil, jsonrpc2.NewError(connection.RequestFailed, err.Error())
	}
	return session.Answer(struct {
		Title string          `json:"title"`
		Text  string          `json:"text"`
		JSON  json.RawMessage `json:"json"`
	}{p.Kept().Doubted(c.Title), c.Text, c.JSON})
}

// targets are the built-in machines and those of the dmir.toml files
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
		doc.With(func(v *workspace.View) { current = v.Program().Target.Name })
	}
	out := []target{}
	for _, m := range s.Docs.Machines() {
		out = append(out, target{m.Name, m.Title, m.Name == current})
	}
	return session.Answer(out)
}
