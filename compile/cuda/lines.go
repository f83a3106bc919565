package cuda

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dmir/dialect/ir"
	"dmir/internal/escape"
	"dmir/syntax/source"
)

// line is where o stands in the program; 0 where it has no place.
func (b *builder) line(o *ir.Op) int {
	if o == nil || o.Span == (source.Span{}) {
		return 0
	}
	return b.lineAt(o.Span.Start)
}

func (b *builder) lineAt(offset int) int {
	if b.text == nil {
		return 0
	}
	line, _ := b.text.Human(offset)
	return line
}

// from notes the lines of the program that kernel n came from: those of o and of
// the ops in it, the first line first.
func (b *builder) from(n int, o *ir.Op) {
	k := &b.out.Kernels[n]
	note := func(o *ir.Op) bool {
		if line := b.line(o); line > 0 && o.Name != "dm.constant" && !slices.Contains(k.Lines, line) {
			k.Lines = append(k.Lines, line)
		}
		return true
	}
	note(o)
	for _, r := range o.Regions {
		for _, inner := range r.Blocks {
			ir.Walk(inner.Ops, note)
		}
	}
	slices.Sort(k.Lines)
}

// While a kernel is written, a line that begins with this byte and has a number
// says that what follows stands for the op at that offset of the program. The
// same kernel may be written for other ops, so lines come in at the end.
const markByte = '\x00'

// mark is such a line for o; empty where o has no place.
func mark(o *ir.Op) string {
	if o == nil || o.Span == (source.Span{}) {
		return ""
	}
	return string(markByte) + strconv.Itoa(o.Span.Start) + "\n"
}

// unmarked is text without marks.
func unmarked(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line[0] != markByte {
			b.WriteString(line)
		}
	}
	return b.String()
}

// placed writes a kernel, the declarations that stand before it first, with a
// #line where a text begins that stands for another line of the program than
// the text before it. What no mark says stands for the line head; 0: none is
// known.
func (b *builder) placed(to *strings.Builder, before, kernel string, head int) {
	said, next := 0, head
	write := func(text string) {
		for line := range strings.Lines(text) {
			if line[0] == markByte {
				if offset, err := strconv.Atoi(strings.TrimSpace(line[1:])); err == nil {
					next = b.lineAt(offset)
				}
				continue
			}
			if next != said {
				fmt.Fprintf(to, "#line %d %s\n", next, escape.Line(b.out.File))
				said = next
			}
			to.WriteString(line)
		}
	}
	write(before)
	next = head
	write(kernel)
}
