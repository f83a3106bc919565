package server

import (
	"encoding/binary"
	"strconv"
	"sync"

	"go.lsp.dev/protocol"
)

// perToken is how many numbers describe one token.
const perToken = 5

// tokenResults are the tokens last sent for each document, so that the next
// answer need only say what became different. They are kept packed: a token
// takes about as many bytes as it has numbers.
type tokenResults struct {
	mu     sync.Mutex
	number uint64
	last   map[string]tokenResult // by the document's key
}

type tokenResult struct {
	id     string
	packed []byte
}

// keep remembers what is sent for a document and gives it a name that no other
// result has.
func (r *tokenResults) keep(key string, data []uint32) string {
	packed := pack(data)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		r.last = map[string]tokenResult{}
	}
	r.number++
	id := strconv.FormatUint(r.number, 10)
	r.last[key] = tokenResult{id, packed}
	return id
}

// find are the tokens that were sent under id, unless others were sent since.
func (r *tokenResults) find(key, id string) ([]uint32, bool) {
	r.mu.Lock()
	was, ok := r.last[key]
	r.mu.Unlock()
	if !ok || was.id != id {
		return nil, false
	}
	return unpack(was.packed), true
}

func (r *tokenResults) forget(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.last, key)
}

func pack(data []uint32) []byte {
	out := make([]byte, 0, len(data)+len(data)/4)
	for _, n := range data {
		out = binary.AppendUvarint(out, uint64(n))
	}
	return out
}

func unpack(packed []byte) []uint32 {
	out := make([]uint32, 0, len(packed))
	for len(packed) > 0 {
		n, size := binary.Uvarint(packed)
		out, packed = append(out, uint32(n)), packed[size:]
	}
	return out
}

// tokenEdits turn the tokens before into those after: none where they are
// equal, else one, of the tokens between the first and the last that differ.
func tokenEdits(before, after []uint32) []protocol.SemanticTokensEdit {
	same := func(i, j int) bool {
		return [perToken]uint32(before[i:]) == [perToken]uint32(after[j:])
	}
	lo := 0
	for lo < len(before) && lo < len(after) && same(lo, lo) {
		lo += perToken
	}
	i, j := len(before), len(after)
	for i > lo && j > lo && same(i-perToken, j-perToken) {
		i, j = i-perToken, j-perToken
	}
	if i == lo && j == lo {
		return []protocol.SemanticTokensEdit{}
	}
	return []protocol.SemanticTokensEdit{{Start: uint32(lo), DeleteCount: uint32(i - lo), Data: after[lo:j]}}
}
