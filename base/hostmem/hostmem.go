// Package hostmem is how much memory of this machine a process may use.
package hostmem

import "sync"

// unknown is assumed where the system does not say.
const unknown = 16 << 30

// Limit is the number of bytes that this process may use: the memory of the machine, or less where
// its control group or a resource limit (ulimit -v) allows less.
var Limit = sync.OnceValue(func() int64 {
	limit := int64(unknown)
	if total := total(); total > 0 {
		limit = total
	}
	for _, allowed := range allowed() {
		limit = min(limit, max(allowed, 0))
	}
	return limit
})
