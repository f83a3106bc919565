//go:build !linux

package hostmem

func total() int64     { return 0 }
func allowed() []int64 { return nil }

// AddressSpace reports no limit.
func AddressSpace() (left int64, ok bool) { return 0, false }
