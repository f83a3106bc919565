package native

import (
	"os"
	"regexp"
	"sync"

	"golang.org/x/sys/unix"
)

const supported = true

var modelName = regexp.MustCompile(`(?m)^model name\s*:\s*(.+)$`)

// model is what the processor calls itself.
var model = sync.OnceValue(func() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if m := modelName.FindSubmatch(text); err == nil && m != nil {
		return string(m[1])
	}
	return "CPU"
})

// hugePages puts data, which begins a page, into huge ones, where the system has them: of rows that are read by number, pages of the usual
// size take longer to find than to read. A program's own memory has them from the start.
func hugePages(data []byte) {
	const huge = 2 << 20
	if len(data) >= 2*huge {
		_ = unix.Madvise(data, unix.MADV_COLLAPSE) // else it is as slow as it was
	}
}
