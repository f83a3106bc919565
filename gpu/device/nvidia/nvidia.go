// Package nvidia provides the devices that run CUDA programs: NVIDIA GPUs and the
// emulator. GPUs run programs in processes of their own where a
// kernel may fault or hang.
package nvidia

import (
	"context"
	"errors"
	"fmt"

	"dmir/gpu/artifact"
	"dmir/gpu/cuda"
	"dmir/gpu/device"
	"dmir/gpu/emulator"
)

// Kinds are the kinds of devices of this package: "cuda" and "emulator".
func Kinds() []device.Kind {
	return []device.Kind{
		{Name: "cuda", Numbered: true, Find: func() ([]device.Device, error) {
			gpus, err := cuda.Devices()
			if err == nil && len(gpus) == 0 {
				err = errors.New("the NVIDIA driver finds no GPU")
			}
			var found []device.Device
			for _, d := range gpus {
				found = append(found, &gpu{d})
			}
			return found, err
		}},
		{Name: "emulator", Checks: true, Find: func() ([]device.Device, error) {
			if err := emulator.Check(); err != nil {
				return nil, err
			}
			return []device.Device{emulated{}}, nil
		}},
	}
}

// check reports why no device of this package runs p.
func check(p *artifact.Program) error {
	if p.Target != "cuda" {
		return fmt.Errorf("@%s was compiled for the target %q, and this device runs programs for cuda", p.Name, p.Target)
	}
	return p.Check()
}

// within is ctx with the timeout of opts.
func within(ctx context.Context, opts device.Options) (context.Context, context.CancelFunc) {
	if opts.Timeout > 0 {
		return context.WithTimeout(ctx, opts.Timeout)
	}
	return context.WithCancel(ctx)
}
