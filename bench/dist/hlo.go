package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// A collective of a program after XLA's partitioner: what its operands are on one device, and how
// many devices run it together.
type collective struct {
	kind  string // all-reduce, all-gather, reduce-scatter, all-to-all, collective-permute
	bytes int64  // of the operands
	group int    // devices that run it together
	pairs int    // of a collective-permute: between two devices
	own   int64  // of an all-reduce: bytes of operands of whose result a device uses its own part alone
	times int64  // how often it runs
}

// sent is the bytes that all devices together send for a collective whose operands have bytes on each,
// in a ring: the same for both sides of the table.
func (c collective) sent(devices int) int64 {
	p, all := int64(c.group), int64(devices)
	if p == 0 {
		return 0
	}
	switch c.kind {
	case "all-reduce":
		return c.times * all / p * 2 * c.bytes * (p - 1)
	case "reduce-scatter", "all-to-all":
		return c.times * all / p * c.bytes * (p - 1)
	case "all-gather":
		return c.times * all * c.bytes * (p - 1)
	case "collective-permute":
		return c.times * c.bytes * int64(c.pairs)
	}
	return 0
}

var (
	computation = regexp.MustCompile(`^(ENTRY )?%?([\w.\-]+) \(.*\) -> .* \{$`)
	instruction = regexp.MustCompile(`^(?:ROOT )?%?[\w.\-]+ = (\(.*?\)|\S+) ([a-z][a-z\-]*)\(`)
	tensorShape = regexp.MustCompile(`\b([a-z]+[0-9]*(?:e[0-9]m[0-9]\w*)?)\[([0-9,]*)\]`)
	trips       = regexp.MustCompile(`"known_trip_count":\{"n":"(\d+)"\}`)
	called      = regexp.MustCompile(`\b(body|to_apply|calls|branch_computations)=(\{[^}]*\}|%?[\w.\-]+)`)
	iotaGroups  = regexp.MustCompile(`replica_groups=\[(\d+),(\d+)\]<=`)
	meshGroups  = regexp.MustCompile(`replica_groups=mesh\[([^\]]*)\](?:, device_ids=\([^ ]*\))? \{([^}]*)\}`)
	listGroups  = regexp.MustCompile(`replica_groups=\{(\{[\d,]*\})?`)
	meshAxis    = regexp.MustCompile(`'([^']*)'(?:=(\d+))?(?::\((\d+)\)(\d+))?`)
	moves       = regexp.MustCompile(`source_target_pairs=\{((?:\{\d+,\d+\},?)*)\}`)
	move        = regexp.MustCompile(`\{(\d+),(\d+)\}`)
)

// collectives are those of an HLO module as text, with those in the bodies of loops as often as these
// run. An error names what the text has and this does not know.
func collectives(text string, devices int) ([]collective, error) {
	bodies := map[string][]string{}
	entry, in := "", ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if m := computation.FindStringSubmatch(line); m != nil {
			if in = m[2]; m[1] != "" {
				entry = in
			}
		} else if line == "}" {
			in = ""
		} else if in != "" {
			bodies[in] = append(bodies[in], line)
		}
	}
	if entry == "" {
		return nil, fmt.Errorf("the HLO module has no ENTRY")
	}
	var out []collective
	var visit func(name string, times int64, depth int) error
	visit = func(name string, times int64, depth int) error {
		if depth > 50 {
			return fmt.Errorf("computations of the HLO module call each other")
		}
		for _, line := range bodies[name] {
			m := instruction.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			c, ok, err := collectiveOf(line, m[1], m[2], devices)
			if err != nil {
				return err
			}
			if ok {
				c.times = times
				if c.kind == "all-reduce" {
					if c.own, err = ownBytes(line, m[1], bodies[name], c.group); err != nil {
						return err
					}
				}
				out = append(out, c)
				continue
			}
			each := times
			if m[2] == "while" {
				n := trips.FindStringSubmatch(line)
				if n == nil {
					return fmt.Errorf("a loop without a known number of iterations")
				}
				k, err := strconv.ParseInt(n[1], 10, 64)
				if err != nil {
					return err
				}
				each *= k
			}
			for _, f := range called.FindAllStringSubmatch(line, -1) {
				for _, name := range strings.Split(strings.Trim(f[2], "{}"), ",") {
					if err := visit(strings.TrimPrefix(strings.TrimSpace(name), "%"), each, depth+1); err != nil {
						return err
					}
				}
			}
		}
		return nil
	}
	return out, visit(entry, 1, 0)
}

// collectiveOf is the collective that an instruction is; the end of one that runs beside others is
// none.
func collectiveOf(line, shape, name string, devices int) (c collective, ok bool, err error) {
	kind, started := strings.CutSuffix(name, "-start")
	switch kind {
	case "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute":
	case "collective-broadcast", "ragged-all-to-all", "send", "recv":
		return c, false, fmt.Errorf("%s is not counted", kind)
	default:
		return c, false, nil
	}
	c = collective{kind: kind, group: devices}
	shapes := tensorShape.FindAllStringSubmatch(shape, -1)
	if started && len(shapes) > 1 && (kind == "all-gather" || kind == "collective-permute") {
		shapes = shapes[1:2] // operand, result, …
	}
	for _, s := range shapes {
		n, err := bytesOf(s[1], s[2])
		if err != nil {
			return c, false, err
		}
		c.bytes += n
	}
	if kind == "collective-permute" {
		m := moves.FindStringSubmatch(line)
		if m == nil {
			return c, false, fmt.Errorf("pairs that cannot be read in %s", line)
		}
		for _, p := range move.FindAllStringSubmatch(m[1], -1) {
			if p[1] != p[2] {
				c.pairs++
			}
		}
		return c, true, nil
	}
	if c.group, err = groupOf(line, devices); err != nil {
		return c, false, err
	}
	switch kind { // the shape is the result's
	case "all-gather":
		c.bytes /= int64(c.group)
	case "reduce-scatter":
		c.bytes *= int64(c.group)
	}
	return c, true, nil
}

// scattered is c as XLA has it on devices for which it reduces and scatters at once: for processors it reduces, and takes
// a part of the result.
func (c collective) scattered() []collective {
	if c.own == 0 {
		return []collective{c}
	}
	part := c
	part.kind, part.bytes, part.own = "reduce-scatter", c.own, 0
	c.bytes, c.own = c.bytes-c.own, 0
	if c.bytes == 0 {
		return []collective{part}
	}
	return []collective{c, part}
}

var (
	resultName = regexp.MustCompile(`^(?:ROOT )?(%?[\w.\-]+) = `)
	elementOf  = regexp.MustCompile(`get-tuple-element\((%?[\w.\-]+)\), index=(\d+)`)
)

// ownBytes is how many bytes of what an all-reduce of shape gives are only sliced, in parts for each of the devices of a group,
// by the instructions of its computation.
func ownBytes(line, shape string, body []string, group int) (own int64, err error) {
	name := resultName.FindStringSubmatch(line)[1]
	results := map[string]int{} // what has a result, and which
	if !strings.HasPrefix(shape, "(") {
		results[name] = 0
	}
	for _, l := range body {
		if m := elementOf.FindStringSubmatch(l); m != nil && m[1] == name {
			i, _ := strconv.Atoi(m[2])
			results[resultName.FindStringSubmatch(l)[1]] = i
		}
	}
	shapes := tensorShape.FindAllStringSubmatch(shape, -1)
	for result, i := range results {
		if i >= len(shapes) {
			continue
		}
		whole, err := bytesOf(shapes[i][1], shapes[i][2])
		if err != nil {
			return 0, err
		}
		if sliced(result, body, whole, int64(group)) {
			own += whole
		}
	}
	return own, nil
}

// sliced reports whether all that uses a value of whole bytes takes one part of p of it.
func sliced(name string, body []string, whole, p int64) bool {
	used := false
	word := regexp.MustCompile(`[(, ]` + regexp.QuoteMeta(name) + `[),]`)
	for _, l := range body {
		m := instruction.FindStringSubmatch(l)
		if m == nil || resultName.FindStringSubmatch(l)[1] == name || !word.MatchString(l) {
			continue
		}
		used = true
		s := tensorShape.FindStringSubmatch(m[1])
		if m[2] != "dynamic-slice" && !(m[2] == "fusion" && strings.Contains(l, "calls=%wrapped_dynamic-slice")) || s == nil {
			return false
		}
		if n, err := bytesOf(s[1], s[2]); err != nil || n*p != whole {
			return false
		}
	}
	return used
}

// groupOf is how many devices are in a group.
func groupOf(line string, devices int) (int, error) {
	if m := iotaGroups.FindStringSubmatch(line); m != nil {
		return strconv.Atoi(m[2])
	}
	if m := meshGroups.FindStringSubmatch(line); m != nil {
		sizes := map[string]int{}
		for _, a := range meshAxis.FindAllStringSubmatch(m[1], -1) {
			sizes[a[1]], _ = strconv.Atoi(a[2])
		}
		n := 1
		for _, a := range meshAxis.FindAllStringSubmatch(m[2], -1) {
			size := sizes[a[1]]
			if a[4] != "" {
				size, _ = strconv.Atoi(a[4])
			}
			n *= size
		}
		if n > 0 {
			return n, nil
		}
	} else if m := listGroups.FindStringSubmatch(line); m != nil {
		if m[1] == "" {
			return devices, nil
		}
		return strings.Count(m[1], ",") + 1, nil
	}
	return 0, fmt.Errorf("groups of devices that cannot be read in %s", line)
}

// bytesOf is the size of an array of HLO.
func bytesOf(elem, dims string) (int64, error) {
	bits := int64(0)
	switch elem {
	case "pred":
		bits = 8
	case "token":
		return 0, nil
	default:
		digits := strings.TrimLeft(elem, "abcdefghijklmnopqrstuvwxyz")
		if i := strings.IndexByte(digits, 'e'); i > 0 {
			digits = digits[:i]
		}
		var err error
		if bits, err = strconv.ParseInt(digits, 10, 64); err != nil {
			return 0, fmt.Errorf("the element type %s", elem)
		}
	}
	n := bits
	if dims != "" {
		for _, d := range strings.Split(dims, ",") {
			k, err := strconv.ParseInt(d, 10, 64)
			if err != nil {
				return 0, err
			}
			n *= k
		}
	}
	return (n + 7) / 8, nil
}
