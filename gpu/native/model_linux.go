package native

import (
	"os"
	"regexp"
	"sync"
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
