package nvrtc

import (
	"regexp"
	"strconv"
	"strings"
)

// What the assembler prints under --ptxas-options=-v, for each kernel:
//
//	ptxas info    : Compiling entry function 'k' for 'sm_90a'
//	ptxas info    : Function properties for k
//	ptxas         .     8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
//	ptxas info    : Used 32 registers, used 1 barriers, 8 bytes cumulative stack size, 4096 bytes smem, 380 bytes cmem[0]
var (
	properties = regexp.MustCompile(`Function properties for (\S+)`)
	entryName  = regexp.MustCompile(`Compiling entry function '([^']+)'`)
	spills     = regexp.MustCompile(`(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads`)
	used       = regexp.MustCompile(`Used (\d+) registers`)
	smem       = regexp.MustCompile(`(\d+) bytes smem`)
	cmem       = regexp.MustCompile(`(\d+) bytes cmem\[\d+\]`)
)

// parseUsage reads the assembler's report.
func parseUsage(log string) map[string]*Usage {
	out := map[string]*Usage{}
	var of, frame *Usage
	for line := range strings.Lines(log) {
		if m := entryName.FindStringSubmatch(line); m != nil {
			of = &Usage{Name: m[1]}
			out[m[1]] = of
			frame = of
			continue
		}
		if m := properties.FindStringSubmatch(line); m != nil {
			frame = out[m[1]] // nil for a function that kernels call
			continue
		}
		if m := spills.FindStringSubmatch(line); m != nil && frame != nil {
			frame.Stack, frame.SpillStores, frame.SpillLoads = number(m[1]), number(m[2]), number(m[3])
			continue
		}
		if m := used.FindStringSubmatch(line); m != nil && of != nil {
			of.Registers = number(m[1])
			if m := smem.FindStringSubmatch(line); m != nil {
				of.Shared = number(m[1])
			}
			for _, m := range cmem.FindAllStringSubmatch(line, -1) {
				of.Constant += number(m[1])
			}
		}
	}
	return out
}

func number(s string) int {
	n, _ := strconv.Atoi(s) // the pattern matches only digits
	return n
}
