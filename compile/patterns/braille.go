package patterns

import (
	"strings"

	"dmir/analysis/report"
)

// Braille is the picture of p in lines of text: a character has four cells down and two across, and a dot for each cell that stores no
// fewer elements than the mean of all. It is "" where there is no picture.
func Braille(p *report.Pattern) string {
	total := int64(0)
	for _, n := range p.Counts {
		total += n
	}
	var b strings.Builder
	for row := 0; row < p.Down && len(p.Counts) > 0; row += 4 {
		for column := 0; column < p.Across; column += 2 {
			dots := rune(0)
			for _, d := range [...]struct {
				down, across int
				bit          rune
			}{{0, 0, 0x01}, {1, 0, 0x02}, {2, 0, 0x04}, {0, 1, 0x08}, {1, 1, 0x10}, {2, 1, 0x20}, {3, 0, 0x40}, {3, 1, 0x80}} {
				if i, j := row+d.down, column+d.across; i < p.Down && j < p.Across {
					if n := p.Counts[i*p.Across+j]; n > 0 && n*int64(len(p.Counts)) >= total {
						dots |= d.bit
					}
				}
			}
			b.WriteRune(0x2800 + dots)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
