package server

import "go.lsp.dev/protocol"

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
	protocol.MethodTextDocumentDiagnostic:              documentDiagnostic,
	protocol.MethodWorkspaceDiagnostic:                 workspaceDiagnostic,
	protocol.MethodWorkspaceSymbol:                     workspaceSymbol,
	protocol.MethodCodeLensResolve:                     resolveCodeLens,
	protocol.MethodWorkspaceTextDocumentContent:        textDocumentContent,
	methodPanelData:                        panelData,
	methodHeat:                             heat,
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
	protocol.MethodWindowWorkDoneProgressCancel:       onNotify(progressCancel),
	"dmir/trust":  onNotify(trust),
	"dmir/select": selectPlace,
}

// ignore takes what editors may send and the server has no use for.
func ignore(*server, *struct{}) error { return nil }
