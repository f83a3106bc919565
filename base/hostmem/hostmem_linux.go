package hostmem

import (
	"bytes"
	"math"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

func total() int64 {
	text, _ := os.ReadFile("/proc/meminfo")
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			return number(strings.TrimSuffix(strings.TrimSpace(rest), " kB")) << 10
		}
	}
	return 0
}

// AddressSpace is how many bytes of addresses a resource limit leaves this process now; ok is false where
// there is no limit.
func AddressSpace() (left int64, ok bool) {
	var r syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_AS, &r) != nil || r.Cur >= math.MaxInt64 {
		return 0, false
	}
	statm, _ := os.ReadFile("/proc/self/statm")
	used, _, _ := strings.Cut(string(statm), " ")
	return int64(r.Cur) - number(used)*int64(os.Getpagesize()), true
}

// allowed are the limits of this process.
func allowed() (out []int64) {
	if left, limited := AddressSpace(); limited {
		out = append(out, left)
	}
	groups, _ := os.ReadFile("/proc/self/cgroup")
	return append(out, ofGroups("/sys/fs/cgroup", groups)...)
}

// ofGroups are the limits of the control groups that /proc/self/cgroup lists, and of the groups
// that they are in; root is where the file system of groups is mounted.
func ofGroups(root string, groups []byte) (out []int64) {
	for line := range bytes.Lines(groups) {
		fields := strings.SplitN(strings.TrimSpace(string(line)), ":", 3)
		if len(fields) != 3 {
			continue
		}
		dir, file := "", "memory.max"
		switch {
		case fields[1] == "": // version 2
		case fields[1] == "memory":
			dir, file = "memory", "memory.limit_in_bytes"
		default:
			continue
		}
		for at := path.Clean("/" + fields[2]); ; at = path.Dir(at) {
			text, err := os.ReadFile(filepath.Join(root, dir, at, file))
			if limit := number(strings.TrimSpace(string(text))); err == nil && limit > 0 {
				out = append(out, limit)
			}
			if at == "/" {
				break
			}
		}
	}
	return out
}

// number is a decimal number, 0 for a text that is none, as "max".
func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
