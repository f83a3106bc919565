package parse

// brackets is a stack of open brackets. "<" is weak: MLIR's custom forms also
// use it as an operator, so a stronger closing bracket drops open "<"s.
type brackets struct {
	open []token
	n    [4]int32 // how many of each kind are open
}

// nth numbers the four kinds of brackets; an opening kind and its closing kind
// follow each other.
func nth(k kind) int { return int(k-kLParen) / 2 }

// has reports whether a bracket of the opening kind k is open.
func (b *brackets) has(k kind) bool { return b.n[nth(k)] > 0 }

func (b *brackets) push(t token) {
	b.open = append(b.open, t)
	b.n[nth(t.kind)]++
}

// pop closes the innermost bracket that t can close, opener. crossed is the
// outermost strong bracket that had to be dropped on the way; ok is false if
// nothing matches, and then the stack is unchanged.
func (b *brackets) pop(t token) (opener, crossed token, ok bool) {
	want := t.kind - 1
	if !b.has(want) {
		return token{}, token{}, false
	}
	if want == kLAngle && b.open[len(b.open)-1].kind != kLAngle {
		return token{}, token{}, false // an operator: (d0 > 1)
	}
	for i := len(b.open) - 1; ; i-- {
		o := b.open[i]
		b.open = b.open[:i]
		b.n[nth(o.kind)]--
		if o.kind == want {
			return o, crossed, true
		}
		if o.kind != kLAngle {
			crossed = o
		}
	}
}

// drop leaves the n outermost brackets.
func (b *brackets) drop(n int) {
	for _, o := range b.open[n:] {
		b.n[nth(o.kind)]--
	}
	b.open = b.open[:n]
}

func (b *brackets) depth() int { return len(b.open) }

// top is the kind of the innermost open bracket, kEOF outside of all.
func (b *brackets) top() kind {
	if len(b.open) == 0 {
		return kEOF
	}
	return b.open[len(b.open)-1].kind
}

func (b *brackets) reset() {
	b.open = b.open[:0]
	b.n = [4]int32{}
}

// track keeps the stack up to date with t.
func (b *brackets) track(t token) {
	switch t.kind {
	case kLParen, kLBrack, kLBrace, kLAngle:
		b.push(t)
	case kRParen, kRBrack, kRBrace, kRAngle:
		b.pop(t)
	}
}
