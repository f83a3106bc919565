package machine

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// A Link joins neighbouring devices of a cluster. The links of a machine are ordered
// from the inside out: the first joins devices, each of the others joins what the one
// before it has joined. Devices are numbered, and neighbours have consecutive numbers.
type Link struct {
	Name    string // its key in the file: "nvlink"
	Title   string // as people read it: "NVLink 4"
	Source  string // what the figures were read from
	Devices int    // how many it joins, all levels inside counted; 0: any number

	// Bandwidth is the share of one device, each way, while all devices send at once,
	// B/s. It means the same where each device has a port of its own and where some of
	// them share one: 8 devices with a network card each of 50 GB/s and 8 devices that
	// share 400 GB/s both have 50 GB/s.
	Bandwidth float64
	Latency   float64 // of one step of a collective, from one device to another, s

	// What NCCL makes of the link; network.protocols has what its protocols take besides.
	Kind    string  // NVLink, PCIe or Adapter; "" where another library runs collectives
	Reach   float64 // what collectives reach of the bandwidth, B/s; 0: all of it
	Reduces float64 // bytes that devices have reduced by the switch between them in a second; 0: it reduces nothing
}

// The kinds of links that NCCL tells apart.
const (
	NVLink  = "nvlink"
	PCIe    = "pcie"
	Adapter = "network" // of each device or shared by several
)

// Reached is the bandwidth of a device that collectives reach, B/s.
func (l *Link) Reached() float64 {
	if l.Reach > 0 {
		return l.Reach
	}
	return l.Bandwidth
}

// LinkSpec is a link as TOML writes it.
type LinkSpec struct {
	Title     string          `toml:"title" doc:"The name as people read it"`
	Source    string          `toml:"source" doc:"Where the figures come from, such as the address of a data sheet"`
	Devices   *int            `toml:"devices" doc:"Number of devices that the link joins, a multiple of those that the next smaller link joins; absent, any number"`
	Bandwidth *BytesPerSecond `toml:"bandwidth" doc:"Bandwidth of one device while all send at once, each way"`
	Latency   *Seconds        `toml:"latency" doc:"Time that one step of a collective takes besides its bytes; of links that name their kind in the protocol LL128 of NCCL"`
	Kind      string          `toml:"kind" doc:"What NCCL sees in the link, whose protocols it then uses: nvlink, pcie or network"`
	Reach     *BytesPerSecond `toml:"reach" doc:"Bandwidth of one device, each way, that collectives reach; absent, all of it"`
	Reduces   *BytesPerSecond `toml:"reduces" doc:"Bytes of each device that the switch between them reduces in a second, where it does (NVLink SHARP)"`
}

// The links of a machine whose file names none: its devices are in one host, and of
// its peer or host link only the bandwidth is known. The latency is that of PCIe, the
// number of devices that of most servers.
const (
	hostDevices = 8
	hostLatency = 2.5e-6
)

// Joined is the links between devices of m: those of its file, else its link to peers,
// else to the host, for the devices of one host. It is nil where there is none of these.
func (m *Machine) Joined() []Link {
	switch {
	case len(m.Links) > 0:
		return m.Links
	case m.PeerLink > 0:
		return []Link{{Name: "peer_link", Title: "peer link", Source: m.Source, Devices: hostDevices, Bandwidth: m.PeerLink, Latency: hostLatency}}
	case m.HostLink > 0:
		return []Link{{Name: "host_link", Title: "host link", Source: m.Source, Devices: hostDevices, Bandwidth: m.HostLink, Latency: hostLatency}}
	}
	return nil
}

// linksOf lays the links of s over those that m, a machine called name, has.
func (s *Spec) linksOf(m *Machine, name string) error {
	if len(s.Links) == 0 {
		return nil
	}
	all := slices.Clone(m.Links)
	for _, key := range slices.Sorted(maps.Keys(s.Links)) {
		i := slices.IndexFunc(all, func(l Link) bool { return l.Name == key })
		if i < 0 {
			i = len(all)
			all = append(all, Link{Name: key, Title: key})
		}
		l, spec := &all[i], s.Links[key]
		set(&l.Title, spec.Title)
		set(&l.Source, spec.Source)
		set(&l.Kind, spec.Kind)
		if spec.Bandwidth != nil && l.Bandwidth > 0 { // the same parts of another bandwidth are reached
			part := float64(*spec.Bandwidth) / l.Bandwidth
			l.Reach, l.Reduces = l.Reach*part, l.Reduces*part
		}
		copyTo(&l.Reach, spec.Reach)
		copyTo(&l.Reduces, spec.Reduces)
		copyTo(&l.Bandwidth, spec.Bandwidth)
		copyTo(&l.Latency, spec.Latency)
		if spec.Devices != nil {
			if l.Devices = *spec.Devices; l.Devices < 2 {
				return wrong(name, "links."+key+".devices", "links.%s.devices is %d; a link joins 2 or more, and any number where devices is absent", key, l.Devices)
			}
		}
		switch {
		case !(l.Bandwidth > 0) || math.IsInf(l.Bandwidth, 0):
			return wrong(name, "links."+key+".bandwidth", `links.%s.bandwidth is missing or no positive number; write for example bandwidth = "450 GB/s"`, key)
		case l.Kind != "" && l.Kind != NVLink && l.Kind != PCIe && l.Kind != Adapter:
			return wrong(name, "links."+key+".kind", "links.%s.kind is %q; it is %s, %s or %s", key, l.Kind, NVLink, PCIe, Adapter)
		case l.Reach > l.Bandwidth:
			return wrong(name, "links."+key+".reach", "links.%s.reach is above its bandwidth", key)
		case !(l.Latency > 0) || math.IsInf(l.Latency, 0):
			return wrong(name, "links."+key+".latency", `links.%s.latency is missing or no positive number; write for example latency = "2 µs"`, key)
		}
	}
	slices.SortStableFunc(all, func(a, b Link) int { return cmp.Compare(uint(a.Devices-1), uint(b.Devices-1)) }) // 0, any number, is last
	for i := range len(all) - 1 {
		in, out := all[i], all[i+1]
		switch {
		case in.Devices == 0:
			return wrong(name, "links."+in.Name, "links.%s and links.%s both join any number of devices; write devices in the inner one", in.Name, out.Name)
		case in.Devices == out.Devices:
			return wrong(name, "links."+out.Name+".devices", "links.%s and links.%s both join %d devices; the outer one joins more", in.Name, out.Name, in.Devices)
		case out.Devices%in.Devices != 0:
			return wrong(name, "links."+out.Name+".devices", "links.%s.devices is %d, which is no multiple of the %d that links.%s joins", out.Name, out.Devices, in.Devices, in.Name)
		}
	}
	m.Links = all
	return nil
}

// links writes the links of a machine file.
func (w *writer) links(links []Link) {
	for _, l := range links {
		w.line("\n[links." + key(l.Name) + "]")
		w.text("title", l.Title)
		w.text("source", l.Source)
		w.number("devices", int64(l.Devices))
		w.bandwidth("bandwidth", l.Bandwidth)
		w.seconds("latency", l.Latency)
		w.text("kind", l.Kind)
		w.bandwidth("reach", l.Reach)
		w.bandwidth("reduces", l.Reduces)
	}
}
