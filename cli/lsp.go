package cli

import (
	"errors"
	"os"
	"runtime/debug"

	"dmir/base/hostmem"
	"dmir/lsp/server"
	"dmir/lsp/worker"
)

type lspCmd struct {
	Stdio bool `help:"Accepted because editors pass it; stdio is the only transport."`
}

// Run serves until the editor sends exit. As the protocol asks, the status is 1
// when that came without shutdown.
func (lspCmd) Run(a *app) error {
	if os.Getenv("GOGC") == "" {
		// Documents are long-lived and edits leave little garbage: half of the usual
		// heap growth has no measurable cost.
		debug.SetGCPercent(50)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(hostmem.Limit() / 2) // near which the workspace sheds what it can make again
	}
	err := server.Serve(a.ctx, a.stdin, a.stdout, server.Options{Version: version})
	if errors.Is(err, server.ErrNoShutdown) {
		return exitStatus(exitFindings)
	}
	return err
}

type workerCmd struct{}

// Run runs programs for the language server until stdin ends.
func (workerCmd) Run(a *app) error { return worker.Main(a.ctx, a.stdin, a.stdout) }
