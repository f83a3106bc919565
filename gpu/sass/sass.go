// Package sass parses machine code of NVIDIA GPUs as printed by nvdisasm, and counts
// the instructions of the hot part of a kernel.
package sass

import (
	"regexp"
	"strconv"
	"strings"
)

// Instr is one instruction.
type Instr struct {
	Addr   int    // bytes from the start of the kernel
	Guard  string // "@P0", "@!UP1" or ""
	Op     string // "LDG.E.128.CONSTANT"
	Args   string
	Target int // index of the instruction that it may jump to; -1: none
}

// Base is the name of the operation without its modifiers: "LDG".
func (i Instr) Base() string { return before(i.Op, ".") }

// Has reports whether the operation has a modifier, such as "128".
func (i Instr) Has(modifier string) bool {
	for _, m := range strings.Split(i.Op, ".")[1:] {
		if m == modifier {
			return true
		}
	}
	return false
}

// Kernel is the code of one kernel.
type Kernel struct {
	Name string
	Arch string // "sm_90a"
	Code []Instr
}

var (
	section     = regexp.MustCompile(`^\.text\.(\S+):$`)
	label       = regexp.MustCompile(`^(\.L_\S+):$`)
	arch        = regexp.MustCompile(`^\.target\s+(\w+)$`)
	instruction = regexp.MustCompile(`^/\*([0-9a-f]{4,})\*/\s+(?:\{\s*)?(@!?U?P\w+\s+)?([A-Z][\w.]*)\s*([^;]*);`)
	target      = regexp.MustCompile("`\\((\\.L_\\S+?)\\)")
)

// Parse reads what nvdisasm --print-code prints. Lines that are not machine code
// are skipped.
func Parse(text string) []Kernel {
	var out []Kernel
	labels := map[string]int{} // of the last kernel: files that are joined repeat each other's
	var jumps []string         // its instructions' targets
	of := ""                   // the last architecture that was named
	resolve := func() {
		for i, name := range jumps {
			if at, ok := labels[name]; ok && at < len(jumps) {
				out[len(out)-1].Code[i].Target = at
			}
		}
		labels, jumps = map[string]int{}, nil
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if m := arch.FindStringSubmatch(line); m != nil {
			of = m[1]
			continue
		}
		if m := section.FindStringSubmatch(line); m != nil {
			resolve()
			out = append(out, Kernel{Name: m[1], Arch: of})
			continue
		}
		if len(out) == 0 {
			continue
		}
		k := &out[len(out)-1]
		if m := label.FindStringSubmatch(line); m != nil {
			labels[m[1]] = len(k.Code)
			continue
		}
		m := instruction.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		addr, err := strconv.ParseInt(m[1], 16, 32)
		if err != nil {
			continue
		}
		to := ""
		if t := target.FindStringSubmatch(m[4]); t != nil {
			to = t[1]
		}
		jumps = append(jumps, to)
		k.Code = append(k.Code, Instr{Addr: int(addr), Guard: strings.TrimSpace(m[2]), Op: m[3], Args: strings.TrimSpace(m[4]), Target: -1})
	}
	resolve()
	return out
}

// live marks the instructions that are reached without a call: slow paths of
// divisions and similar operations for rare operands are called functions.
func (k *Kernel) live() []bool { return k.reached(-1) }

// reached marks the instructions that are reached without a call, and not through the one at `without`.
func (k *Kernel) reached(without int) []bool {
	seen := make([]bool, len(k.Code))
	if without >= 0 {
		seen[without] = true
	}
	todo := []int{0}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for ; at < len(k.Code) && !seen[at]; at++ {
			seen[at] = true
			i := k.Code[at]
			if i.Base() == "BRA" && i.Target >= 0 {
				todo = append(todo, i.Target)
			}
			if ends(i) {
				break
			}
		}
	}
	if without >= 0 {
		seen[without] = false
	}
	return seen
}

// ends reports whether nothing follows i.
func ends(i Instr) bool {
	if i.Guard != "" && i.Guard != "@PT" {
		return false
	}
	switch i.Base() {
	case "EXIT", "RET", "BRX", "JMX":
		return true
	case "BRA": // a predicate may be an operand: BRA P1, `(.L_x_3)
		return !strings.Contains(before(i.Args, "`"), "P")
	}
	return false
}

// Region is a loop of a kernel, or the kernel: instructions [From, To).
type Region struct {
	From, To int
	Depth    int // 0: the kernel
}

// Regions are the kernel and its loops. A loop is what lies between the target
// of a branch backwards and the last such branch, which is only reached through its target: what
// is tried again behind the kernel's end and then goes on there, as waits for a barrier do, is no loop.
func (k *Kernel) Regions() []Region {
	live := k.live()
	last := map[int]int{}
	entered := map[int][]bool{} // by a target, what is reached without it
	for at, i := range k.Code {
		if !live[at] || i.Base() != "BRA" || i.Target < 0 || i.Target >= at {
			continue
		}
		if entered[i.Target] == nil {
			entered[i.Target] = k.reached(i.Target)
		}
		if !entered[i.Target][at] {
			last[i.Target] = max(last[i.Target], at+1)
		}
	}
	out := []Region{{0, len(k.Code), 0}}
	for from := range k.Code {
		if to, ok := last[from]; ok {
			r := Region{From: from, To: to, Depth: 1}
			for _, o := range out[1:] {
				if o.From <= r.From && r.To <= o.To {
					r.Depth++
				}
			}
			out = append(out, r)
		}
	}
	return out
}

func before(s, sep string) string {
	s, _, _ = strings.Cut(s, sep)
	return s
}
