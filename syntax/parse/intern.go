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
	maxInterned      = 1 << 16 // texts of a generation
	maxInternedBytes = 1 << 24 // bytes of their texts
)

// get is the result for text, made by parse if it is not known. parse is given
// a copy of text, so that the results do not keep a whole file alive.
func (m *interned[T]) get(text string, parse func(string) (T, *Error)) (T, error) {
	m.mu.RLock()
	r, ok := m.young[text]
	if !ok {
		if r, ok = m.old[text]; ok {
			m.mu.RUnlock()
			m.keep(strings.Clone(text), r)
			return r.unpack()
		}
	}
	m.mu.RUnlock()
	if !ok {
		text = strings.Clone(text)
		r.val, r.err = parse(text)
		r = m.keep(text, r)
	}
	return r.unpack()
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
