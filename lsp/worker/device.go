package worker

import (
	"dmir/analysis/machine"
	"dmir/compile/driver"
	"dmir/compile/target"
	"dmir/gpu/device"
)

// profiledRuns is how often a function runs for the times of its kernels.
const profiledRuns = 20

// profiler is the device that a profile is made on: the one that was asked for,
// else the best that measures or counts. The emulator, which "auto" does not run
// on, counts bytes; without one the reference executor measures ops.
func profiler(asked string) string {
	if asked != "" && asked != "auto" {
		return asked
	}
	if found := device.Devices(); len(found) > 0 {
		return found[0].Name()
	}
	return "reference"
}

// roof is a predicted time without what each kernel takes to start.
func (t *task) roof(predicted float64) float64 {
	return max(predicted-t.program.Target.Start()*1e9, 0)
}

// foreign reports whether times measured on a device are those of another
// machine than the one that times are predicted for.
func (t *task) foreign(name string) bool {
	d, _, err := driver.Choose(name)
	if err != nil || d == nil || d.Arch() == "" {
		return false
	}
	if _, host := target.For(d.Arch()).(target.Hosted); host {
		return !machine.IsHost(t.program.Target.Name)
	}
	return t.program.Target.Arch != d.Arch()
}
