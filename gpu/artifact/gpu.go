package artifact

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
)

// This file defines what is specific to launches on GPUs: kernels in blocks of threads, grids
// of blocks, tensor maps. Targets for other devices leave it empty.

const (
	maxThreads = 1024
	maxShared  = 227 << 10 // bytes of a block
	maxCluster = 16
	maxRank    = 5 // of a tensor map
)

// architecture matches names of architectures: of GPUs, and of processors.
var architecture = regexp.MustCompile(`^(sm_[0-9]{2,3}[af]?|x86-64-v[0-9]|armv[0-9]-[a-z])?$`)

// Block is how the threads of a kernel run together.
type Block struct {
	Threads int
	Shared  int // bytes of dynamic shared memory
	Cluster int // blocks of a cluster; 0 or 1: none
	// Waits says that all threads wait, before they access memory, for the kernels before to have ended
	// (griddepcontrol.wait): a launch may start while those still run. See Program.Dependent.
	Waits bool `json:",omitempty"`
}

// Dependent reports whether step i, before which step before was the last on its stream (negative: none), may be launched
// as a programmatic dependent of it: both are kernels, and its own waits by itself. Since each such kernel waits before
// it ends, whatever follows one finds that all before have ended.
func (p *Program) Dependent(i, before int) bool {
	k := p.KernelOf(&p.Steps[i])
	return k != nil && k.Block.Waits && before >= 0 && p.Steps[before].Kind == StepLaunch
}

func (b *Block) check(bad func(string, ...any)) {
	if b.Threads < 1 || b.Threads > maxThreads {
		bad("blocks of %d threads; 1 to %d are possible", b.Threads, maxThreads)
	}
	if b.Shared < 0 || b.Shared > maxShared {
		bad("%d bytes of shared memory; %d is the most", b.Shared, maxShared)
	}
	if b.Cluster < 0 || b.Cluster > maxCluster {
		bad("clusters of %d blocks; %d is the most", b.Cluster, maxCluster)
	}
}

// Grid is how many blocks a launch has, in three dimensions.
type Grid [3]int

func (g Grid) check(bad func(string, ...any), b *Block) {
	if g[0] < 1 || g[0] > 1<<31-1 || g[1] < 1 || g[1] > 65535 || g[2] < 1 || g[2] > 65535 {
		bad("no grid: %v", g)
	} else if b.Cluster > 1 && g[0]%b.Cluster != 0 {
		bad("%d blocks are not whole clusters of %d", g[0], b.Cluster)
	}
}

// TensorMap describes a tiled tensor to an engine that copies boxes of it:
// innermost dimension first.
type TensorMap struct {
	Elem    string // "tf32": of f32, which the engine rounds to TF32 on the way
	Dims    []uint64
	Strides []uint64 // bytes, of all dimensions but the innermost
	Box     []uint32
	Swizzle int // bytes: 0, 32, 64 or 128
}

// Rounds reports whether the engine rounds what it copies to TF32.
func (m *TensorMap) Rounds() bool { return m.Elem == "tf32" }

// ElemBytes is the size in bytes of an element; ok is false for a type that there are no maps of.
func (m *TensorMap) ElemBytes() (n int64, ok bool) {
	if m.Rounds() {
		return elemBytes["f32"], true
	}
	return ElemBytes(m.Elem)
}

// check checks a tensor map against the limits of the copy engine and the size of
// the buffer.
func (m *TensorMap) check(b *Buffer) error {
	elem, ok := m.ElemBytes()
	rank := len(m.Dims)
	switch {
	case !ok:
		return fmt.Errorf("the element type %q", m.Elem)
	case rank < 1 || rank > maxRank || len(m.Strides) != rank-1 || len(m.Box) != rank:
		return fmt.Errorf("%d dimensions, %d strides, a box of %d", rank, len(m.Strides), len(m.Box))
	case !slices.Contains([]int{0, 32, 64, 128}, m.Swizzle):
		return fmt.Errorf("a swizzle of %d bytes", m.Swizzle)
	}
	last := uint64(elem) // the end of the last element
	for i, d := range m.Dims {
		if d < 1 || d > 1<<32 || m.Box[i] < 1 || m.Box[i] > 256 {
			return fmt.Errorf("dimension %d of %d elements in boxes of %d", i, d, m.Box[i])
		}
		stride := uint64(elem)
		if i > 0 {
			if stride = m.Strides[i-1]; stride%16 != 0 || stride >= 1<<40 {
				return fmt.Errorf("a stride of %d bytes", stride)
			}
		}
		if d-1 > (1<<62-last)/stride {
			return errors.New("its elements exceed any memory")
		}
		last += (d - 1) * stride
	}
	row := uint64(m.Box[0]) * uint64(elem)
	switch {
	case row%16 != 0:
		return fmt.Errorf("rows of %d bytes, which are not multiples of 16", row)
	case m.Swizzle > 0 && row > uint64(m.Swizzle):
		return fmt.Errorf("rows of %d bytes with a swizzle of %d", row, m.Swizzle)
	case last > uint64(b.Bytes):
		return fmt.Errorf("it covers %d bytes; the buffer %s has %d", last, b.Name, b.Bytes)
	}
	return nil
}
