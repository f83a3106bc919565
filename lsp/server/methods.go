package server

import (
	"context"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"

	"dmir/lsp/connection"
)

// A callMethod runs on the reading loop: it decodes the parameters and takes the
// snapshot that the call is about, and nothing else. What it returns runs
// concurrently.
type callMethod func(s *server, params jsonrpc2.RawMessage) (connection.Work, error)

// A notifyMethod runs on the reading loop, in the order of arrival. Its error is
// logged; it never ends the connection.
type notifyMethod func(s *server, params jsonrpc2.RawMessage) error

// calls are the requests that the server answers.
var calls = map[string]callMethod{
	protocol.MethodInitialize:                          initialize,
	protocol.MethodShutdown:                            shutdown,
	protocol.MethodTextDocumentHover:                   hover,
	protocol.MethodTextDocumentInlayHint:               inlayHint,
	protocol.MethodTextDocumentCodeLens:                codeLens,
	protocol.MethodTextDocumentCodeAction:              codeAction,
	protocol.MethodCodeActionResolve:                   resolveAction,
	protocol.MethodTextDocumentFormatting:              formatting,
	protocol.MethodTextDocumentDefinition:              definition,
	protocol.MethodTextDocumentImplementation:          definition, // of Python files that of pythonCalls
	protocol.MethodTextDocumentReferences:              references,
	protocol.MethodTextDocumentDocumentHighlight:       highlight,
	protocol.MethodTextDocumentDocumentSymbol:          documentSymbol,
	protocol.MethodTextDocumentFoldingRange:            foldingRange,
	protocol.MethodTextDocumentPrepareRename:           prepareRename,
	protocol.MethodTextDocumentRename:                  rename,
	protocol.MethodTextDocumentCompletion:              completion,
	protocol.MethodCompletionItemResolve:               resolveCompletion,
	protocol.MethodTextDocumentSignatureHelp:           signatureHelp,
	protocol.MethodTextDocumentDeclaration:             declaration,
	protocol.MethodTextDocumentTypeDefinition:          typeDefinition,
	protocol.MethodTextDocumentSelectionRange:          selectionRange,
	protocol.MethodTextDocumentRangeFormatting:         rangeFormatting,
	protocol.MethodTextDocumentOnTypeFormatting:        onTypeFormatting,
	protocol.MethodTextDocumentSemanticTokensFull:      semanticTokens,
	protocol.MethodTextDocumentSemanticTokensRange:     semanticTokensRange,
	protocol.MethodTextDocumentSemanticTokensFullDelta: semanticTokensDelta,
	protocol.MethodTextDocumentPrepareCallHierarchy:    prepareCallHierarchy,
	protocol.MethodCallHierarchyIncomingCalls:          incomingCalls,
	protocol.MethodCallHierarchyOutgoingCalls:          outgoingCalls,
	protocol.MethodTextDocumentDocumentLink:            documentLink,
	protocol.MethodDocumentLinkResolve:                 resolveDocumentLink,
	protocol.MethodTextDocumentLinkedEditingRange:      linkedEditingRange,
	protocol.MethodTextDocumentDiagnostic:              func(s *server, raw jsonrpc2.RawMessage) (connection.Work, error) { return s.diagnostics.Document(raw) },
	protocol.MethodWorkspaceDiagnostic:                 func(s *server, raw jsonrpc2.RawMessage) (connection.Work, error) { return s.diagnostics.Workspace(raw) },
	protocol.MethodWorkspaceSymbol:                     workspaceSymbol,
	protocol.MethodCodeLensResolve:                     resolveCodeLens,
	protocol.MethodWorkspaceTextDocumentContent:        textDocumentContent,
	methodPanelData:                        panelData,
	methodHeat:                             heat,
	methodHints:                            hints,
	methodStatus:                           status,
	methodChanges:                          changes,
	protocol.MethodWorkspaceExecuteCommand: executeCommand,
}

// notifications are the notifications that the server acts on.
var notifications = map[string]notifyMethod{
	protocol.MethodInitialized:                        onNotify(initialized),
	protocol.MethodExit:                               onNotify(exit),
	protocol.MethodTextDocumentDidOpen:                didOpen,
	protocol.MethodTextDocumentDidChange:              onNotify(didChange),
	protocol.MethodTextDocumentDidClose:               onNotify(didClose),
	protocol.MethodTextDocumentDidSave:                onNotify(didSave),
	protocol.MethodSetTrace:                           onNotify(ignore),
	protocol.MethodWorkspaceDidChangeConfiguration:    onNotify(changeConfiguration),
	protocol.MethodWorkspaceDidChangeWatchedFiles:     onNotify(watchedFiles),
	protocol.MethodWorkspaceDidChangeWorkspaceFolders: onNotify(changeFolders),
	protocol.MethodWindowWorkDoneProgressCancel:       onNotify(cancelProgress),
	"dmir/trust":  onNotify(trust),
	"dmir/select": selectPlace,
}

// ignore takes what editors may send and the server has no use for.
func ignore(*server, *struct{}) error { return nil }

// cancelProgress cancels the job behind a progress that the user closed.
func cancelProgress(s *server, p *protocol.WorkDoneProgressCancelParams) error {
	s.jobs.Cancel(p.Token)
	return nil
}

// methodsOf binds the methods to a server.
func methodsOf(s *server) connection.Methods {
	m := connection.Methods{
		Calls:         map[string]func(jsonrpc2.RawMessage) (connection.Work, error){},
		Notifications: map[string]func(jsonrpc2.RawMessage) error{},
		Admit:         s.admit,
	}
	for name, f := range calls {
		if of, has := pythonCalls[name]; has {
			f = orPython(of, f)
		}
		m.Calls[name] = func(raw jsonrpc2.RawMessage) (connection.Work, error) { return f(s, raw) }
	}
	for name, f := range notifications {
		m.Notifications[name] = func(raw jsonrpc2.RawMessage) error { return f(s, raw) }
	}
	return m
}

// onCall makes a callMethod of a function that needs no document.
func onCall[P any](f func(context.Context, *server, *P) (any, error)) callMethod {
	return func(s *server, raw jsonrpc2.RawMessage) (connection.Work, error) {
		p, err := connection.Decode[P](raw)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) (any, error) { return f(ctx, s, p) }, nil
	}
}

// onNotify makes a notifyMethod of a function.
func onNotify[P any](f func(*server, *P) error) notifyMethod {
	return func(s *server, raw jsonrpc2.RawMessage) error {
		p, err := connection.Decode[P](raw)
		if err != nil {
			return err
		}
		return f(s, p)
	}
}
