package session

import (
	"slices"

	"go.lsp.dev/protocol"
)

// Features are what an editor can do.
type Features struct {
	Configuration bool // answers workspace/configuration
	HintRefresh   bool
	LensRefresh   bool
	Progress      bool // lets the server create progress
	Watch         bool // watches files where asked to
	WatchConfig   bool // wants didChangeConfiguration registered
	WatchBuffers  bool // reports more documents on request

	RegisterLenses bool // lets more documents have hints and lenses on request

	RegisterHover      bool // asks for hovers of more documents on request
	RegisterCompletion bool // and for completions
	VersionedEdits     bool
	ApplyEdit          bool // applies edits where asked to
	PlainHover         bool // shows no Markdown
	Pictures           bool // draws images in Markdown
	Panels             bool // draws the pages of panels
	ShowDocument       bool // opens documents and addresses where asked to
	VirtualDocuments   bool // asks for the text of documents that are nowhere else
	PlainCompletion    bool // shows none beside completions
	PlainSignature     bool // shows none in signature help
	Snippets           bool // fills in completions with holes
	InsertReplace      bool // lets people choose whether a completion replaces the rest of the word
	LabelOffsets       bool // takes parameters of signatures as places in the label
	LinkDiagnostics    bool // shows related places
	Tags               bool
	CodeLinks          bool // opens what a diagnostic's code leads to
	DiagnosticData     bool // keeps what comes with a diagnostic
	Pulls              bool // pulls diagnostics, and again on request
	ResolveActions     bool // asks for the edits of the code action that was chosen
	DisabledActions    bool // shows code actions that cannot be applied, and why
	FlatSymbols        bool // no hierarchy of symbols
	TokenDelta         bool // asks what is different in the tokens
}

// FeaturesOf returns the features that an editor declares.
func FeaturesOf(c protocol.ClientCapabilities) Features {
	is := func(b *bool) bool { return b != nil && *b }
	f := Features{FlatSymbols: true}
	if w := c.Workspace; w != nil {
		f.ApplyEdit = is(w.ApplyEdit)
		f.Configuration = is(w.Configuration)
		f.HintRefresh = w.InlayHint != nil && is(w.InlayHint.RefreshSupport)
		f.LensRefresh = w.CodeLens != nil && is(w.CodeLens.RefreshSupport)
		f.Watch = w.DidChangeWatchedFiles != nil && is(w.DidChangeWatchedFiles.DynamicRegistration)
		f.WatchConfig = w.DidChangeConfiguration != nil && is(w.DidChangeConfiguration.DynamicRegistration)
		f.VirtualDocuments = w.TextDocumentContent != nil
		f.VersionedEdits = w.WorkspaceEdit != nil && is(w.WorkspaceEdit.DocumentChanges)
	}
	if w := c.Window; w != nil {
		f.Progress = is(w.WorkDoneProgress)
		f.ShowDocument = w.ShowDocument != nil && w.ShowDocument.Support
	}
	if g := c.General; g != nil {
		// Only editors that turn Markdown into a page name their parser; the
		// others would show an image's address, which is as long as the image.
		f.Pictures = g.Markdown.Parser == "marked"
	}
	if t := c.TextDocument; t != nil {
		f.WatchBuffers = t.Synchronization != nil && is(t.Synchronization.DynamicRegistration)
		f.RegisterLenses = t.CodeLens != nil && is(t.CodeLens.DynamicRegistration) && t.InlayHint != nil && is(t.InlayHint.DynamicRegistration)
		if h := t.Hover; h != nil {
			f.RegisterHover = is(h.DynamicRegistration)
			f.PlainHover = noMarkdown(h.ContentFormat)
		}
		if c := t.Completion; c != nil {
			f.RegisterCompletion = is(c.DynamicRegistration)
		}
		if c := t.Completion; c != nil && c.CompletionItem != nil {
			f.Snippets = is(c.CompletionItem.SnippetSupport)
			f.InsertReplace = is(c.CompletionItem.InsertReplaceSupport)
			f.PlainCompletion = noMarkdown(c.CompletionItem.DocumentationFormat)
		}
		if h := t.SignatureHelp; h != nil && h.SignatureInformation != nil {
			f.PlainSignature = noMarkdown(h.SignatureInformation.DocumentationFormat)
			if i := h.SignatureInformation.ParameterInformation; i != nil {
				f.LabelOffsets = is(i.LabelOffsetSupport)
			}
		}
		if d := t.PublishDiagnostics; d != nil {
			f.diagnostics(d.DiagnosticsCapabilities)
		}
		if d := t.Diagnostic; d != nil {
			f.diagnostics(d.DiagnosticsCapabilities)
			f.Pulls = c.Workspace != nil && c.Workspace.Diagnostics != nil && is(c.Workspace.Diagnostics.RefreshSupport)
		}
		if a := t.CodeAction; a != nil {
			f.ResolveActions = is(a.DataSupport) && slices.Contains(a.ResolveSupport.Properties, "edit")
			f.DisabledActions = is(a.DisabledSupport)
		}
		if full, ok := t.SemanticTokens.Requests.Full.(*protocol.ClientSemanticTokensRequestFullDelta); ok {
			f.TokenDelta = is(full.Delta)
		}
		if d := t.DocumentSymbol; d != nil {
			f.FlatSymbols = !is(d.HierarchicalDocumentSymbolSupport)
		}
	}
	return f
}

// diagnostics adds what the editor shows of a diagnostic, pushed or pulled:
// some declare it for one kind only.
func (f *Features) diagnostics(c protocol.DiagnosticsCapabilities) {
	is := func(b *bool) bool { return b != nil && *b }
	f.LinkDiagnostics = f.LinkDiagnostics || is(c.RelatedInformation)
	f.Tags = f.Tags || len(c.TagSupport.ValueSet) > 0
	f.CodeLinks = f.CodeLinks || is(c.CodeDescriptionSupport)
	f.DiagnosticData = f.DiagnosticData || is(c.DataSupport)
}

// noMarkdown reports whether an editor names the formats that it shows, and
// Markdown is none of them.
func noMarkdown(formats []protocol.MarkupKind) bool {
	return len(formats) > 0 && !slices.Contains(formats, protocol.MarkupKindMarkdown)
}
