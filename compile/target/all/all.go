// Package all registers the back ends of this build. A new one is a line here.
package all

import (
	"dmir/compile/cuda"
	"dmir/compile/target"
)

func init() {
	target.Register(cuda.Backend{})
}
