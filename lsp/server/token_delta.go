package server

import (
	"encoding/binary"
	"strconv"
	"sync"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
)

// perToken is how many numbers describe one token: its line and column counted
// from the token before, its length, its type, its modifiers.
const perToken = 5

// packed are tokens as numbers of variable length, most of them a byte each.
type packed struct {
	data []byte
	line int // of the last token
}

// add adds a token.
func (k *packed) add(line int, column, length, kind, modifiers uint32) {
	k.data = binary.AppendUvarint(k.data, uint64(line-k.line))
	for _, n := range [...]uint32{column, length, kind, modifiers} {
		k.data = binary.AppendUvarint(k.data, uint64(n))
	}
	k.line = line
}

// joined are the tokens of stretches of a text that begin lines.
func joined(parts []packed) packed {
	size := 0
	for _, k := range parts {
		size += len(k.data)
	}
	out := packed{data: make([]byte, 0, size)}
	for _, k := range parts {
		if len(k.data) > 0 {
			first, n := binary.Uvarint(k.data)
			out.data = binary.AppendUvarint(out.data, first-uint64(out.line))
			out.data = append(out.data, k.data[n:]...)
			out.line = k.line
		}
	}
	return out
}

// message is a SemanticTokens of the protocol, under a name unless that is empty.
func (k packed) message(id string) jsonrpc2.RawMessage {
	out := make([]byte, 0, 2*len(k.data)+len(k.data)/4+64)
	out = append(out, '{')
	if id != "" {
		out = append(strconv.AppendQuote(append(out, `"resultId":`...), id), ',')
	}
	out = append(out, `"data":[`...)
	for data := k.data; len(data) > 0; {
		if n := data[0]; n < 10 {
			out = append(out, '0'+n, ',')
			data = data[1:]
			continue
		}
		n, size := binary.Uvarint(data)
		out = append(strconv.AppendUint(out, n, 10), ',')
		data = data[size:]
	}
	if len(k.data) > 0 {
		out = out[:len(out)-1]
	}
	return append(out, `]}`...)
}

// tokenResults are the tokens last sent for each document, so that the next
// answer holds what has changed since alone.
type tokenResults struct {
	mu     sync.Mutex
	number uint64
	last   map[string]tokenResult // by the document's key
}

type tokenResult struct {
	id     string
	tokens packed
}

// keep keeps what is sent for a document and returns a name for it that no other
// result has.
func (r *tokenResults) keep(key string, tokens packed) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		r.last = map[string]tokenResult{}
	}
	r.number++
	id := strconv.FormatUint(r.number, 10)
	r.last[key] = tokenResult{id, tokens}
	return id
}

// find returns the tokens that were sent under id, unless others were sent since.
func (r *tokenResults) find(key, id string) (packed, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was, ok := r.last[key]
	return was.tokens, ok && was.id == id
}

// forget drops the result of a closed document.
func (r *tokenResults) forget(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.last, key)
}

// tokenEdits turn the tokens before into those after: none where they are
// equal, else one, of the tokens between the first and the last that differ.
func tokenEdits(before, after packed) []protocol.SemanticTokensEdit {
	a, b := before.data, after.data
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	if n == len(a) && n == len(b) {
		return []protocol.SemanticTokensEdit{}
	}
	same := numbers(a[:n]) / perToken * perToken
	lo := behind(a, same)
	i, j := len(a), len(b)
	for i > lo && j > lo && a[i-1] == b[j-1] {
		i, j = i-1, j-1
	}
	// What is equal at the end begins with a token in both.
	starts := func(data []byte, at int) bool { return at == lo || data[at-1] < more }
	if whole := numbers(a[lo:i]); whole%perToken != 0 || !starts(a, i) || !starts(b, j) {
		to := lo + behind(a[lo:], (whole/perToken+1)*perToken)
		i, j = to, j+to-i
	}
	return []protocol.SemanticTokensEdit{{Start: uint32(same), DeleteCount: uint32(numbers(a[lo:i])), Data: unpack(b[lo:j])}}
}

// more is the bit of a byte that is not the last of its number.
const more = 0x80

// numbers is how many numbers end in data.
func numbers(data []byte) int {
	n := 0
	for _, b := range data {
		if b < more {
			n++
		}
	}
	return n
}

// behind is the place behind the first n numbers of data.
func behind(data []byte, n int) int {
	i := 0
	for ; n > 0; i++ {
		if data[i] < more {
			n--
		}
	}
	return i
}

func unpack(data []byte) []uint32 {
	out := make([]uint32, 0, numbers(data))
	for len(data) > 0 {
		n, size := binary.Uvarint(data)
		out, data = append(out, uint32(n)), data[size:]
	}
	return out
}
