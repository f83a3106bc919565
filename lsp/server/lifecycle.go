package server

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"

	"dmir/analysis/attribution"
	"dmir/analysis/config"
	"dmir/lsp/connection"
	"dmir/lsp/diagnostics"
	"dmir/lsp/session"
	"dmir/lsp/workspace"
	"dmir/syntax/source"
)

// initialize runs on the reading loop, so that what follows finds its effects.
func initialize(s *server, raw jsonrpc2.RawMessage) (connection.Work, error) {
	p, err := connection.Decode[protocol.InitializeParams](raw)
	if err != nil {
		return nil, err
	}
	enc := source.UTF16
	s.Features = session.FeaturesOf(p.Capabilities)
	if g := p.Capabilities.General; g != nil && slices.Contains(g.PositionEncodings, protocol.PositionEncodingKindUTF8) {
		enc = source.UTF8
	}
	s.Docs.SetEncoding(enc)
	s.Folders.Init(p)
	s.initSettings(p.InitializationOptions)
	if p.ProcessID != nil {
		watchParent(s.Context(), int(*p.ProcessID), time.Second, s.End)
	}
	s.state.Store(serving)
	return func(context.Context) (any, error) {
		info := protocol.ServerInfo{Name: "dmir"}
		if s.opts.Version != "" {
			info.Version = protocol.NewOptional(s.opts.Version)
		}
		can := capabilities(enc)
		if s.pythonOnly {
			can = pythonCapabilities(enc)
		}
		if s.Features.Pulls { // no other editor can be asked to pull again
			can.DiagnosticProvider = diagnostics.Options()
		}
		can.Experimental = fmt.Appendf(nil, `{"dmir":{"version":%d}}`, ProtocolVersion)
		return &protocol.InitializeResult{Capabilities: can, ServerInfo: info}, nil
	}, nil
}

// ProtocolVersion is that of the requests, notifications and commands whose names begin with "dmir"; docs/VERSIONS.md says
// when it changes.
const ProtocolVersion = 1

func capabilities(enc source.Encoding) protocol.ServerCapabilities {
	yes, change := true, protocol.TextDocumentSyncKindIncremental
	unit := protocol.PositionEncodingKindUTF16
	if enc == source.UTF8 {
		unit = protocol.PositionEncodingKindUTF8
	}
	return protocol.ServerCapabilities{
		PositionEncoding:                 unit,
		TextDocumentSync:                 &protocol.TextDocumentSyncOptions{OpenClose: &yes, Change: &change, Save: protocol.Boolean(true)},
		HoverProvider:                    protocol.Boolean(true),
		CompletionProvider:               &protocol.CompletionOptions{TriggerCharacters: strings.Split(completionTriggers, ""), ResolveProvider: &yes},
		SignatureHelpProvider:            &protocol.SignatureHelpOptions{TriggerCharacters: []string{" ", ","}},
		DefinitionProvider:               protocol.Boolean(true),
		DeclarationProvider:              protocol.Boolean(true),
		TypeDefinitionProvider:           protocol.Boolean(true),
		SelectionRangeProvider:           protocol.Boolean(true),
		DocumentRangeFormattingProvider:  protocol.Boolean(true),
		DocumentOnTypeFormattingProvider: onTypeOptions(),
		LinkedEditingRangeProvider:       protocol.Boolean(true),
		CallHierarchyProvider:            protocol.Boolean(true),
		DocumentLinkProvider:             &protocol.DocumentLinkOptions{ResolveProvider: &yes},
		WorkspaceSymbolProvider:          protocol.Boolean(true),
		SemanticTokensProvider:           &protocol.SemanticTokensOptions{Legend: tokenLegend(), Range: protocol.Boolean(true), Full: &protocol.SemanticTokensFullDelta{Delta: &yes}},
		ReferencesProvider:               protocol.Boolean(true),
		DocumentHighlightProvider:        protocol.Boolean(true),
		DocumentSymbolProvider:           protocol.Boolean(true),
		FoldingRangeProvider:             protocol.Boolean(true),
		DocumentFormattingProvider:       protocol.Boolean(true),
		InlayHintProvider:                protocol.Boolean(true),
		CodeLensProvider:                 &protocol.CodeLensOptions{ResolveProvider: &yes},
		RenameProvider:                   &protocol.RenameOptions{PrepareProvider: &yes},
		CodeActionProvider:               &protocol.CodeActionOptions{CodeActionKinds: actionKinds, ResolveProvider: &yes},
		Workspace: &protocol.WorkspaceOptions{
			WorkspaceFolders:    &protocol.WorkspaceFoldersServerCapabilities{Supported: &yes, ChangeNotifications: protocol.Boolean(true)},
			TextDocumentContent: &protocol.TextDocumentContentOptions{Schemes: []string{session.ViewScheme}},
		},
		ExecuteCommandProvider: protocol.ExecuteCommandOptions{
			WorkDoneProgressOptions: protocol.WorkDoneProgressOptions{WorkDoneProgress: &yes},
			Commands:                commandNames(),
		},
	}
}

// initialized asks the editor for what initialize may not: its settings, and
// word of changes to dmir.toml.
func initialized(s *server, _ *protocol.InitializedParams) error {
	go func() {
		s.register()
		s.registerPython()
		s.pullSettings()
		if s.Docs.LintsClosed() {
			s.diagnostics.SettingsChanged()
		}
	}()
	return nil
}

func (s *server) register() {
	var rs []protocol.Registration
	if s.Features.Watch {
		options, err := protocol.Marshal(&protocol.DidChangeWatchedFilesRegistrationOptions{
			Watchers: []protocol.FileSystemWatcher{
				{GlobPattern: protocol.Pattern("**/" + config.FileName)}, {GlobPattern: protocol.Pattern("**/*.dmir")},
				{GlobPattern: protocol.Pattern("**/" + attribution.Folder + "/*.json")},
			},
		})
		if err == nil {
			rs = append(rs, protocol.Registration{ID: config.FileName, Method: protocol.MethodWorkspaceDidChangeWatchedFiles, RegisterOptions: options})
		}
	}
	if s.Features.WatchConfig {
		rs = append(rs, protocol.Registration{
			ID: "settings", Method: protocol.MethodWorkspaceDidChangeConfiguration, RegisterOptions: []byte(`{"section":"dmir"}`),
		})
	}
	if s.Features.WatchBuffers {
		// An editor's buffer of a dmir.toml replaces the file.
		methods := map[string]string{
			protocol.MethodTextDocumentDidOpen: "", protocol.MethodTextDocumentDidChange: `,"syncKind":2`, protocol.MethodTextDocumentDidClose: "",
		}
		if s.Features.RegisterHover {
			methods[protocol.MethodTextDocumentHover] = ""
		}
		if s.Features.RegisterCompletion {
			methods[protocol.MethodTextDocumentCompletion] = `,"triggerCharacters":["[","\"","."]`
		}
		for method, more := range methods {
			rs = append(rs, protocol.Registration{
				ID: config.FileName + " " + method, Method: method,
				RegisterOptions: []byte(`{"documentSelector":[{"scheme":"file","pattern":"**/` + config.FileName + `"}]` + more + `}`),
			})
		}
	}
	if len(rs) > 0 {
		_ = s.Call(s.Context(), protocol.MethodClientRegisterCapability, &protocol.RegistrationParams{Registrations: rs}, nil)
	}
}

// shutdown kills what runs; the connection stays for exit.
func shutdown(s *server, _ jsonrpc2.RawMessage) (connection.Work, error) {
	s.state.Store(shutDown)
	return func(context.Context) (any, error) {
		s.jobs.Stop()
		s.pages.End()
		return nil, nil
	}, nil
}

func exit(s *server, _ *struct{}) error {
	s.End()
	return nil
}

// watchedFiles handles changes to dmir.toml files and to programs on disk.
func watchedFiles(s *server, p *protocol.DidChangeWatchedFilesParams) error {
	var programs []workspace.Address
	configured := false
	for _, c := range p.Changes {
		if a := session.AddressOf(c.URI); workspace.IsConfig(a) {
			configured = true
		} else if strings.HasSuffix(a.Path, ".json") {
			s.python.Recheck()
			go s.registerPython()
		} else if strings.HasSuffix(a.Path, ".dmir") {
			programs = append(programs, a)
		}
	}
	if configured {
		s.Docs.ConfigChanged()
		s.refresh()
	}
	if configured || len(programs) > 0 {
		s.diagnostics.FilesChanged(programs)
		for _, a := range programs {
			s.pages.Changed(a.Key) // one that is open may now differ from its file
		}
		s.RefreshLenses()
	}
	return nil
}

// refresh brings up to date what is shown beside the text.
func (s *server) refresh() {
	for _, snap := range s.Docs.Snapshots() {
		s.pages.Changed(snap.Key)
	}
	s.Refresh()
}
