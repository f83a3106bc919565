package driver

import (
	"fmt"

	"dmir/analysis/units"
	"dmir/base/hostmem"
	"dmir/compile/interp"
	"dmir/compile/target"
	"dmir/compile/tensor"
	"dmir/gpu/artifact"
	"dmir/gpu/device"
)

// MemoryError reports that this process may not use as much memory as a run takes.
type MemoryError struct {
	Func       string
	Need, Have int64 // beside the arguments
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("@%s needs %s of memory beside its arguments, and this process may use %s", e.Func, units.Bytes(e.Need), units.Bytes(e.Have))
}

// Failure reports that memory is short.
func (*MemoryError) Failure() artifact.Failure { return artifact.Failure{Reason: artifact.OutOfMemory} }

// fits is a *MemoryError unless a run of p on d takes no more memory than this process may use: an allocation that
// fails would end it.
func fits(d device.Device, p *artifact.Program, args []*tensor.Tensor) error {
	bound, outputs, have := int64(0), int64(0), hostmem.Limit()
	for i, b := range p.Inputs {
		bound += p.Buffers[b].Size()
		have -= interp.StorageBytes(args[i].Elem, args[i].Len())
	}
	need := bound // what Pack makes
	for _, b := range p.Outputs {
		outputs += p.Buffers[b].Size()
	}
	need += 2 * outputs // with what Unpack makes
	space := need       // addresses, of which some memory is never touched
	if _, hosted := target.For(d.Arch()).(target.Hosted); hosted {
		for i := range p.Buffers {
			if p.Buffers[i].Kind == artifact.Constant {
				bound += p.Buffers[i].Size()
			}
		}
		need += max(p.Workspace-bound-outputs, 0) // where these are in the caller's memory
		space += p.Workspace
	}
	if need > have {
		return &MemoryError{p.Name, need, max(have, 0)}
	}
	if left, limited := hostmem.AddressSpace(); limited && space > left-reserve {
		return &MemoryError{p.Name, space, max(left-reserve, 0)}
	}
	return nil
}

// reserve is what is left of a limited address space for threads, the collector and libraries.
const reserve = 128 << 20
