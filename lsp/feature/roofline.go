package feature

import (
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"strings"

	"dmir/analysis/cost"
	"dmir/analysis/units"
)

// roofline describes where an op stands under the roof of the machine, in words and
// as a small picture: an image where the editor draws such, else a line of text.
func roofline(t cost.TimeTerms, bound string, picture bool) string {
	words := position(t, bound)
	switch {
	case t.Compute == 0 || t.Moved == 0:
		return words + "\n"
	case picture:
		return words + "\n\n" + image(t, bound)
	}
	return words + "\n\n`" + scale(t) + "`\n"
}

// unit is what the slower side of the machine computes with, and its peak in
// FLOP/s over the mix of what it computes.
func unit(t cost.TimeTerms) (name string, peak float64) {
	var ns [2]float64
	var flop [2]int64
	var elems [2][]string
	for _, w := range t.Work {
		i := 0
		if w.Contraction {
			i = 1
		}
		ns[i] += w.Ns()
		flop[i] += w.FLOP
		elems[i] = append(elems[i], w.Elem.String())
	}
	i, what := 0, " vector units"
	if ns[1] >= ns[0] {
		i, what = 1, " contractions"
	}
	return strings.Join(elems[i], ", ") + what, float64(flop[i]) / ns[i] * 1e9
}

// position is "**memory-bound**: 0.250 of the ridge intensity (206 FLOP/B);
// reaches 25.0 % of 989 TFLOP/s (f16 contractions) and 100 % of 4.80 TB/s".
func position(t cost.TimeTerms, bound string) string {
	var reaches []string
	words := ""
	if t.Compute > 0 {
		name, peak := unit(t)
		if t.Moved > 0 {
			if ratio := t.Compute / t.Memory; ratio < 1 {
				words = digits(ratio) + " of the ridge intensity"
			} else {
				words = digits(ratio) + " times the ridge intensity"
			}
			words += " (" + units.Intensity(peak/t.Bandwidth) + ")"
		}
		reaches = append(reaches, fmt.Sprintf("%s of %s (%s)", units.Percent(t.Compute, t.Ns()), units.Rate(peak), name))
	} else {
		words = "computes nothing"
	}
	if t.Moved > 0 {
		reaches = append(reaches, units.Percent(t.Memory, t.Ns())+" of "+bandwidth(t))
	} else {
		words = "moves nothing"
	}
	if t.LinkRate > 0 {
		reaches = append(reaches, units.Percent(t.Link, t.Ns())+" of the "+units.Bandwidth(t.LinkRate)+" to the host")
	}
	switch bound {
	case cost.Latency:
		words += ", the latency of the memory takes longest"
	case cost.Launch:
		words += ", its launch takes longest"
	case cost.Tail:
		words += ", multiprocessors wait for its last tiles"
	case cost.L2:
		words += ", reading its tiles from the level-2 cache takes longest"
	}
	return fmt.Sprintf("**%s-bound**: %s; reaches %s", bound, words, strings.Join(reaches, " and "))
}

// bandwidth is that of the memory, or of where else the data lies.
func bandwidth(t cost.TimeTerms) string {
	if t.Level == "" {
		return units.Bandwidth(t.Bandwidth)
	}
	return units.Bandwidth(t.Bandwidth) + " in " + t.Level
}

// digits is x with three digits.
func digits(x float64) string {
	switch {
	case x < 0.001:
		return "less than 0.001"
	case x >= 1000:
		return units.Rate(x)[:strings.LastIndex(units.Rate(x), "FLOP/s")]
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

// The text picture: the ridge in the middle, the op at its intensity, each mark
// a factor of scaleStep.
const (
	scaleHalf = 8
	scaleStep = 4
)

func scale(t cost.TimeTerms) string {
	at := int(math.Round(math.Log(t.Compute/t.Memory)/math.Log(scaleStep))) + scaleHalf
	at = min(max(at, 0), 2*scaleHalf)
	marks := []rune(strings.Repeat("─", 2*scaleHalf+1))
	marks[scaleHalf] = '┼'
	marks[at] = '●'
	return "memory " + string(marks) + " compute"
}

// The image: both axes logarithmic, the roof in grey, the op a dot. The greys
// and the orange have a contrast of about 4 to both white and black pages.
const (
	imageWidth, imageHeight = 260.0, 96.0
	imageMargin             = 8.0
	imageGrey               = "#7d7d7d"
	imageDot                = "#d2601a"
)

func image(t cost.TimeTerms, bound string) string {
	_, peak := unit(t)
	ridge := peak / t.Bandwidth
	x := ridge * t.Compute / t.Memory // of the slower side, so that the dot lies under its roof
	y := peak * t.Compute / t.Ns()
	const above = 14 // room for the words
	left, right := math.Log10(min(x, ridge))-0.7, math.Log10(max(x, ridge))+0.7
	top := math.Log10(peak)
	low := min(math.Log10(y), left+math.Log10(t.Bandwidth)) - 0.15
	px := func(v float64) float64 {
		return imageMargin + (math.Log10(v)-left)/(right-left)*(imageWidth-2*imageMargin)
	}
	py := func(v float64) float64 {
		return imageMargin + above + (top-math.Log10(v))/(top-low)*(imageHeight-2*imageMargin-2*above)
	}
	start := math.Pow(10, left)
	floor := imageHeight - imageMargin - above
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%g" height="%g" viewBox="0 0 %g %g" font-family="sans-serif" font-size="10" fill="%s">`,
		imageWidth, imageHeight, imageWidth, imageHeight, imageGrey)
	fmt.Fprintf(&b, `<path d="M%.1f %.1fL%.1f %.1fL%.1f %.1f" fill="none" stroke="%s" stroke-width="2"/>`,
		px(start), py(start*t.Bandwidth), px(ridge), py(peak), imageWidth-imageMargin, py(peak), imageGrey)
	fmt.Fprintf(&b, `<path d="M%.1f %.1fV%.1fM%.1f %.1fH%.1f" fill="none" stroke="%s" stroke-dasharray="2 3"/>`,
		px(ridge), py(peak), floor, imageMargin, floor, imageWidth-imageMargin, imageGrey)
	fmt.Fprintf(&b, `<path d="M%.1f %.1fV%.1f" stroke="%s"/><circle cx="%.1f" cy="%.1f" r="4" fill="%s"/>`,
		px(x), py(y), floor, imageDot, px(x), py(y), imageDot)
	fmt.Fprintf(&b, `<text x="%g" y="%g" text-anchor="end">%s</text>`, imageWidth-imageMargin, imageMargin+6, units.Rate(peak))
	fmt.Fprintf(&b, `<text x="%.1f" y="%g" text-anchor="middle">%s</text>`, within(px(ridge), 40), imageHeight-imageMargin, units.Intensity(ridge))
	b.WriteString("</svg>")
	alt := fmt.Sprintf("%s-bound, %s of the ridge intensity", bound, digits(t.Compute/t.Memory))
	return "![" + alt + "](data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString([]byte(b.String())) + ")\n"
}

// within keeps a middle far enough from the edges for words half as wide as room.
func within(x, room float64) float64 {
	return min(max(x, imageMargin+room), imageWidth-imageMargin-room)
}
