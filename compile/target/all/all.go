// Package all registers the back ends of this build. A new one is a line here.
package all

import (
	"dmir/compile/cuda"
	"dmir/compile/llvm"
	"dmir/compile/target"
	_ "dmir/gpu/calibrate/host" // measures with what llvm's programs are compiled by
)

func init() {
	target.Register(cuda.Backend{})
	target.Register(llvm.Backend{})
}
