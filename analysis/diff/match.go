package diff

import "iter"

// pair is what stands for the same in both versions; nil where one lacks it.
type pair[T any] struct{ old, new T }

// matcher pairs the elements of two lists by one key after the other; each is
// in one pair at most.
type matcher[T comparable] struct {
	old, new []T
	toNew    []int // by old: its partner, or -1
	toOld    []int
}

func newMatcher[T comparable](old, new []T) *matcher[T] {
	m := &matcher[T]{old: old, new: new, toNew: make([]int, len(old)), toOld: make([]int, len(new))}
	for i := range m.toNew {
		m.toNew[i] = -1
	}
	for i := range m.toOld {
		m.toOld[i] = -1
	}
	return m
}

// by pairs what is still alone on both sides and has the same key, in order;
// "" is no key.
func (m *matcher[T]) by(key func(T) string) {
	waiting := map[string][]int{}
	for i, x := range m.old {
		if m.toNew[i] < 0 {
			if k := key(x); k != "" {
				waiting[k] = append(waiting[k], i)
			}
		}
	}
	if len(waiting) == 0 {
		return
	}
	for j, y := range m.new {
		if m.toOld[j] >= 0 {
			continue
		}
		k := key(y)
		if is := waiting[k]; len(is) > 0 && k != "" {
			m.toNew[is[0]], m.toOld[j] = j, is[0]
			waiting[k] = is[1:]
		}
	}
}

// pairs is every element once: those of new in order, and each of old that has
// no partner before the partner of one that stood after it.
func (m *matcher[T]) pairs() iter.Seq[pair[T]] {
	return func(yield func(pair[T]) bool) {
		var none T
		next := 0
		alone := func(to int) bool {
			for ; next < to; next++ {
				if m.toNew[next] < 0 && !yield(pair[T]{m.old[next], none}) {
					return false
				}
			}
			return true
		}
		for j, y := range m.new {
			p := pair[T]{none, y}
			if i := m.toOld[j]; i >= 0 {
				if !alone(i) {
					return
				}
				p.old = m.old[i]
			}
			if !yield(p) {
				return
			}
		}
		alone(len(m.old))
	}
}
