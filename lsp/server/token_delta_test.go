package server

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"go.lsp.dev/protocol"

	"dmir/syntax/source"
)

// applyTokens is what an editor does with a difference.
func applyTokens(data []uint32, edits []protocol.SemanticTokensEdit) []uint32 {
	out := slices.Clone(data)
	for _, e := range slices.Backward(edits) {
		out = slices.Replace(out, int(e.Start), int(e.Start+e.DeleteCount), e.Data...)
	}
	return out
}

// An editor that follows the differences through random edits has the tokens
// that it would have asked for whole.
func TestTokenDeltas(t *testing.T) {
	e := connect(t, Options{}, withText)
	e.initialize(`{"textDocument":{"semanticTokens":{"requests":{"full":{"delta":true},"range":true},"tokenTypes":[],"tokenModifiers":[],"formats":["relative"]}}}`, "")
	e.open(ffn)
	whole := func() protocol.SemanticTokens {
		t.Helper()
		var got protocol.SemanticTokens
		e.must("textDocument/semanticTokens/full", doc, &got)
		return got
	}
	held := whole()
	if held.ResultID == nil {
		t.Fatal("the tokens have no name")
	}
	random := rand.New(rand.NewPCG(1, 2))
	texts := []string{"", "\n", "%h", "  %z = dm.exp %x : tensor<4xf32>\n", "𝔻", `"`, "// é\n", "}", "#a = 1\n"}
	fewer := 0
	for version := 2; version < 60; version++ {
		text := source.New("", e.text())
		off := func() (int, int) {
			p := text.Encode(random.IntN(text.Len()+1), source.UTF16)
			return p.Line, p.Col
		}
		l0, c0 := off()
		l1, c1 := l0, c0
		if random.IntN(3) == 0 {
			l1, c1 = off()
		}
		e.change(version, edit(l0, c0, l1, c1, texts[random.IntN(len(texts))]))
		var delta protocol.SemanticTokensDelta
		e.must("textDocument/semanticTokens/full/delta", fmt.Sprintf(`{"textDocument":{"uri":%q},"previousResultId":%q}`, testURI, *held.ResultID), &delta)
		got := applyTokens(held.Data, delta.Edits)
		if len(delta.Edits) > 1 || len(delta.Edits) == 0 && *delta.ResultID != *held.ResultID {
			t.Fatalf("version %d: %d edits under the name %s", version, len(delta.Edits), *delta.ResultID)
		}
		if len(delta.Edits) == 1 && len(delta.Edits[0].Data) < len(got) {
			fewer++
		}
		held = whole()
		if !slices.Equal(got, held.Data) {
			t.Fatalf("version %d: the difference leads to other tokens than\n%s", version, e.text())
		}
		if text.Len() > 4*len(ffn) || text.Len() < 40 {
			e.change(version, `{"text":`+quote(ffn)+`}`)
			held = whole()
		}
	}
	if fewer < 20 {
		t.Errorf("only %d of the differences are smaller than the whole", fewer)
	}
	// A name that the server does not know is answered with all.
	var again protocol.SemanticTokens
	e.must("textDocument/semanticTokens/full/delta", fmt.Sprintf(`{"textDocument":{"uri":%q},"previousResultId":"none"}`, testURI), &again)
	if !slices.Equal(again.Data, held.Data) || again.ResultID == nil || *again.ResultID == *held.ResultID {
		t.Errorf("after a name that is not known: %d numbers under %v", len(again.Data), again.ResultID)
	}
	e.notify("textDocument/didClose", doc)
	e.must("textDocument/semanticTokens/full/delta", fmt.Sprintf(`{"textDocument":{"uri":%q},"previousResultId":%q}`, testURI, *again.ResultID), nil)
	if left := len(e.server.tokens.last); left != 0 {
		t.Errorf("%d results are kept of closed documents", left)
	}
}

func TestTokenEdits(t *testing.T) {
	tokens := func(letters string) (out packed) {
		for _, l := range letters {
			out.add(0, 1, 2, 3, uint32(l)<<10)
		}
		return out
	}
	for _, c := range []struct{ before, after, want string }{
		{"", "", ""},
		{"abc", "abc", ""},
		{"", "ab", "0-0 ab"},
		{"abc", "", "0-3 "},
		{"abc", "axc", "1-2 x"},
		{"abc", "ac", "1-2 "},
		{"aa", "aaa", "2-2 a"},
		{"aaa", "aa", "2-3 "},
		{"abab", "ab", "2-4 "},
		{"xabc", "abc", "0-1 "},
	} {
		var edits []string
		for _, e := range tokenEdits(tokens(c.before), tokens(c.after)) {
			var letters strings.Builder
			for d := e.Data; len(d) > 0; d = d[perToken:] {
				letters.WriteByte(byte(d[4] >> 10))
			}
			edits = append(edits, fmt.Sprintf("%d-%d %s", e.Start/perToken, (e.Start+e.DeleteCount)/perToken, letters.String()))
		}
		if got := strings.Join(edits, ", "); got != c.want {
			t.Errorf("%s to %s: %q, want %q", c.before, c.after, got, c.want)
		}
	}
}

// The tokens of stretches are those of the whole, however long their numbers.
func TestJoinedTokens(t *testing.T) {
	var whole packed
	parts := make([]packed, 4)
	for i := range uint32(400) {
		line := int(i * i / 4)
		whole.add(line, i<<(i%20), 1, i%3, 0)
		if i >= 100 { // the first stretch has none
			parts[i/100].add(line, i<<(i%20), 1, i%3, 0)
		} else {
			parts[1].add(line, i<<(i%20), 1, i%3, 0)
		}
	}
	joint := joined(parts)
	if !slices.Equal(joint.data, whole.data) {
		t.Error("the stretches have other tokens")
	}
	var read protocol.SemanticTokens
	if err := protocol.Unmarshal(joint.message("7"), &read); err != nil || *read.ResultID != "7" || !slices.Equal(read.Data, unpack(whole.data)) {
		t.Errorf("read as %d numbers under %v: %v", len(read.Data), read.ResultID, err)
	}
}
