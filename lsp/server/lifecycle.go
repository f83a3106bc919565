package server

import (
	"context"
	"slices"
	"strings"
	"time"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"

	"dmir/analysis/config"
	"dmir/lsp/workspace"
	"dmir/syntax/source"
)

// features are what the editor can do.
type features struct {
	configuration    bool // answers workspace/configuration
	hintRefresh      bool
	lensRefresh      bool
	progress         bool // lets the server create progress
	watch            bool // watches files where asked to
	watchConfig      bool // wants didChangeConfiguration registered
	watchBuffers     bool // tells of more documents where asked to
	versionedEdits   bool
	plainHover       bool // shows no Markdown
	pictures         bool // draws images in Markdown
	panels           bool // draws the pages of panels
	showDocument     bool // opens documents and addresses where asked to
	virtualDocuments bool // asks for the text of documents that are nowhere else
	plainCompletion  bool // shows none beside completions
	plainSignature   bool // shows none in signature help
	snippets         bool // fills in completions with holes
	labelOffsets     bool // takes parameters of signatures as places in the label
	linkDiagnostics  bool // shows related places
	tags             bool
	codeLinks        bool // opens what a diagnostic's code leads to
	diagnosticData   bool // keeps what comes with a diagnostic
	pulls            bool // asks for diagnostics, and asks again where told to
	actions          actionFeatures
	flatSymbols      bool // knows no hierarchy of symbols
	tokenDelta       bool // asks what is different in the tokens
}

// initialize runs on the reading loop, so that what follows finds its effects.
func initialize(s *server, raw jsonrpc2.RawMessage) (work, error) {
	p, err := decode[protocol.InitializeParams](raw)
	if err != nil {
		return nil, err
	}
	enc := source.UTF16
	s.features = featuresOf(p.Capabilities)
	if g := p.Capabilities.General; g != nil && slices.Contains(g.PositionEncodings, protocol.PositionEncodingKindUTF8) {
		enc = source.UTF8
	}
	s.docs.SetEncoding(enc)
	s.folders.init(p)
	s.initSettings(p.InitializationOptions)
	if p.ProcessID != nil {
		watchParent(s.ctx, int(*p.ProcessID), time.Second, s.end)
	}
	s.state.Store(serving)
	return func(context.Context) (any, error) {
		info := protocol.ServerInfo{Name: "dmir"}
		if s.opts.Version != "" {
			info.Version = protocol.NewOptional(s.opts.Version)
		}
		can := capabilities(enc)
		if s.features.pulls { // others could not be told of what is found later
			can.DiagnosticProvider = diagnosticOptions()
		}
		return &protocol.InitializeResult{Capabilities: can, ServerInfo: info}, nil
	}, nil
}

func featuresOf(c protocol.ClientCapabilities) features {
	is := func(b *bool) bool { return b != nil && *b }
	f := features{flatSymbols: true}
	if w := c.Workspace; w != nil {
		f.configuration = is(w.Configuration)
		f.hintRefresh = w.InlayHint != nil && is(w.InlayHint.RefreshSupport)
		f.lensRefresh = w.CodeLens != nil && is(w.CodeLens.RefreshSupport)
		f.watch = w.DidChangeWatchedFiles != nil && is(w.DidChangeWatchedFiles.DynamicRegistration)
		f.watchConfig = w.DidChangeConfiguration != nil && is(w.DidChangeConfiguration.DynamicRegistration)
		f.virtualDocuments = w.TextDocumentContent != nil
		f.versionedEdits = w.WorkspaceEdit != nil && is(w.WorkspaceEdit.DocumentChanges)
	}
	if w := c.Window; w != nil {
		f.progress = is(w.WorkDoneProgress)
		f.showDocument = w.ShowDocument != nil && w.ShowDocument.Support
	}
	if g := c.General; g != nil {
		// Only editors that turn Markdown into a page name their parser; the
		// others would show an image's address, which is as long as the image.
		f.pictures = g.Markdown.Parser == "marked"
	}
	if t := c.TextDocument; t != nil {
		f.watchBuffers = t.Synchronization != nil && is(t.Synchronization.DynamicRegistration)
		if h := t.Hover; h != nil {
			f.plainHover = noMarkdown(h.ContentFormat)
		}
		if c := t.Completion; c != nil && c.CompletionItem != nil {
			f.snippets = is(c.CompletionItem.SnippetSupport)
			f.plainCompletion = noMarkdown(c.CompletionItem.DocumentationFormat)
		}
		if h := t.SignatureHelp; h != nil && h.SignatureInformation != nil {
			f.plainSignature = noMarkdown(h.SignatureInformation.DocumentationFormat)
			if i := h.SignatureInformation.ParameterInformation; i != nil {
				f.labelOffsets = is(i.LabelOffsetSupport)
			}
		}
		if d := t.PublishDiagnostics; d != nil {
			f.diagnostics(d.DiagnosticsCapabilities)
		}
		if d := t.Diagnostic; d != nil {
			f.diagnostics(d.DiagnosticsCapabilities)
			f.pulls = c.Workspace != nil && c.Workspace.Diagnostics != nil && is(c.Workspace.Diagnostics.RefreshSupport)
		}
		if a := t.CodeAction; a != nil {
			f.actions = actionFeaturesOf(*a)
		}
		if full, ok := t.SemanticTokens.Requests.Full.(*protocol.ClientSemanticTokensRequestFullDelta); ok {
			f.tokenDelta = is(full.Delta)
		}
		if d := t.DocumentSymbol; d != nil {
			f.flatSymbols = !is(d.HierarchicalDocumentSymbolSupport)
		}
	}
	return f
}

// diagnostics adds what the editor shows of a diagnostic, pushed or pulled:
// some say it of one kind only.
func (f *features) diagnostics(c protocol.DiagnosticsCapabilities) {
	is := func(b *bool) bool { return b != nil && *b }
	f.linkDiagnostics = f.linkDiagnostics || is(c.RelatedInformation)
	f.tags = f.tags || len(c.TagSupport.ValueSet) > 0
	f.codeLinks = f.codeLinks || is(c.CodeDescriptionSupport)
	f.diagnosticData = f.diagnosticData || is(c.DataSupport)
}

// noMarkdown reports whether an editor names the formats that it shows, and
// Markdown is none of them.
func noMarkdown(formats []protocol.MarkupKind) bool {
	return len(formats) > 0 && !slices.Contains(formats, protocol.MarkupKindMarkdown)
}

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
			TextDocumentContent: &protocol.TextDocumentContentOptions{Schemes: []string{viewScheme}},
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
		s.pullSettings()
	}()
	return nil
}

func (s *server) register() {
	var rs []protocol.Registration
	if s.features.watch {
		options, err := protocol.Marshal(&protocol.DidChangeWatchedFilesRegistrationOptions{
			Watchers: []protocol.FileSystemWatcher{{GlobPattern: protocol.Pattern("**/" + config.FileName)}, {GlobPattern: protocol.Pattern("**/*.dmir")}},
		})
		if err == nil {
			rs = append(rs, protocol.Registration{ID: config.FileName, Method: protocol.MethodWorkspaceDidChangeWatchedFiles, RegisterOptions: options})
		}
	}
	if s.features.watchConfig {
		rs = append(rs, protocol.Registration{
			ID: "settings", Method: protocol.MethodWorkspaceDidChangeConfiguration, RegisterOptions: []byte(`{"section":"dmir"}`),
		})
	}
	if s.features.watchBuffers {
		// The editor's buffer of a dmir.toml counts, so it has to be heard of.
		for method, more := range map[string]string{
			protocol.MethodTextDocumentDidOpen: "", protocol.MethodTextDocumentDidChange: `,"syncKind":2`, protocol.MethodTextDocumentDidClose: "",
		} {
			rs = append(rs, protocol.Registration{
				ID: config.FileName + " " + method, Method: method,
				RegisterOptions: []byte(`{"documentSelector":[{"scheme":"file","pattern":"**/` + config.FileName + `"}]` + more + `}`),
			})
		}
	}
	if len(rs) > 0 {
		_ = s.client.call(s.ctx, protocol.MethodClientRegisterCapability, &protocol.RegistrationParams{Registrations: rs}, nil)
	}
}

// shutdown kills what runs; the connection stays for exit.
func shutdown(s *server, _ jsonrpc2.RawMessage) (work, error) {
	s.state.Store(shutDown)
	return func(context.Context) (any, error) {
		s.runs.stop()
		s.live.end()
		return nil, nil
	}, nil
}

func exit(s *server, _ *struct{}) error {
	s.end()
	return nil
}

// watchedFiles hears of changes to dmir.toml, and of programs that others wrote.
func watchedFiles(s *server, p *protocol.DidChangeWatchedFilesParams) error {
	var programs []workspace.Address
	configured := false
	for _, c := range p.Changes {
		if a := address(c.URI); workspace.IsConfig(a) {
			configured = true
		} else if strings.HasSuffix(a.Path, ".dmir") {
			programs = append(programs, a)
		}
	}
	if configured {
		s.docs.ConfigChanged()
		s.refresh()
	}
	if configured || len(programs) > 0 {
		s.filesOnDisk(programs)
	}
	return nil
}

// refresh asks the editor to ask again for what it shows beside the text.
func (s *server) refresh() {
	for _, snap := range s.docs.Snapshots() {
		s.touched(snap.Key)
	}
	go func() {
		if s.features.hintRefresh {
			_ = s.client.call(s.ctx, protocol.MethodWorkspaceInlayHintRefresh, nil, nil)
		}
		if s.features.lensRefresh {
			_ = s.client.call(s.ctx, protocol.MethodWorkspaceCodeLensRefresh, nil, nil)
		}
	}()
}

func (s *server) refreshLenses() {
	if s.features.lensRefresh {
		go func() { _ = s.client.call(s.ctx, protocol.MethodWorkspaceCodeLensRefresh, nil, nil) }()
	}
}
