package parse

import "dmir/syntax/lex"

// brackets is a stack of open brackets. "<" is weak: MLIR's custom forms also
// use it as an operator, so a stronger closing bracket drops open "<"s.
type brackets struct {
	open []lex.Token
	n    [4]int32 // how many of each kind are open
}

// nth numbers the four kinds of brackets; an opening kind and its closing kind
// follow each other.
func nth(k lex.Kind) int { return int(k-lex.LParen) / 2 }

// has reports whether a bracket of the opening kind k is open.
func (b *brackets) has(k lex.Kind) bool { return b.n[nth(k)] > 0 }

func (b *brackets) push(t lex.Token) {
	b.open = append(b.open, t)
	b.n[nth(t.Kind)]++
}

// pop closes the innermost bracket that t can close, opener. crossed is the
// outermost strong bracket that had to be dropped on the way; ok is false if
// nothing matches, and then the stack is unchanged.
func (b *brackets) pop(t lex.Token) (opener, crossed lex.Token, ok bool) {
	want := t.Kind - 1
	if !b.has(want) {
		return lex.Token{}, lex.Token{}, false
	}
	if want == lex.LAngle && b.open[len(b.open)-1].Kind != lex.LAngle {
		return lex.Token{}, lex.Token{}, false // an operator: (d0 > 1)
	}
	for i := len(b.open) - 1; ; i-- {
		o := b.open[i]
		b.open = b.open[:i]
		b.n[nth(o.Kind)]--
		if o.Kind == want {
			return o, crossed, true
		}
		if o.Kind != lex.LAngle {
			crossed = o
		}
	}
}

// drop leaves the n outermost brackets.
func (b *brackets) drop(n int) {
	for _, o := range b.open[n:] {
		b.n[nth(o.Kind)]--
	}
	b.open = b.open[:n]
}

func (b *brackets) depth() int { return len(b.open) }

// top is the kind of the innermost open bracket, lex.EOF outside of all.
func (b *brackets) top() lex.Kind {
	if len(b.open) == 0 {
		return lex.EOF
	}
	return b.open[len(b.open)-1].Kind
}

func (b *brackets) reset() {
	b.open = b.open[:0]
	b.n = [4]int32{}
}

// track keeps the stack up to date with t.
func (b *brackets) track(t lex.Token) {
	switch t.Kind {
	case lex.LParen, lex.LBrack, lex.LBrace, lex.LAngle:
		b.push(t)
	case lex.RParen, lex.RBrack, lex.RBrace, lex.RAngle:
		b.pop(t)
	}
}
