package types

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dmir/dialect/dim"
	"dmir/syntax/diag"
)

// Spaces are the memory spaces a placement can name.
var Spaces = []Space{HBM, Host, SMem, Reg, Remote}

// placeText is a parsed #dm.at<…>.
type placeText struct {
	space Space
	order []int
	dims  []dim.Dim // nil where not written; an unnamed one for "?"
	shard *Sharding // nil where not written
}

// placement is p in canonical form: the identity order is the default.
func (p placeText) placement() Placement {
	q := Placement{Space: p.space, Order: p.order, Shard: p.shard}
	for i, n := range p.order {
		if n != i {
			return q
		}
	}
	q.Order = nil
	return q
}

func badPlacement(format string, args ...any) *Error {
	return &Error{Code: "DM150", Msg: fmt.Sprintf(format, args...), Help: "write #dm.at<hbm, order = [1, 0], dims = [n], split = @mesh[{data}, {}], partial = {model}>; every part may be left out"}
}

// parsePlacement parses the text in #dm.at<…>.
func parsePlacement(body string) (placeText, error) {
	p := placeText{space: HBM}
	seen := map[string]bool{}
	for i, part := range splitTop(body) {
		part = strings.TrimSpace(part)
		key, list, isList := strings.Cut(part, "=")
		key = strings.TrimSpace(key)
		switch {
		case part == "" && strings.TrimSpace(body) == "":
			return p, nil
		case !isList && i == 0:
			p.space = Space(key)
			if !slices.Contains(Spaces, p.space) {
				return p, unknownSpace(key)
			}
			continue
		case !isList || !slices.Contains([]string{"order", "dims", "split", "partial"}, key):
			return p, badPlacement("unexpected %q in a placement", part)
		case seen[key]:
			return p, badPlacement("%s is written twice", key)
		}
		seen[key] = true
		if key == "split" || key == "partial" {
			if err := p.sharding(key, list); err != nil {
				return p, err
			}
			continue
		}
		inner, ok := strings.CutPrefix(strings.TrimSpace(list), "[")
		inner, closed := strings.CutSuffix(inner, "]")
		if !ok || !closed {
			return p, badPlacement("%s needs a list in brackets, not %q", key, strings.TrimSpace(list))
		}
		var err error
		if key == "order" {
			p.order, err = parseOrder(inner)
		} else {
			p.dims, err = parseDims(inner)
		}
		if err != nil {
			return p, err
		}
	}
	if p.shard != nil {
		return p, p.shard.CheckAxes()
	}
	return p, nil
}

// sharding reads the parts split and partial.
func (p *placeText) sharding(key, text string) (err error) {
	switch {
	case key == "split":
		p.shard, err = parseSplit(strings.TrimSpace(text))
		return err
	case p.shard == nil:
		return badPlacement("partial stands before split, which names the mesh")
	}
	return p.shard.parsePartial(strings.TrimSpace(text))
}

func unknownSpace(name string) error {
	names := make([]string, len(Spaces))
	for i, s := range Spaces {
		names[i] = string(s)
	}
	help := "the memory spaces are " + strings.Join(names, ", ")
	if s := diag.Suggest(name, names); s != "" {
		help = "did you mean " + s + "? " + help
	}
	return &Error{Code: "DM150", Msg: fmt.Sprintf("%q is not a memory space", name), Help: help, Part: name}
}

func parseOrder(list string) ([]int, error) {
	order := []int{}
	if strings.TrimSpace(list) == "" {
		return order, nil
	}
	parts := strings.Split(list, ",")
	seen := make([]bool, len(parts))
	for _, s := range parts {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || n < 0 || n >= len(parts) || seen[n] {
			return nil, badPlacement("order = [%s] is not a permutation of 0 … %d", strings.TrimSpace(list), len(parts)-1)
		}
		seen[n] = true
		order = append(order, n)
	}
	return order, nil
}

func parseDims(list string) ([]dim.Dim, error) {
	dims := []dim.Dim{}
	if strings.TrimSpace(list) == "" {
		return dims, nil
	}
	for i, s := range splitTop(list) {
		s = strings.TrimSpace(s)
		if s == "?" {
			dims = append(dims, dim.Unnamed(strconv.Itoa(i)))
			continue
		}
		d, err := dim.Parse(s)
		if err != nil {
			return nil, badPlacement("%s", err)
		}
		if n, ok := d.Int(); ok {
			return nil, badPlacement("dims names the sizes written as \"?\"; write the number %d in the shape itself", n)
		}
		dims = append(dims, d)
	}
	return dims, nil
}

// splitTop splits at commas outside brackets; an arrow is none.
func splitTop(s string) []string {
	var parts []string
	depth, start := 0, 0
	for i := range len(s) {
		switch s[i] {
		case '[', '(', '<', '{':
			depth++
		case ']', ')', '>', '}':
			if s[i] != '>' || i == 0 || s[i-1] != '-' { // no arrow
				depth--
			}
		case ',':
			if depth == 0 {
				parts = append(parts, s[start:i])
				start = i + 1
			}
		}
	}
	return append(parts, s[start:])
}
