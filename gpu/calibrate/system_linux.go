package calibrate

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func system() processor {
	var p processor
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		p.memory = int64(info.Totalram) * int64(info.Unit) &^ (mib - 1)
	}
	dirs, _ := filepath.Glob("/sys/devices/system/cpu/cpu0/cache/index*") // the pattern is valid
	var list []found
	for _, dir := range dirs {
		text := func(name string) string {
			b, _ := os.ReadFile(filepath.Join(dir, name)) // "" is none
			return strings.TrimSpace(string(b))
		}
		level, _ := strconv.Atoi(text("level"))
		if level > 0 && text("type") != "Instruction" {
			list = append(list, found{level, size(text("size")), shared(text("shared_cpu_list")), runtime.NumCPU()})
		}
	}
	p.caches = cachesOf(list)
	return p
}

// size reads "2048K".
func size(text string) int64 {
	number, unit := strings.TrimRight(text, "KMG"), int64(1)
	switch text[len(number):] {
	case "K":
		unit = kib
	case "M":
		unit = mib
	case "G":
		unit = 1 << 30
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > 1<<33 {
		return 0
	}
	return n * unit
}

// shared counts the processors of "0-3,8-11".
func shared(list string) int {
	n := 0
	for _, part := range strings.Split(list, ",") {
		from, to, several := strings.Cut(part, "-")
		a, err := strconv.Atoi(from)
		if err != nil {
			continue
		}
		b := a
		if several {
			b, _ = strconv.Atoi(to)
		}
		n += max(1, b-a+1)
	}
	return n
}
