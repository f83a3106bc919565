package server

import (
	"fmt"
	"strings"
	"testing"

	"go.lsp.dev/protocol"
)

const typing = `!act = tensor<8x512xf16>
func.func @f(%x: !act, %w: tensor<512x512xf16>) -> !act {
  %0 = dm.exp %x : !act
  %1 = dm.soft
  return %0 : !act
}
`

func (e *editor) complete(line, char int) (items []protocol.CompletionItem, more bool) {
	e.t.Helper()
	var list protocol.CompletionList
	e.must("textDocument/completion", at(line, char), &list)
	return list.Items, list.IsIncomplete
}

func pick(t *testing.T, items []protocol.CompletionItem, label string) protocol.CompletionItem {
	t.Helper()
	for _, it := range items {
		if it.Label == label {
			return it
		}
	}
	t.Fatalf("%s is not offered", label)
	return protocol.CompletionItem{}
}

// An op is offered with places to fill in where the editor knows them, plain
// where it does not, and its documentation comes when it is looked at.
func TestCompletion(t *testing.T) {
	for _, c := range []struct{ capabilities, text string }{
		{`{}`, "dm.softmax"},
		{`{"textDocument":{"completion":{"completionItem":{"snippetSupport":true,"documentationFormat":["plaintext"]}}}}`, "dm.softmax ${1|%0,%w,%x|} : ${2|!act,tensor<512x512xf16>|}"},
	} {
		e := connect(t, Options{}, nil)
		e.initialize(c.capabilities, "")
		e.open(typing)
		items, _ := e.complete(3, 14)
		it := pick(t, items, "dm.softmax")
		edit, ok := it.TextEdit.(*protocol.TextEdit)
		if !ok || edit.NewText != c.text || edit.Range != (protocol.Range{Start: protocol.Position{Line: 3, Character: 7}, End: protocol.Position{Line: 3, Character: 14}}) {
			t.Errorf("%s: %+v", c.capabilities, it.TextEdit)
		}
		if it.Documentation != nil {
			t.Error("documentation is sent for every op")
		}
		raw, err := protocol.Marshal(&it)
		if err != nil {
			t.Fatal(err)
		}
		var full protocol.CompletionItem
		e.must("completionItem/resolve", string(raw), &full)
		doc, ok := full.Documentation.(*protocol.MarkupContent)
		if !ok || !strings.Contains(doc.Value, "Exponentials that sum to 1") || strings.Contains(c.capabilities, "plaintext") != (doc.Kind == protocol.MarkupKindPlainText) {
			t.Errorf("%s: documentation %+v", c.capabilities, full.Documentation)
		}
		if full.Label != it.Label || full.TextEdit == nil {
			t.Errorf("resolving loses %+v", full)
		}
		// A value needs none, and whatever an editor sends back does no harm.
		e.must("completionItem/resolve", `{"label":"%x","data":{"a":1}}`, &full)
		values, _ := e.complete(4, 10)
		if len(values) == 0 || values[0].Label != "%0" {
			t.Errorf("values %+v", values)
		}
	}
}

// Inside of a word an editor may replace what follows as well.
func TestInsertReplace(t *testing.T) {
	for _, able := range []bool{true, false} {
		e := connect(t, Options{}, nil)
		e.initialize(fmt.Sprintf(`{"textDocument":{"completion":{"completionItem":{"snippetSupport":true,"insertReplaceSupport":%v}}}}`, able), "")
		e.open(strings.Replace(typing, "dm.soft", "dm.softmax %0", 1))
		items, _ := e.complete(3, 12)
		switch edit := pick(t, items, "dm.softmax").TextEdit.(type) {
		case *protocol.InsertReplaceEdit:
			if !able || edit.NewText != "dm.softmax" || edit.Insert.Start.Character != 7 || edit.Insert.End.Character != 12 || edit.Replace.Start.Character != 7 || edit.Replace.End.Character != 17 {
				t.Errorf("%+v", edit)
			}
		case *protocol.TextEdit:
			if able || edit.Range.End.Character != 12 {
				t.Errorf("%+v", edit)
			}
		}
	}
}

// What is typed of an item is what the editor filters it by, also where it is
// shown by another name.
func TestCompletionInEquation(t *testing.T) {
	e := connect(t, Options{}, nil)
	e.initialize("", "")
	e.open("func.func @f(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>) {\n  %y = dm.einsum \"ij,jk->i\n}\n")
	items, _ := e.complete(1, 26)
	it := pick(t, items, "k")
	edit, ok := it.TextEdit.(*protocol.TextEdit)
	if filter, _ := it.FilterText.Get(); filter != "ik" || !ok || edit.NewText != "ik" || edit.Range.Start.Character != 25 {
		t.Errorf("%+v with %+v", it, it.TextEdit)
	}
}

// A function of many values answers with the nearest and reports that there are more.
func TestManyValues(t *testing.T) {
	var b strings.Builder
	b.WriteString("func.func @f(%x: tensor<4xf32>) {\n")
	for i := range 300 {
		fmt.Fprintf(&b, "  %%v%d = dm.exp %%x : tensor<4xf32>\n", i)
	}
	b.WriteString("  %y = dm.exp %\n}\n")
	e := connect(t, Options{}, nil)
	e.initialize("", "")
	e.open(b.String())
	items, more := e.complete(301, 15)
	if !more || len(items) != 200 || items[0].Label != "%v299" {
		t.Errorf("%d items, more: %v", len(items), more)
	}
	e.change(2, edit(301, 15, 301, 15, "x"))
	if items, more = e.complete(301, 16); more || len(items) != 1+20 || items[0].Label != "%x" { // itself, and what may stand in its place
		t.Errorf("typing on: %d items, more: %v", len(items), more)
	}
}

// The form of an op while its operands are typed.
func TestSignatureHelp(t *testing.T) {
	e := connect(t, Options{}, nil)
	e.initialize(`{"textDocument":{"signatureHelp":{"signatureInformation":{"parameterInformation":{"labelOffsetSupport":true}}}}}`, "")
	e.open("func.func @f(%x: tensor<4xf32>) {\n  %y = dm.reduce add %x, dims = [\n}\n")
	var help protocol.SignatureHelp
	e.must("textDocument/signatureHelp", at(1, 33), &help)
	if len(help.Signatures) != 1 {
		t.Fatalf("%+v", help)
	}
	sig := help.Signatures[0]
	active, _ := help.ActiveParameter.Get()
	span := sig.Parameters[active].Label.(protocol.ParameterInformationLabelTuple)
	if runes := []rune(sig.Label); string(runes[span[0]:span[1]]) != "dims = […]" {
		t.Errorf("%q: %v is active", sig.Label, span)
	}
	var none *protocol.SignatureHelp
	e.must("textDocument/signatureHelp", at(0, 3), &none)
	if none != nil {
		t.Errorf("a function has %+v", none)
	}
}

// What is asked about places: each answer in the editor's own columns.
func TestPlaces(t *testing.T) {
	e := connect(t, Options{}, nil)
	e.initialize("", "")
	e.open(strings.Replace(typing, "%1 = dm.soft", "%1 = dm.softmax %0 : !act // 𝔻𝕄: \"é\"", 1))
	var loc protocol.LocationSlice
	e.must("textDocument/typeDefinition", at(4, 10), &loc)
	if len(loc) != 1 || loc[0].Range.Start != (protocol.Position{}) {
		t.Errorf("type of %%0: %+v", loc)
	}
	e.must("textDocument/declaration", at(4, 10), &loc)
	if len(loc) != 1 || loc[0].Range.Start != (protocol.Position{Line: 2, Character: 2}) {
		t.Errorf("declaration of %%0: %+v", loc)
	}
	var ranges []protocol.SelectionRange
	e.must("textDocument/selectionRange", fmt.Sprintf(`{"textDocument":{"uri":%q},"positions":[{"line":3,"character":20},{"line":0,"character":0}]}`, testURI), &ranges)
	if len(ranges) != 2 || ranges[0].Range.Start != (protocol.Position{Line: 3, Character: 18}) || ranges[0].Parent == nil {
		t.Errorf("selections %+v", ranges)
	}
	for r := &ranges[0]; r.Parent != nil; r = r.Parent {
		if r.Parent.Range.Start.Line > r.Range.Start.Line || r.Parent.Range.End.Line < r.Range.End.Line {
			t.Errorf("%v is not inside %v", r.Range, r.Parent.Range)
		}
	}
	var syms protocol.SymbolInformationSlice
	e.must("workspace/symbol", `{"query":"F"}`, &syms)
	if len(syms) != 1 || syms[0].Name != "@f" || string(syms[0].Location.URI) != testURI {
		t.Errorf("symbols %+v", syms)
	}
	e.must("workspace/symbol", `{"query":"nowhere"}`, &syms)
	if len(syms) != 0 {
		t.Errorf("symbols %+v", syms)
	}
}

// Colours: the range's are those of the whole, and columns count in UTF-16.
func TestSemanticTokens(t *testing.T) {
	e := connect(t, Options{}, nil)
	e.initialize("", "")
	e.open("#𝔸 = 1\n%y = dm.exp %x : !act // 𝔻é\nreturn\n")
	read := func(method, params string) (out []string) {
		t.Helper()
		var data protocol.SemanticTokens
		e.must(method, params, &data)
		line, col := uint32(0), uint32(0)
		for d := data.Data; len(d) >= 5; d = d[5:] {
			if d[0] > 0 {
				line, col = line+d[0], 0
			}
			col += d[1]
			out = append(out, fmt.Sprintf("%d:%d+%d %s", line, col, d[2], tokenTypes[d[3]]))
		}
		return out
	}
	all := strings.Join(read("textDocument/semanticTokens/full", doc), "\n")
	some := strings.Join(read("textDocument/semanticTokens/range", `{"textDocument":{"uri":"`+testURI+`"},"range":{"start":{"line":1,"character":3},"end":{"line":1,"character":9}}}`), "\n")
	want := "1:0+2 variable\n1:5+2 namespace\n1:8+3 function\n1:12+2 variable\n1:17+4 macro\n1:22+6 comment"
	if some != want || !strings.Contains(all, want) || !strings.HasSuffix(all, "2:0+6 keyword") {
		t.Errorf("of the line:\n%s\nof all:\n%s", some, all)
	}
}

// Formatting a selection leaves the other lines alone.
func TestRangeFormatting(t *testing.T) {
	e := connect(t, Options{}, nil)
	e.initialize("", "")
	e.open("func.func   @f() {\nreturn\n}\nfunc.func   @g() {\nreturn\n}\n")
	var edits []protocol.TextEdit
	e.must("textDocument/rangeFormatting", `{"textDocument":{"uri":"`+testURI+`"},"range":{"start":{"line":1,"character":2},"end":{"line":2,"character":0}},"options":{"tabSize":2,"insertSpaces":true}}`, &edits)
	if len(edits) != 1 || edits[0].Range.Start.Line != 1 || edits[0].NewText != "  " {
		t.Errorf("edits %+v", edits)
	}
}
