package network

import (
	"math"

	"dmir/analysis/machine"
)

// A layout is how the groups of a collective lie on the links.
type layout struct {
	p       int     // devices of a group
	uniform bool    // each group has the same number of parts at each link
	stages  []stage // the links that groups cross, from the inside out
}

// A stage is a link that groups cross. Where groups differ it holds the worst of them.
type stage struct {
	link     *machine.Link
	parts    int // that the link joins of a group, of those that the links inside it join
	inside   int // the group's devices in each part: its shares of the link
	partners int // other devices of the group that a device reaches by this link, not by one inside
}

// layOut visits each device once for each link. Bit i of set stands for axis i.
func layOut(axes []Axis, set uint64, links []machine.Link) *layout {
	members, bases := []int{0}, []int{0} // numbers relative to the group's first device; the first devices
	stride := 1
	for i := len(axes) - 1; i >= 0; i-- {
		if list := &bases; axes[i].Size > 1 {
			if set&(1<<i) != 0 {
				list = &members
			}
			*list = repeat(*list, axes[i].Size, stride)
		}
		stride *= axes[i].Size
	}
	l := &layout{p: len(members), uniform: true}
	if l.p == 1 {
		return l
	}
	levels := make([]level, len(links))
	for i, link := range links {
		levels[i] = level{size: link.Devices, fewest: math.MaxInt, leastParts: math.MaxInt}
		if link.Devices == 0 {
			levels[i].size = math.MaxInt
		}
	}
	for _, base := range bases {
		for i, member := range members {
			place(levels, base+member, i == 0)
		}
		for i := range levels {
			levels[i].close()
		}
	}
	inside := 1
	for i, v := range levels {
		if v.mostParts > 1 {
			l.stages = append(l.stages, stage{link: &links[i], parts: v.mostParts, inside: inside, partners: v.fewest - inside})
		}
		l.uniform = l.uniform && v.mostParts == v.leastParts
		inside = v.fewest
	}
	return l
}

// repeat is n copies of a list of ascending numbers below stride, each copy moved by stride.
func repeat(list []int, n, stride int) []int {
	out := make([]int, 0, len(list)*n)
	for i := range n {
		for _, x := range list {
			out = append(out, x+i*stride)
		}
	}
	return out
}

// A level counts the devices of groups in the units of one link.
type level struct {
	size                  int // of a unit, in devices
	unit, members, parts  int // the present unit, and the group's devices and parts in it
	fewest                int // members of any unit
	leastParts, mostParts int
}

// place adds the next device of a group.
func place(levels []level, device int, first bool) {
	part := true // the device is in another part than the one before
	for i := range levels {
		v := &levels[i]
		unit := device / v.size
		next := first || unit != v.unit
		if next && !first {
			v.close()
		}
		v.unit = unit
		v.members++
		if part {
			v.parts++
		}
		part = next
	}
}

// close ends a unit.
func (v *level) close() {
	v.fewest = min(v.fewest, v.members)
	v.leastParts = min(v.leastParts, v.parts)
	v.mostParts = max(v.mostParts, v.parts)
	v.members, v.parts = 0, 0
}
