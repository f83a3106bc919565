package driver

import (
	"errors"
	"testing"

	"dmir/base/hostmem"
	"dmir/compile/tensor"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
	"dmir/gpu/device"
)

// someDevice is a device of which only the architecture is known.
type someDevice struct {
	device.Device
	arch string
}

func (d someDevice) Arch() string { return d.arch }

// What a program takes beside its arguments is known before anything is allocated: on the processor with its
// workspace, but for buffers that are where the caller has them.
func TestFits(t *testing.T) {
	limit := hostmem.Limit()
	program := func(result, workspace int64) *artifact.Program {
		return &artifact.Program{
			Name: "main", Workspace: workspace, Inputs: []int{0}, Outputs: []int{1},
			Buffers: []artifact.Buffer{
				{Kind: artifact.Input, Elem: "f32", Shape: []int64{4}},
				{Kind: artifact.Output, Elem: "i8", Shape: []int64{result}},
			},
		}
	}
	args := []*tensor.Tensor{tensor.New(types.F32, 4)}
	for _, c := range []struct {
		name              string
		arch              string
		result, workspace int64
		short             bool
	}{
		{"small", "x86-64-v3", 64, 128, false},
		{"two copies of a result", "sm_90a", limit/2 + 1, 0, true},
		{"a workspace", "x86-64-v3", 64, limit + 1<<10, true},
		{"a workspace elsewhere", "sm_90a", 64, limit + 1<<10, false},
	} {
		err := fits(someDevice{arch: c.arch}, program(c.result, c.workspace), args)
		var short *MemoryError
		if errors.As(err, &short) != c.short {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.short {
			if f, ok := artifact.FailureOf(err); !ok || f.Reason != artifact.OutOfMemory {
				t.Errorf("%s: %v", c.name, f)
			}
			if d, ok := Diagnostic(err, nil); !ok || d.Code != "DM705" {
				t.Errorf("%s: %v", c.name, d)
			}
		}
	}
}
