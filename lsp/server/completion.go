package server

import (
	"context"
	"fmt"
	"strings"

	"go.lsp.dev/protocol"

	"dmir/lsp/feature"
	"dmir/lsp/session"
)

// completionTriggers are the characters behind which something else may follow
// than behind a letter.
const completionTriggers = ".%@!#^<>[\""

var itemKinds = map[feature.ItemKind]protocol.CompletionItemKind{
	feature.OpItem:     protocol.CompletionItemKindFunction,
	feature.ValueItem:  protocol.CompletionItemKindVariable,
	feature.AttrItem:   protocol.CompletionItemKindProperty,
	feature.WordItem:   protocol.CompletionItemKindEnumMember,
	feature.TypeItem:   protocol.CompletionItemKindClass,
	feature.AliasItem:  protocol.CompletionItemKindConstant,
	feature.PlaceItem:  protocol.CompletionItemKindStruct,
	feature.SymbolItem: protocol.CompletionItemKindReference,
	feature.LabelItem:  protocol.CompletionItemKindReference,
}

func completionPlace(p *protocol.CompletionParams) *protocol.TextDocumentPositionParams {
	return &p.TextDocumentPositionParams
}

var completion = inConfig(completionPlace,
	func(s *server, p session.Place, off int) (any, error) {
		return s.completions(p, feature.CompleteConfig(p.Src, off))
	},
	onPosition(completionPlace, func(s *server, p session.Place, off int, _ *protocol.CompletionParams) (any, error) {
		return s.completions(p, feature.Complete(p.Program(), off))
	}))

func (s *server) completions(p session.Place, found feature.Completions) (any, error) {
	out := &protocol.CompletionList{IsIncomplete: found.More, Items: []protocol.CompletionItem{}}
	for i, c := range found.Items {
		item := protocol.CompletionItem{
			Label: c.Label, Kind: itemKinds[c.Kind], SortText: protocol.NewOptional(fmt.Sprintf("%04d", i)),
		}
		edit := &protocol.TextEdit{Range: p.Range(found.Span), NewText: c.Text}
		if c.Snippet != "" && s.Features.Snippets {
			edit.NewText, item.InsertTextFormat = c.Snippet, protocol.InsertTextFormatSnippet
		}
		item.TextEdit = edit
		if whole := found.Span; s.Features.InsertReplace && found.End > whole.End {
			whole.End = found.End
			item.TextEdit = &protocol.InsertReplaceEdit{NewText: edit.NewText, Insert: edit.Range, Replace: p.Range(whole)}
		}
		switch { // editors compare what is typed with this
		case c.Filter != "":
			item.FilterText = protocol.NewOptional(c.Filter)
		case !strings.HasPrefix(c.Text, c.Label):
			item.FilterText = protocol.NewOptional(c.Text)
		}
		if c.Detail != "" {
			item.Detail = protocol.NewOptional(c.Detail)
		}
		if c.Doc != "" {
			item.Documentation = markup(c.Doc, s.Features.PlainCompletion)
		}
		if c.Op != "" {
			data, err := protocol.Marshal(c.Op)
			if err != nil {
				return nil, err
			}
			item.Data = data
		}
		out.Items = append(out.Items, item)
	}
	return out, nil
}

// resolveCompletion adds the documentation of an op, which would be too much
// to send for all of them.
var resolveCompletion = onCall(func(_ context.Context, s *server, item *protocol.CompletionItem) (any, error) {
	var name string
	if len(item.Data) > 0 && protocol.Unmarshal(item.Data, &name) == nil {
		if doc := feature.Documentation(name); doc != "" {
			item.Documentation = markup(doc, s.Features.PlainCompletion)
		}
	}
	return item, nil
})
