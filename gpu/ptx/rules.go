package ptx

import (
	"cmp"
	"fmt"
	"slices"
)

// Rule is the name of a rule.
type Rule string

// The rules.
const (
	ProxyFence   Rule = "proxy-fence"
	BarrierInit  Rule = "mbarrier-init"
	Phase        Rule = "mbarrier-phase"
	Arrivals     Rule = "mbarrier-arrivals"
	Transactions Rule = "mbarrier-bytes"
	Landed       Rule = "bulk-wait"
	BulkGroup    Rule = "bulk-group"
	CopyGroup    Rule = "cp-async-wait"
	Reused       Rule = "reuse"
	SharedRace   Rule = "shared-race"
	Bounds       Rule = "shared-bounds"
	Unwritten    Rule = "unwritten"
	ProductFence Rule = "wgmma-fence"
	InFlight     Rule = "wgmma-in-flight"
	Descriptor   Rule = "wgmma-descriptor"
	Registers    Rule = "register-budget"
	NamedBarrier Rule = "named-barrier"
	Aligned      Rule = "aligned"
	Prefetch     Rule = "tensormap-prefetch"
	Dependency   Rule = "griddepcontrol"
	Flag         Rule = "flag"

	ClusterBarrier Rule = "cluster-barrier"
	ClusterLife    Rule = "cluster-life"
	ClusterSize    Rule = "cluster-size"
	ClusterScope   Rule = "cluster-scope"
	Multicast      Rule = "multicast"
)

// Rules says what each rule demands.
var Rules = map[Rule]string{
	ProxyFence:   "a write to shared memory by ordinary instructions or cp.async is followed by fence.proxy.async, in the order of barriers, before wgmma or the copy engine read or replace its bytes",
	BarrierInit:  "an mbarrier is initialised, and its initialisation ordered by a barrier of threads and, for the copy engine, by a fence, before it is used",
	Phase:        "each wait at an mbarrier is for a phase that ends",
	Arrivals:     "each phase of an mbarrier gets as many arrivals as it was initialised with",
	Transactions: "the bytes that a phase expects are those of the bulk copies that are issued for it",
	Landed:       "what a bulk copy writes is read behind a wait at its mbarrier",
	BulkGroup:    "bulk stores from shared memory are in a group that cp.async.bulk.wait_group waits for before the kernel ends",
	CopyGroup:    "what cp.async writes is read behind cp.async.wait_group for its group, and by other warps behind a barrier",
	Reused:       "shared memory is written again only behind those who read it: by a barrier, an mbarrier, wgmma.wait_group or cp.async.bulk.wait_group",
	SharedRace:   "ordinary accesses of the same shared memory by two warps of a block or cluster, one of them a write, are ordered by a barrier",
	Bounds:       "asynchronous instructions and accesses of other blocks of a cluster stay inside the block's shared memory, and their addresses are aligned as they must be",
	Unwritten:    "wgmma, ldmatrix, bulk copies and other blocks of the cluster read shared memory that something has written",
	ProductFence: "wgmma.fence stands before the first wgmma, and between a write of a register and a wgmma that uses it",
	InFlight:     "sums and operands of wgmma in registers are not used between the instruction and the wait for its group, but by wgmma that continue the sum",
	Descriptor:   "a descriptor of wgmma addresses rows as the tensor map has laid them out: swizzle, alignment and strides, the same part of k of both operands",
	Registers:    "setmaxnreg has multiples of 8 from 24 to 256, the same in a warpgroup, and all warps of the block together have the registers of a multiprocessor",
	NamedBarrier: "bar.sync names barrier 0 to 15 and a number of threads that is that of the warps that come, a multiple of 32",
	Aligned:      "all threads of a warp (of wgmma and setmaxnreg: of a warpgroup) execute an .aligned instruction together",
	Prefetch:     "prefetch.tensormap names a parameter of the launch that is a tensor map",
	Dependency:   "a kernel that may start before those before it have ended, or has griddepcontrol.wait, reads and writes global memory behind griddepcontrol.wait alone, reads none by ld.global.nc, and ends behind it in every thread, so that all kernels before it have ended then",
	Flag:         "what a kernel leaves in global memory for other blocks of the launch is stored before bar.warp.sync and a flag set behind it by st.release.gpu, and read behind a bar.warp.sync behind a loop that reads a flag by ld.acquire.gpu until it is set; flags are accessed in no other way",

	ClusterBarrier: "the warps of a cluster arrive at its barrier and wait there in turns, and all of them come",
	ClusterLife:    "the shared memory of another block of the cluster is accessed when that block has begun, by a barrier of the cluster, and before it ends: it waits for what comes behind the access",
	ClusterSize:    "a kernel is launched in whole clusters of the size that it is compiled for",
	ClusterScope:   "where blocks of a cluster add to global memory by red, arrivals at mbarriers of other blocks are .release.cluster, and waits there .acquire.cluster",
	Multicast:      "the mask of a multicast copy names blocks of the cluster, at least one, and each of them has an mbarrier where the copy names one",
}

// Finding is a violation of a rule.
type Finding struct {
	Rule    Rule
	Kernel  string
	Pos            // in the PTX
	File    string // that the instruction came from, by the line table; "" without one
	Source  int    // its line
	Message string
}

// String is one line.
func (f Finding) String() string {
	place := fmt.Sprintf("PTX %d:%d", f.Line, f.Col)
	if f.Source > 0 {
		place = fmt.Sprintf("%s:%d, %s", f.File, f.Source, place)
	}
	return fmt.Sprintf("%s (%s): %s: %s", f.Kernel, place, f.Rule, f.Message)
}

// Report is what a check has found.
type Report struct {
	Kernels  int
	Findings []Finding
	// Undecided counts, by reason, what could not be decided.
	Undecided map[string]int
	// Steps are the instructions that warps have executed.
	Steps int
	// Checked counts, by rule, what was decided.
	Checked map[Rule]int
	// Traffic is, by kernel, what accesses move.
	Traffic map[string]*Traffic
}

func newReport() *Report {
	return &Report{Undecided: map[string]int{}, Checked: map[Rule]int{}, Traffic: map[string]*Traffic{}}
}

// finish orders findings and removes those that repeat one at the same place.
func (r *Report) finish() {
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Kernel, b.Kernel), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Rule, b.Rule))
	})
	r.Findings = slices.CompactFunc(r.Findings, func(a, b Finding) bool {
		return a.Kernel == b.Kernel && a.Line == b.Line && a.Rule == b.Rule
	})
}

// The reasons why something is not decided.
const (
	reasonAddress   = "an address is not known"
	reasonBranch    = "a branch depends on data"
	reasonLong      = "the kernel runs longer than is followed"
	reasonLaunch    = "the launch is not known"
	reasonArgument  = "an operand is not known"
	reasonOperation = "an instruction is not modelled"
	reasonLayout    = "a layout of an operand is not modelled"
)
