package native

import (
	"sync"

	"golang.org/x/sys/unix"
)

const supported = true

// model is what the processor calls itself.
var model = sync.OnceValue(func() string {
	name, err := unix.Sysctl("machdep.cpu.brand_string")
	if err != nil || name == "" {
		return "CPU"
	}
	return name
})

// hugePages does nothing: the system chooses the pages.
func hugePages([]byte) {}
