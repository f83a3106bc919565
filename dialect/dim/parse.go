package dim

import (
	"fmt"
	"strconv"
)

// Limits of a written size, so that no text makes a huge polynomial.
const (
	maxNesting = 32
	maxPower   = 8
	maxTerms   = 64
)

// Parse reads a size as people write it in #dm.at<dims = […]> and on the
// command line: integers and symbols with +, -, *, ^ and parentheses, and sums in
// parentheses divided by a number, rounded down ("2*n", "b*n", "(h + 1)*w", "n^2",
// "(h + 1)/2").
func Parse(text string) (Dim, error) {
	p := parser{text: text}
	d, err := p.sum(0)
	if err != nil {
		return Dim{}, err
	}
	if p.skip(); p.at < len(p.text) {
		return Dim{}, fmt.Errorf("unexpected %q in the size %q; sizes are products and sums such as 2*n + 1", p.text[p.at:], text)
	}
	if d.Overflow() {
		return Dim{}, fmt.Errorf("the size %q does not fit in 63 bits", text)
	}
	return d, nil
}

type parser struct {
	text string
	at   int
}

func (p *parser) skip() {
	for p.at < len(p.text) && (p.text[p.at] == ' ' || p.text[p.at] == '\t' || p.text[p.at] == '\n' || p.text[p.at] == '\r') {
		p.at++
	}
}

func (p *parser) take(c byte) bool {
	p.skip()
	if p.at < len(p.text) && p.text[p.at] == c {
		p.at++
		return true
	}
	return false
}

func (p *parser) sum(depth int) (Dim, error) {
	if depth > maxNesting {
		return Dim{}, fmt.Errorf("the size %.20q… is nested too deeply", p.text)
	}
	sign := int64(1)
	if p.take('-') {
		sign = -1
	}
	d, err := p.product(depth)
	d = d.Scale(sign)
	for err == nil {
		switch {
		case p.take('+'):
			sign = 1
		case p.take('-'):
			sign = -1
		default:
			return d, nil
		}
		var e Dim
		if e, err = p.product(depth); err == nil {
			d = d.Add(e.Scale(sign))
			err = p.limit(d)
		}
	}
	return Dim{}, err
}

func (p *parser) product(depth int) (Dim, error) {
	d, err := p.power(depth)
	for err == nil && p.take('*') {
		var e Dim
		if e, err = p.power(depth); err == nil {
			d = d.Mul(e)
			err = p.limit(d)
		}
	}
	return d, err
}

func (p *parser) power(depth int) (Dim, error) {
	base, err := p.factor(depth)
	if err != nil || !p.take('^') {
		return base, err
	}
	p.skip()
	n, err := strconv.Atoi(p.word(isDigit))
	if err != nil || n > maxPower {
		return Dim{}, fmt.Errorf("the power in the size %q is not a number from 0 to %d", p.text, maxPower)
	}
	d := Const(1)
	for range n {
		d = d.Mul(base)
		if err := p.limit(d); err != nil {
			return Dim{}, err
		}
	}
	return d, nil
}

func (p *parser) factor(depth int) (Dim, error) {
	if p.take('(') {
		d, err := p.sum(depth + 1)
		if err == nil && !p.take(')') {
			err = fmt.Errorf("a parenthesis is not closed in the size %q", p.text)
		}
		if err != nil || !p.take('/') {
			return d, err
		}
		p.skip()
		n, err := strconv.ParseInt(p.word(isDigit), 10, 64)
		if err != nil || n < 1 {
			return Dim{}, fmt.Errorf("the divisor in the size %q is not a number from 1 on", p.text)
		}
		return Quotient(d, n), nil
	}
	p.skip()
	switch {
	case p.at == len(p.text):
		return Dim{}, fmt.Errorf("a name or a number is missing in the size %q", p.text)
	case isDigit(p.text[p.at]):
		s := p.word(isDigit)
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return Dim{}, fmt.Errorf("%s in the size %q does not fit in 63 bits", s, p.text)
		}
		return Const(n), nil
	case isLetter(p.text[p.at]):
		return Sym(p.word(func(c byte) bool { return isLetter(c) || isDigit(c) })), nil
	}
	return Dim{}, fmt.Errorf("unexpected %q in the size %q; sizes are products and sums such as 2*n + 1", p.text[p.at:p.at+1], p.text)
}

func (p *parser) limit(d Dim) error {
	if len(d.poly()) > maxTerms {
		return fmt.Errorf("the size %.40q… has more than %d terms", p.text, maxTerms)
	}
	for _, t := range d.poly() {
		if len(t.syms) > maxPower {
			return fmt.Errorf("the size %.40q… is a product of more than %d symbols, or a power beyond it", p.text, maxPower)
		}
	}
	return nil
}

func (p *parser) word(in func(byte) bool) string {
	start := p.at
	for p.at < len(p.text) && in(p.text[p.at]) {
		p.at++
	}
	return p.text[start:p.at]
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLetter(c byte) bool { return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
