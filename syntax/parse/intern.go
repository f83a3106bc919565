package parse

import (
	"strings"
	"sync"
)

// interned keeps the result of parsing each distinct text. It is bounded: when
// the young generation is full it becomes the old one, and what was in the old
// one and has not been asked for since is forgotten.
type interned[T any] struct {
	mu         sync.RWMutex
	young, old map[string]result[T]
	bytes      int
}

type result[T any] struct {
	val T
	err *Error
}

const (
	maxInterned      = 1 << 14 // texts of a generation
	maxInternedBytes = 1 << 24 // bytes of their texts
	maxInternedText  = 1 << 20 // bytes of a text that is remembered; longer ones are literals, which do not repeat
)

// own is a copy of text, so that what is made of it does not keep a whole file alive;
// but a text that is too long to be remembered as it is, which may be most of the file.
func own(text string) string {
	if len(text) > maxInternedText {
		return text
	}
	return strings.Clone(text)
}

// get is the result for text, made by parse if it is not known. parse is given its own
// text.
func (m *interned[T]) get(text string, parse func(string) (T, *Error)) (T, error) {
	if len(text) > maxInternedText {
		v, err := parse(text)
		return result[T]{v, err}.unpack()
	}
	r, ok := m.find(text)
	if !ok {
		text = own(text)
		r.val, r.err = parse(text)
		r = m.keep(text, r)
	}
	return r.unpack()
}

// find is the result for text if it is known.
func (m *interned[T]) find(text string) (result[T], bool) {
	m.mu.RLock()
	r, young := m.young[text]
	old := false
	if !young {
		r, old = m.old[text]
	}
	m.mu.RUnlock()
	if old {
		r = m.keep(strings.Clone(text), r)
	}
	return r, young || old
}

func (r result[T]) unpack() (T, error) {
	if r.err != nil {
		return r.val, r.err
	}
	return r.val, nil
}

// keep stores r under text unless another goroutine was first; it returns what
// is stored.
func (m *interned[T]) keep(text string, r result[T]) result[T] {
	m.mu.Lock()
	defer m.mu.Unlock()
	if first, ok := m.young[text]; ok {
		return first
	}
	if m.young == nil || len(m.young) >= maxInterned || m.bytes >= maxInternedBytes {
		m.old, m.young, m.bytes = m.young, map[string]result[T]{}, 0
	}
	m.young[text] = r
	m.bytes += len(text)
	return r
}
