package feature

import (
	"sync"
	"time"

	"dmir/compile/driver"
	"dmir/compile/target"
	"dmir/gpu/device"
)

// Devices are what people call the devices that functions would run and be
// profiled on; "" where that is not known.
type Devices struct {
	Run     string
	Profile string
}

// devicesKept is how long what was found is believed: looking for devices opens
// the driver and searches the disk for compilers.
const devicesKept = 10 * time.Second

var found struct {
	sync.Mutex
	by map[string]Devices // by setting
	at time.Time
}

// DevicesFor are the devices under a setting ("auto", "reference", "emulator",
// "cuda"). What was found is kept for a few seconds; else this takes a while.
func DevicesFor(setting string) Devices {
	found.Lock()
	defer found.Unlock()
	if now := time.Now(); now.Sub(found.at) > devicesKept {
		found.by, found.at = map[string]Devices{}, now
	}
	d, known := found.by[setting]
	if !known {
		d = look(setting)
		found.by[setting] = d
	}
	return d
}

func look(setting string) Devices {
	chosen, _, err := driver.Choose(setting)
	if err != nil {
		return Devices{}
	}
	d := Devices{Run: titleOf(chosen), Profile: titleOf(chosen)}
	if setting == "" || setting == "auto" {
		// What measures or counts is the better profiler, also where it is no
		// place to run.
		if all := device.Devices(); len(all) > 0 {
			d.Profile = titleOf(all[0])
		}
	}
	return d
}

// titleOf is short for the processor, of which there is one.
func titleOf(d device.Device) string {
	if d == nil {
		return driver.NameOf(d)
	}
	if _, host := target.For(d.Arch()).(target.Hosted); host {
		return d.Name()
	}
	return d.Title()
}
