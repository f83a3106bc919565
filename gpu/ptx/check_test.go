package ptx

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"dmir/gpu/artifact"
)

// launchOf is what the kernels of testdata are launched with.
var launchOf = map[string]Launch{
	"ring": {Grid: [3]int{1, 1, 1}, Threads: 256, Shared: 18464, Registers: 128, Maps: map[int]*artifact.TensorMap{
		1: {Elem: "f16", Dims: []uint64{256, 64}, Strides: []uint64{512}, Box: []uint32{64, 64}, Swizzle: 128},
		2: {Elem: "f16", Dims: []uint64{256, 8}, Strides: []uint64{512}, Box: []uint32{64, 8}, Swizzle: 128},
	}},
	"stored": {Grid: [3]int{1, 1, 1}, Threads: 64, Maps: map[int]*artifact.TensorMap{
		0: {Elem: "f16", Dims: []uint64{96, 32}, Strides: []uint64{192}, Box: []uint32{32, 16}, Swizzle: 64},
	}},
	"staged": {Grid: [3]int{1, 1, 1}, Threads: 256, Registers: 64, Dependent: true},
	"pair":   {Grid: [3]int{4, 1, 1}, Threads: 64, Cluster: 2},
	"halves": {Grid: [3]int{4, 1, 1}, Threads: 64, Cluster: 2, Shared: 2080, Maps: map[int]*artifact.TensorMap{
		0: {Elem: "f16", Dims: []uint64{64, 40}, Strides: []uint64{128}, Box: []uint32{64, 4}},
	}},
}

func kernelText(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name + ".ptx")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func checkText(t testing.TB, text, name string, l Launch) *Report {
	t.Helper()
	m, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Check(m, map[string][]Launch{name: {l}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Correct kernels have no finding, everything in them is decided, and each rule
// has something to decide in one of them.
func TestCorrectKernels(t *testing.T) {
	for name, l := range launchOf {
		r := checkText(t, kernelText(t, name), name, l)
		for _, f := range r.Findings {
			t.Error(f)
		}
		if len(r.Undecided) > 0 {
			t.Errorf("%s: not decided: %v", name, r.Undecided)
		}
	}
}

// Other correct kernels have no finding either.
func TestCorrectVariants(t *testing.T) {
	const cluster = "barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;"
	for _, v := range []struct {
		name, kernel string
		n            int
		old, new     string
	}{
		{"barriers of the cluster", "ring", 1, "bar.sync 0;", cluster},
		{"barriers of the cluster", "staged", 0, "bar.sync 0;", cluster},
		{"a barrier of the block behind its own accesses", "pair", 1, "ld.shared.v2.f32 {%f2, %f3}, [%r3];", "bar.sync 0;\n\tld.shared.v2.f32 {%f2, %f3}, [%r3];"},
		{"the first arrival orders nothing", "pair", 1, "barrier.cluster.arrive.release.aligned;", "bar.sync 0;\n\tbarrier.cluster.arrive.relaxed.aligned;"},
		{"an arrival that orders nothing", "pair", 3, "barrier.cluster.arrive.release.aligned;", "barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;\n\tbarrier.cluster.arrive.relaxed.aligned;"},
		{"an elected thread", "staged", 1, "griddepcontrol.wait;", "griddepcontrol.wait;\n\telect.sync %r40|%p4, -1;\n\t@%p4 mov.u32 %r41, 1;"},
		{"the fence of mbarriers alone", "ring", 1, "fence.proxy.async.shared::cta;", ""},
		{"the fence of the proxy alone", "ring", 1, "fence.mbarrier_init.release.cluster;", ""},
		{"a phase is waited for twice", "ring", 1, "wgmma.fence.sync.aligned;", "mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r17], %r12;\n\twgmma.fence.sync.aligned;"},
		{"two fences", "ring", 1, "wgmma.fence.sync.aligned;", "wgmma.fence.sync.aligned;\n\twgmma.fence.sync.aligned;"},
		{"a register of its own in flight", "ring", 1, "wgmma.commit_group.sync.aligned;", "mov.f32 %f7, 0f00000000;\n\twgmma.commit_group.sync.aligned;"},
		{"a branch on data", "staged", 1, "END:", "setp.gt.f32 %p4, %f0, %f1;\n\t@%p4 bra END;\n\tst.global.f32 [%rd7], %f0;\nEND:"},
		{"a loop on data", "staged", 1, "setp.gt.u32 %p1,", "AGAIN:\n\tadd.f32 %f9, %f9, %f8;\n\tsetp.gt.f32 %p4, %f9, %f1;\n\t@%p4 bra AGAIN;\n\tsetp.gt.u32 %p1,"},
		{"an instruction that is not modelled", "ring", 1, "wgmma.fence.sync.aligned;", "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r17];\n\twgmma.fence.sync.aligned;"},
	} {
		r := checkText(t, replaced(t, kernelText(t, v.kernel), v.old, v.new, v.n), v.kernel, launchOf[v.kernel])
		for _, f := range r.Findings {
			t.Errorf("%s: %s", v.name, f)
		}
	}
}

// planted is one mistake in a kernel of testdata: the n-th occurrence (from 1; 0:
// all) of a text is replaced.
type planted struct {
	name, kernel string
	n            int
	old, new     string
	rule         Rule
}

var mistakes = []planted{
	{"no fences behind the initialisation", "ring", 0, "fence.mbarrier_init.release.cluster;\n\tfence.proxy.async.shared::cta;", "", BarrierInit},
	{"no barrier of threads behind it", "ring", 1, "bar.sync 0;", "", BarrierInit},
	{"an mbarrier is not initialised", "ring", 1, "mbarrier.init.shared::cta.b64 [%r3+24], %r5;", "", BarrierInit},
	{"an mbarrier lies askew", "ring", 0, "18432;\n\tmov.u32 %r4", "18436;\n\tmov.u32 %r4", Bounds},
	{"too many arrivals are awaited", "ring", 1, "mov.u32 %r5, 4;", "mov.u32 %r5, 5;", Arrivals},
	{"too few", "ring", 1, "mov.u32 %r5, 4;", "mov.u32 %r5, 3;", Reused},
	{"all lanes arrive", "ring", 1, "or.pred %p7, %p6, %p5;", "mov.pred %p7, %p6;", Arrivals},
	{"no consumer arrives", "ring", 1, "mbarrier.arrive.shared::cta.b64 _, [%r34];", "", Phase},
	{"the phase does not alternate", "ring", 1, "xor.b32 %r12, %r12, %r28;", "", Phase},
	{"the producer waits for the wrong phase", "ring", 1, "xor.b32 %r13, %r12, 1;", "mov.u32 %r13, %r12;", Phase},
	{"the producer does not wait", "ring", 1, "mbarrier.try_wait.parity.shared::cta.b64 done, [%r16], %r13;", "setp.eq.s32 done, %r13, %r13;", Reused},
	{"the consumer does not wait", "ring", 1, "mbarrier.try_wait.parity.shared::cta.b64 done, [%r17], %r12;", "setp.eq.s32 done, %r12, %r12;", Landed},
	{"the consumer waits for the phase before", "ring", 1, "[%r17], %r12;\n\t@!done", "[%r17], 1;\n\t@!done", Unwritten},
	{"the consumer waits at the other mbarrier", "ring", 2, "add.s32 %r17, %r15, 18432;", "add.s32 %r17, %r15, 18448;", Phase},
	{"more bytes are expected than come", "ring", 1, "9216", "9232", Transactions},
	{"fewer", "ring", 1, "9216", "9200", Transactions},
	{"a copy is missing", "ring", 1, "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r26], [%rd4, {%r27, %r20}], [%r17];", "", Transactions},
	{"a prefetch of a buffer", "ring", 1, "prefetch.tensormap [%rd3];", "ld.param.u64 %rd15, [ring_0];\n\tprefetch.tensormap [%rd15];", Prefetch},
	{"of what lies behind a map's beginning", "ring", 1, "prefetch.tensormap [%rd4];", "prefetch.tensormap [%rd4+64];", Prefetch},
	{"the maps are exchanged", "ring", 1, "[%rd3, {%r27, %r20}]", "[%rd4, {%r27, %r20}]", Transactions},
	{"a copy signals the other mbarrier", "ring", 1, "[%rd4, {%r27, %r20}], [%r17]", "[%rd4, {%r27, %r20}], [%r16]", Transactions},
	{"coordinates are exchanged", "ring", 1, "[%rd4, {%r27, %r20}]", "[%rd4, {%r20, %r27}]", Descriptor},
	{"a coordinate is missing", "ring", 1, "[%rd4, {%r27, %r20}]", "[%rd4, {%r27}]", Descriptor},
	{"a box is not aligned to its swizzle", "ring", 1, "add.s32 %r26, %r25, 16384;", "add.s32 %r26, %r25, 16512;", Bounds},
	{"a slot is that of the other operand", "ring", 1, "shl.b32 %r22, %r11, 13;", "shl.b32 %r22, %r11, 14;", Bounds},
	{"slots lie too near", "ring", 1, "shl.b32 %r22, %r11, 13;", "shl.b32 %r22, %r11, 12;", Reused},
	{"beyond the end", "ring", 1, "add.s32 %r26, %r25, 16384;", "add.s32 %r26, %r25, 20480;", Bounds},
	{"the other slot is multiplied", "ring", 2, "shl.b32 %r22, %r11, 13;", "xor.b32 %r22, %r11, 1;\n\tshl.b32 %r22, %r22, 13;", Landed},
	{"k of the operands differs", "ring", 1, "add.s64 %rd10, %rd8, 2;", "add.s64 %rd10, %rd8, 4;", Descriptor},
	{"the stride of rows is half", "ring", 1, "or.b64 %rd6, %rd5, 4611686293305360384;", "or.b64 %rd6, %rd5, 4611686155866406912;", Descriptor},
	{"no swizzle", "ring", 1, "or.b64 %rd6, %rd5, 4611686293305360384;", "or.b64 %rd6, %rd5, 274877972480;", Descriptor},
	{"a swizzle of 64 bytes", "ring", 1, "or.b64 %rd8, %rd7, 4611686293305360384;", "or.b64 %rd8, %rd7, 9223372311732748288;", Descriptor},
	{"the operand is said to be contiguous along m", "ring", 1, "1, 1, 1, 0, 0;", "1, 1, 1, 1, 0;", Descriptor},
	{"no wgmma.fence", "ring", 1, "wgmma.fence.sync.aligned;", "", ProductFence},
	{"a sum is written behind it", "ring", 1, "wgmma.fence.sync.aligned;", "wgmma.fence.sync.aligned;\n\tmov.f32 %f2, 0f00000000;", ProductFence},
	{"a group too many is pending", "ring", 1, "wgmma.wait_group.sync.aligned 1;", "wgmma.wait_group.sync.aligned 2;", Reused},
	{"no wait in the loop", "ring", 1, "wgmma.wait_group.sync.aligned 1;", "", Reused},
	{"the last group is not waited for", "ring", 1, "wgmma.wait_group.sync.aligned 0;", "", InFlight},
	{"nor completely", "ring", 1, "wgmma.wait_group.sync.aligned 0;", "wgmma.wait_group.sync.aligned 1;", InFlight},
	{"no group is closed", "ring", 1, "wgmma.commit_group.sync.aligned;", "", InFlight},
	{"a sum is read in flight", "ring", 1, "wgmma.commit_group.sync.aligned;", "wgmma.commit_group.sync.aligned;\n\tadd.f32 %f7, %f0, %f0;", InFlight},
	{"a sum is written in flight", "ring", 1, "wgmma.wait_group.sync.aligned 1;", "mov.f32 %f3, 0f00000000;\n\twgmma.wait_group.sync.aligned 1;", InFlight},
	{"one warp multiplies less", "ring", 1, "bar.sync 1, 128;", "setp.lt.u32 %p9, %r1, 160;\n\t@%p9 bra END;\n\twgmma.fence.sync.aligned;\n\twgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd13, %rd14, 1, 1, 1, 0, 0;\n\twgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;\n\tbar.sync 1, 96;", Aligned},
	{"too many registers", "ring", 1, "u32 216;", "u32 224;", Registers},
	{"no multiple of 8", "ring", 1, "u32 216;", "u32 212;", Registers},
	{"taken instead of given back", "ring", 1, "setmaxnreg.dec.sync.aligned.u32 40", "setmaxnreg.inc.sync.aligned.u32 40", Registers},
	{"one warp keeps its registers", "ring", 1, "setmaxnreg.dec.sync.aligned.u32 40;", "setp.lt.u32 %p9, %r1, 32;\n\t@%p9 setmaxnreg.dec.sync.aligned.u32 40;", Aligned},
	{"half of a warp", "ring", 1, "setmaxnreg.dec.sync.aligned.u32 40;", "setp.lt.u32 %p9, %r1, 16;\n\t@%p9 setmaxnreg.dec.sync.aligned.u32 40;", Aligned},
	{"a named barrier for too many", "ring", 1, "bar.sync 1, 128;", "bar.sync 1, 160;", NamedBarrier},
	{"for half a warp more", "ring", 1, "bar.sync 1, 128;", "bar.sync 1, 144;", NamedBarrier},
	{"barrier 16", "ring", 1, "bar.sync 1, 128;", "bar.sync 16, 128;", NamedBarrier},
	{"for all threads, half of which come", "ring", 1, "bar.sync 1, 128;", "bar.sync 1;", NamedBarrier},

	{"no proxy fence before a bulk store", "stored", 1, "fence.proxy.async.shared::cta;", "", ProxyFence},
	{"nor before the last one", "stored", 3, "fence.proxy.async.shared::cta;", "", ProxyFence},
	{"the fence stands before the writes", "stored", 1, "st.shared.v4.u32 [%r8+512], {%r1, %r1, %r1, %r1};\n\tfence.proxy.async.shared::cta;", "fence.proxy.async.shared::cta;\n\tst.shared.v4.u32 [%r8+512], {%r1, %r1, %r1, %r1};", ProxyFence},
	{"a box is written again while it is stored", "stored", 1, "cp.async.bulk.wait_group.read 1;", "", Reused},
	{"one group too many is pending", "stored", 1, "cp.async.bulk.wait_group.read 1;", "cp.async.bulk.wait_group.read 2;", Reused},
	{"the first store is in no group", "stored", 1, "cp.async.bulk.commit_group;", "", Reused},
	{"the last store is in no group", "stored", 3, "cp.async.bulk.commit_group;", "", BulkGroup},
	{"no wait at the end", "stored", 1, "cp.async.bulk.wait_group.read 0;", "", BulkGroup},
	{"a wait for all but the last", "stored", 1, "cp.async.bulk.wait_group.read 0;", "cp.async.bulk.wait_group.read 1;", BulkGroup},
	{"a box that lies askew is stored", "stored", 1, "add.s32 %r10, %r6, 1024;", "add.s32 %r10, %r6, 1152;", Bounds},
	{"a box that nothing has written", "stored", 1, "st.shared.v4.u32 [%r8+1536], {%r1, %r1, %r1, %r1};", "", Unwritten},
	{"a coordinate too many", "stored", 1, "{0, %r9}", "{0, %r9, 0}", Descriptor},

	{"no proxy fence before wgmma", "staged", 1, "fence.proxy.async.shared::cta;", "", ProxyFence},
	{"the fence stands before the write", "staged", 1, "st.shared.v4.f32 [%r10+16], {%f4, %f5, %f6, %f7};\n\tfence.proxy.async.shared::cta;", "fence.proxy.async.shared::cta;\n\tst.shared.v4.f32 [%r10+16], {%f4, %f5, %f6, %f7};", ProxyFence},
	{"no barrier before wgmma", "staged", 1, "fence.proxy.async.shared::cta;\n\tbar.sync 0;", "fence.proxy.async.shared::cta;", SharedRace},
	{"one wait too few", "staged", 1, "cp.async.wait_group 1;", "cp.async.wait_group 2;", CopyGroup},
	{"a wait for too few", "staged", 1, "cp.async.wait_group 0;", "cp.async.wait_group 1;", CopyGroup},
	{"no group is closed for cp.async", "staged", 1, "cp.async.commit_group;", "", CopyGroup},
	{"no barrier behind the wait", "staged", 1, "cp.async.wait_group 1;\n\tbar.sync 0;", "cp.async.wait_group 1;", CopyGroup},
	{"a slot is copied to before its readers are done", "staged", 1, "cp.async.wait_group 0;\n\tbar.sync 0;\n\tld.shared.v4.f32 {%f4, %f5, %f6, %f7}, [%r8+4096];", "", Reused},
	{"a copy is not aligned", "staged", 1, "cp.async.cg.shared.global [%r5],", "cp.async.cg.shared.global [%r5+8],", Bounds},
	{"a row of ldmatrix is not aligned", "staged", 1, "[%r22];", "[%r22+8];", Bounds},
	{"ldmatrix reads what nothing has written", "staged", 1, "add.s32 %r22, %r3, %r21;", "add.s32 %r22, %r2, %r21;", Unwritten},
	{"ldmatrix of half a warp", "staged", 1, "ldmatrix.sync", "setp.lt.u32 %p3, %r20, 16;\n\t@%p3 ldmatrix.sync", Aligned},
	{"a barrier for half a warp", "staged", 1, "bar.sync 0;", "setp.lt.u32 %p3, %r1, 144;\n\t@%p3 bar.sync 0;", Aligned},
	{"shared memory is written while wgmma reads it", "staged", 1, "bar.sync 2, 128;", "", Reused},
	{"wgmma is not waited for", "staged", 1, "wgmma.wait_group.sync.aligned 0;", "", InFlight},
	{"the other block may not have begun", "pair", 1, "barrier.cluster.arrive.release.aligned;\n\tld.param.u64 %rd1, [pair_0];\n\tcvta.to.global.u64 %rd2, %rd1;\n\tld.global.f32 %f1, [%rd2];\n\tbarrier.cluster.wait.acquire.aligned;", "bar.sync 0;\n\tld.param.u64 %rd1, [pair_0];\n\tcvta.to.global.u64 %rd2, %rd1;", ClusterLife},
	{"no barrier behind what the other gives", "pair", 1, "GIVEN:\n\tbarrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;", "GIVEN:\n\tbar.sync 0;", SharedRace},
	{"an arrival that orders nothing", "pair", 1, "GIVEN:\n\tbarrier.cluster.arrive.release.aligned;", "GIVEN:\n\tbarrier.cluster.arrive.relaxed.aligned;", SharedRace},
	{"no barrier before the end", "pair", 1, "TAKEN:\n\tbarrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;", "TAKEN:", ClusterLife},
	{"one block does not wait before its end", "pair", 1, "TAKEN:\n\tbarrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;", "TAKEN:\n\tbarrier.cluster.arrive.release.aligned;\n\tsetp.eq.s32 %p4, %r2, 0;\n\t@%p4 bra LAST;\n\tbarrier.cluster.wait.acquire.aligned;\nLAST:", ClusterLife},
	{"two arrivals without a wait", "pair", 1, "GIVEN:\n\tbarrier.cluster.arrive.release.aligned;", "GIVEN:\n\tbarrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.arrive.release.aligned;", ClusterBarrier},
	{"a wait without an arrival", "pair", 1, "GIVEN:\n\tbarrier.cluster.arrive.release.aligned;", "GIVEN:", ClusterBarrier},
	{"one warp does not come", "pair", 1, "TAKEN:\n\tbarrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;", "TAKEN:\n\tsetp.gt.u32 %p4, %r1, 31;\n\t@%p4 bra LAST;\n\tbarrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;\nLAST:\n\tbar.sync 0;", ClusterBarrier},
	{"half a warp comes", "pair", 1, "GIVEN:\n\tbarrier.cluster.arrive.release.aligned;", "GIVEN:\n\tsetp.lt.u32 %p4, %r1, 16;\n\t@%p4 barrier.cluster.arrive.release.aligned;", Aligned},
	{"a block that is not there", "pair", 1, "%r5, %r3, %r1;", "%r5, %r3, %r4;\n\tadd.s32 %r20, %r4, 1;\n\tmapa.shared::cluster.u32 %r5, %r3, %r20;", Bounds},
	{"beyond the memory of the other block", "pair", 1, "shl.b32 %r6, %r2, 2;", "shl.b32 %r6, %r4, 5;", Bounds},
	{"an address of the other block as one's own", "pair", 1, "ld.shared::cluster.f32 %f5", "ld.shared.f32 %f5", Bounds},
	{"two blocks give to one slot", "pair", 1, "shl.b32 %r6, %r2, 2;", "mov.u32 %r6, 0;", SharedRace},
	{"what nothing has written is taken", "pair", 1, "[%r13+8];", "[%r13+12];", Unwritten},
	{"the block is not told", "pair", 1, "mbarrier.try_wait.parity.shared::cta.b64 done, [%r11], %r12;", "setp.eq.s32 done, %r12, %r12;", SharedRace},
	{"it tells itself", "pair", 1, "%r9, %r3, %r8;", "%r9, %r3, %r2;", SharedRace},
	{"both warps tell", "pair", 1, "setp.ne.s32 %p3, %r1, 32;", "and.b32 %r20, %r1, 31;\n\tsetp.ne.s32 %p3, %r20, 0;", Phase},
	{"no mbarrier is there", "pair", 1, "add.s32 %r10, %r9, 16;", "add.s32 %r10, %r9, 24;", BarrierInit},
	{"it is initialised behind the barrier of the cluster", "pair", 1, "ld.shared.v2.f32 {%f2, %f3}, [%r3];", "@!%p1 mbarrier.init.shared::cta.b64 [%r3+16], %r4;\n\tld.shared.v2.f32 {%f2, %f3}, [%r3];", BarrierInit},
	{"a multicast to a block that is not there", "halves", 1, "mov.u16 %rs1, 3;", "mov.u16 %rs1, 5;", Multicast},
	{"to none", "halves", 1, "mov.u16 %rs1, 3;", "mov.u16 %rs1, 0;", Multicast},
	{"the other block has no mbarrier there", "halves", 1, "mbarrier.init.shared::cta.b64 [%r3+2056], %r4;", "setp.eq.s32 %p7, %r2, 0;\n\t@%p7 mbarrier.init.shared::cta.b64 [%r3+2056], %r4;", Multicast},
	{"to one block alone", "halves", 1, "mov.u16 %rs1, 3;", "mov.u16 %rs1, 1;", Transactions},
	{"the bytes of the own half alone are expected", "halves", 1, "mov.u32 %r21, 1024;", "mov.u32 %r21, 512;", Transactions},
	{"no multicast", "halves", 1, ".multicast::cluster [%r26], [%rd2, {%r20, %r28}], [%r17], %rs1;", " [%r26], [%rd2, {%r20, %r28}], [%r17];", Transactions},
	{"both blocks load the same half", "halves", 1, "shl.b32 %r23, %r2, 9;", "mov.u32 %r23, 0;", Reused},
	{"a half lies askew", "halves", 1, "shl.b32 %r23, %r2, 9;", "shl.b32 %r23, %r2, 6;", Bounds},
	{"the other block may not have made its mbarriers", "halves", 1, "barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;", "bar.sync 0;", ClusterLife},
	{"nothing makes its mbarriers known", "halves", 1, "fence.mbarrier_init.release.cluster;\n\tfence.proxy.async.shared::cta;", "", BarrierInit},
	{"the readers of the other block are not awaited", "halves", 1, "mov.u32 %r5, 2;", "mov.u32 %r5, 1;", Arrivals},
	{"nor told", "halves", 1, "setp.gt.u32 %p5, %r30, 1;", "setp.gt.u32 %p5, %r30, 0;", Phase},
	{"both lanes tell the same block", "halves", 1, "mapa.shared::cluster.u32 %r33, %r16, %r30;", "mapa.shared::cluster.u32 %r33, %r16, %r2;", Reused},
	{"more are awaited than arrive", "halves", 1, "mov.u32 %r5, 2;", "mov.u32 %r5, 3;", Arrivals},
	{"a block does not wait for the last arrivals of the other", "halves", 1, "mov.u32 %r40, 2;", "mov.u32 %r40, 1;", ClusterLife},
	{"nor for any", "halves", 1, "mov.u32 %r10, 0;\nDRAIN:", "bra.uni END;\nDRAIN:", ClusterLife},
	{"a block ends before what the other one copies to it has arrived", "halves", 1, "mov.u32 %r40, 2;\n\tmov.u32 %r41, 5;", "mov.u32 %r40, 1;\n\tmov.u32 %r41, 4;", ClusterLife},
	{"a slot is written before its readers are done", "halves", 1, "mbarrier.try_wait.parity.shared::cta.b64 done, [%r16], %r13;", "setp.eq.s32 done, %r13, %r13;", Reused},
	{"no step is waited for", "halves", 1, "mbarrier.try_wait.parity.shared::cta.b64 done, [%r17], %r12;", "setp.eq.s32 done, %r12, %r12;", Phase},
	{"clusters of another size", "pair", 1, ".reqnctapercluster 2, 1, 1", ".reqnctapercluster 4, 1, 1", ClusterSize},
	{"global memory is read before its writer is done", "staged", 1, "griddepcontrol.wait;", "griddepcontrol.launch_dependents;", Dependency},
	{"no wait for the kernels before", "staged", 1, "griddepcontrol.wait;", "", Dependency},
	{"one path waits", "staged", 1, "griddepcontrol.wait;", "setp.lt.u32 %p4, %r1, 240;\n\t@%p4 griddepcontrol.wait;", Dependency},
	{"some threads end without a wait", "staged", 1, "griddepcontrol.wait;", "setp.gt.u32 %p4, %r1, 191;\n\t@%p4 bra END;\n\tgriddepcontrol.wait;", Dependency},
	{"a write stands before the wait", "staged", 1, "griddepcontrol.wait;", "ld.param.u64 %rd7, [staged_1];\n\tst.global.f32 [%rd7], %f0;\n\tgriddepcontrol.wait;", Dependency},
	{"an atomic operation stands before the wait", "staged", 1, "griddepcontrol.wait;", "ld.param.u64 %rd7, [staged_1];\n\tatom.global.add.u32 %r40, [%rd7], 1;\n\tgriddepcontrol.wait;", Dependency},
	{"a copy stands before the wait", "staged", 1, "griddepcontrol.wait;", "ld.param.u64 %rd1, [staged_0];\n\tcp.async.cg.shared.global [%r5], [%rd1], 16;\n\tgriddepcontrol.wait;", Dependency},
	{"memory that may change is read as constant", "staged", 1, "ld.global.f32 %f8", "ld.global.nc.f32 %f8", Dependency},
	{"one role waits, the other reads", "staged", 1, "griddepcontrol.wait;", "setp.gt.u32 %p4, %r1, 127;\n\t@%p4 bra SKIP;\n\tgriddepcontrol.wait;\nSKIP:", Dependency},
	{"a role that ends early reads nothing, and does not wait", "staged", 1, "griddepcontrol.wait;", "setp.gt.u32 %p4, %r1, 223;\n\t@%p4 exit;\n\tgriddepcontrol.wait;", Dependency},
	{"a block between the first and the last writes first", "staged", 1, "griddepcontrol.wait;", "mov.u32 %r40, %ctaid.x;\n\tsetp.eq.u32 %p4, %r40, 77;\n\tld.param.u64 %rd7, [staged_1];\n\t@%p4 st.global.f32 [%rd7], %f0;\n\tgriddepcontrol.wait;", Dependency},
	{"a path that depends on data writes first", "staged", 1, "griddepcontrol.wait;", "ld.shared.u32 %r40, [%r3];\n\tsetp.eq.u32 %p4, %r40, 0;\n\t@%p4 bra SKIP;\n\tld.param.u64 %rd7, [staged_1];\n\tred.global.add.u32 [%rd7], 1;\nSKIP:\n\tgriddepcontrol.wait;", Dependency},
	{"a path that depends on data does not wait", "staged", 1, "griddepcontrol.wait;", "ld.shared.u32 %r40, [%r3];\n\tsetp.eq.u32 %p4, %r40, 0;\n\t@%p4 bra SKIP;\n\tgriddepcontrol.wait;\nSKIP:", Dependency},
	{"a loop reads before its wait", "staged", 1, "griddepcontrol.wait;", "ld.param.u64 %rd7, [staged_0];\n\tmov.u32 %r40, 0;\nLOOP:\n\tld.global.f32 %f9, [%rd7];\n\tgriddepcontrol.wait;\n\tadd.u32 %r40, %r40, 1;\n\tsetp.lt.u32 %p4, %r40, 4;\n\t@%p4 bra LOOP;", Dependency},
	{"an address without a space is read first", "staged", 1, "griddepcontrol.wait;", "ld.param.u64 %rd7, [staged_0];\n\tld.f32 %f9, [%rd7];\n\tgriddepcontrol.wait;", Dependency},
	{"a reduction without a space stands before the wait", "staged", 1, "griddepcontrol.wait;", "ld.param.u64 %rd7, [staged_1];\n\tred.add.u32 [%rd7], 1;\n\tgriddepcontrol.wait;", Dependency},
	{"a bulk copy stands before the wait", "staged", 1, "griddepcontrol.wait;", "ld.param.u64 %rd7, [staged_1];\n\tsetp.eq.u32 %p4, %r1, 0;\n\t@%p4 cp.async.bulk.global.shared::cta.bulk_group [%rd7], [%r3], 16;\n\tgriddepcontrol.wait;", Dependency},
	{"a function is called before the wait", "staged", 1, "griddepcontrol.wait;", "call.uni reader;\n\tgriddepcontrol.wait;", Dependency},
	{"the wait stands behind the load", "staged", 1, "griddepcontrol.wait;", "ld.param.u64 %rd1, [staged_0];\n\tld.global.f32 %f9, [%rd1];\n\tgriddepcontrol.wait;", Dependency},
}

// replaced is text with the n-th occurrence of old replaced; 0: all.
func replaced(t testing.TB, text, old, new string, n int) string {
	t.Helper()
	parts := strings.Split(text, old)
	if len(parts) < max(n, 1)+1 {
		t.Fatalf("the text has %d times %q", len(parts)-1, old)
	}
	if n == 0 {
		return strings.Join(parts, new)
	}
	return strings.Join(parts[:n], old) + new + strings.Join(parts[n:], old)
}

// Each planted mistake is found by the rule that it violates.
func TestMistakes(t *testing.T) {
	for _, p := range mistakes {
		t.Run(p.kernel+"/"+p.name, func(t *testing.T) {
			r := checkText(t, replaced(t, kernelText(t, p.kernel), p.old, p.new, p.n), p.kernel, launchOf[p.kernel])
			var found []string
			for _, f := range r.Findings {
				if f.Rule == p.rule {
					if line := f.Source; p.kernel == "ring" && (f.File != "ring.dmir" || line != 3 && line != 4) {
						t.Errorf("the finding is not of the program's line: %s", f)
					}
					return
				}
				found = append(found, f.String())
			}
			t.Errorf("%s has no finding, but: %s %v", p.rule, strings.Join(found, "\n"), fmt.Sprint(r.Undecided))
		})
	}
}
