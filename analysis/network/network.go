// Package network predicts how long collectives take on a cluster.
// It knows machines, and neither ops nor programs.
//
// # Meshes on clusters
//
// A mesh is a list of named axes. Its devices are numbered in row-major order, so that
// neighbours along the last axis have consecutive numbers, and lie on the cluster in that
// order: the first link joins as many consecutive numbers as it has devices, the second
// one joins so many of these, and so on (machine.Link). A collective on some of the axes
// runs in groups: devices that agree on all other axes are in one group. All groups run
// at the same time.
//
// # Shared links
//
// The bandwidth of a link is the share of one device while all devices send at once. A
// group with k devices inside a node, say, has k shares to leave it, whether these are k
// network cards of the devices or a part of one card that all share, and whatever the
// other groups of the node do: they have the other shares. A transfer between two devices
// has the share of one.
//
// # Formulas
//
// p devices are in a group, B is the number of bytes that Kind defines, α and β are a
// link's latency and a device's bandwidth. A link joins q parts of the group, which the
// links inside have joined before, with at least k devices in each (1 for the first link).
//
//   - Ring (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
//     workstations", 2009): each step moves B/p bytes over every hop, and takes as long as
//     the slowest of the links that the group crosses, max(α + B/(p·k·β)). A ring enters
//     and leaves a part once, and several rings that do so at different devices use all k
//     shares. All-gather and reduce-scatter take p−1 steps, all-reduce
//     2(p−1).
//
//   - Tree (the double binary trees of NCCL 2.4): half of the bytes go up and down each of
//     two trees, in which a device is an inner node once at most, in a pipeline of small
//     pieces. The trees of an outer link join those of the inner ones, so that broadcast
//     takes Σ ⌈log₂ q⌉·α + max(B/(k·β)), and all-reduce twice that. NCCL joins the devices of
//     a node in a chain, of q−1 steps.
//
//   - Hierarchical (Rabenseifner's reduce-scatter with all-gather, as in Thakur,
//     Rabenseifner and Gropp, "Optimization of Collective Communication Operations in
//     MPICH", 2005, on one link after the other): reduce-scatter inside, all-reduce across
//     the outermost link, and all-gather back, each on rings of q parts that have 1/k of
//     the bytes: Σ 2·(q−1)·(α + B/(q·k·β)). Reduce-scatter and all-gather are one half of
//     it. It needs groups that all lie on the links in the same way. A tree across the
//     outermost link would never be faster than the tree across all.
//
//   - Pairwise exchange (Thakur, Rabenseifner and Gropp): all-to-all takes p−1 steps of
//     B/p bytes, α + B/(p·β) of the outermost link between two partners.
//
//   - Direct: permutations and single transfers take α + B/β of the slowest link that the
//     axes cross. For a permutation this is an upper bound: it may cross the link with
//     some of its pairs only.
//
//   - Switch (NVLink SHARP and its tree across nodes): the switch reduces an all-reduce at a
//     rate of its own, and 2·(q−1)/q of the bytes cross the links outside, in a pipeline.
//
// β is what collectives reach (machine.Link.Reached). Where links name their kind, each form
// but the last is one of NCCL's protocols, which differ in latency and in the part of β that
// they have; the variable protocols has them.
//
// The fastest one that there is for a collective counts. All of them send the same bytes
// (Kind.Sent).
package network

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"dmir/analysis/machine"
)

// An Axis is one axis of a mesh.
type Axis struct {
	Name string
	Size int
}

// A Mesh is a mesh of devices as it lies on a cluster. It is safe for concurrent use.
type Mesh struct {
	Axes    []Axis
	Devices int // in all
	links   []machine.Link

	mu      sync.Mutex
	layouts map[uint64]*layout // by the axes of a group, a bit for each
}

// Bounds of a mesh: layouts visit each device, and axes are bits of a set.
const (
	maxDevices = 1 << 20
	maxAxes    = 64
)

// NewMesh lays a mesh on the devices of m. An error is about the mesh, or about a machine
// that does not have so many devices.
func NewMesh(m *machine.Machine, axes []Axis) (*Mesh, error) {
	if len(axes) > maxAxes {
		return nil, fmt.Errorf("the mesh has %d axes; at most %d are possible", len(axes), maxAxes)
	}
	devices := 1
	for i, a := range axes {
		switch {
		case a.Name == "":
			return nil, fmt.Errorf("axis %d of the mesh has no name", i)
		case slices.ContainsFunc(axes[:i], func(b Axis) bool { return a.Name == b.Name }):
			return nil, fmt.Errorf("the mesh has two axes %q; give each a name of its own", a.Name)
		case a.Size < 1:
			return nil, fmt.Errorf("axis %q of the mesh has size %d; a size is 1 or more", a.Name, a.Size)
		case a.Size > maxDevices/devices:
			return nil, fmt.Errorf("the mesh has more than %d devices, the most that times are predicted for; make it smaller", maxDevices)
		}
		devices *= a.Size
	}
	links := m.Joined()
	if devices > 1 {
		if len(links) == 0 {
			return nil, fmt.Errorf("machine %s has no links to other devices; describe them under [machines.%s.links], or choose a cluster such as dgx-h100", m.Name, m.Name)
		}
		if n := links[len(links)-1].Devices; n > 0 && devices > n {
			return nil, fmt.Errorf("the mesh has %d devices and %s has %d; make the mesh smaller, or choose a cluster with more devices, such as dgx-h100", devices, m.Name, n)
		}
	}
	return &Mesh{Axes: slices.Clone(axes), Devices: devices, links: links, layouts: map[uint64]*layout{}}, nil
}

// Crosses is the links that groups on the given axes send over, from the inside out.
func (m *Mesh) Crosses(axes ...string) ([]machine.Link, error) {
	l, err := m.layout(axes)
	if err != nil {
		return nil, err
	}
	links := make([]machine.Link, len(l.stages))
	for i, s := range l.stages {
		links[i] = *s.link
	}
	return links, nil
}

// layout is how groups on the given axes lie on the links.
func (m *Mesh) layout(axes []string) (*layout, error) {
	var set uint64
	for _, name := range axes {
		i := slices.IndexFunc(m.Axes, func(a Axis) bool { return a.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("the mesh has no axis %q; it has %s", name, m.names())
		}
		if set&(1<<i) != 0 {
			return nil, fmt.Errorf("axis %q is named twice", name)
		}
		set |= 1 << i
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.layouts[set]
	if l == nil {
		l = layOut(m.Axes, set, m.links)
		m.layouts[set] = l
	}
	return l, nil
}

func (m *Mesh) names() string {
	var names []string
	for _, a := range m.Axes {
		names = append(names, a.Name)
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
