package emulator

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"dmir/gpu/nvrtc"
	"dmir/gpu/nvrtc/nvrtctest"
	"dmir/gpu/prelude"
	"dmir/testkit/need"
)

// wrongString is one mistake in a string of inline assembly.
type wrongString struct {
	twin, header, old, new string
	compiler               bool // it refuses the text
}

var wrongStrings = []wrongString{
	// The order of operands.
	{"mma f16", "mma.cuh", `f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}`, `f16.f16.f32 {%0, %1, %2, %3}, {%5, %4, %6, %7}, {%8, %9}`, false},
	{"mma f16", "mma.cuh", `f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}`, `f16.f16.f32 {%0, %1, %2, %3}, {%4, %6, %5, %7}, {%8, %9}`, false},
	{"mma f16", "mma.cuh", `f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}`, `f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%9, %8}`, false},
	{"mma f16", "mma.cuh", `f16.f16.f32 {%0, %1, %2, %3}`, `f16.f16.f32 {%2, %3, %0, %1}`, false},
	{"mma f16", "mma.cuh", `{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1])`, `{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%1, %0, %2, %3};"
      : "+f"(d[0]), "+f"(d[1])`, false},
	{"mma bf16", "mma.cuh", `bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}`, `bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %7, %6}`, false},
	{"mma bf16", "mma.cuh", `f32.bf16.bf16.f32`, `f32.f16.f16.f32`, false},
	{"mma f16", "mma.cuh", `f32.f16.f16.f32`, `f32.bf16.bf16.f32`, false},
	{"mma tf32", "mma.cuh", `tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}`, `tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%9, %8}`, false},
	{"mma tf32", "mma.cuh", `tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5`, `tf32.tf32.f32 {%0, %1, %2, %3}, {%5, %4`, false},
	{"mma.sp f16", "mma.cuh", `%12, " #HALF ";"`, `%12, 0;"`, false},
	{"mma.sp f16", "mma.cuh", `DM_SPARSE_PRODUCT(f16, "f16", 1)`, `DM_SPARSE_PRODUCT(f16, "bf16", 1)`, false},
	{"mma.sp bf16", "mma.cuh", `{%4, %5, %6, %7}, {%8, %9, %10, %11}`, `{%4, %6, %5, %7}, {%8, %9, %10, %11}`, false},
	{"mma.sp bf16", "mma.cuh", `{%4, %5, %6, %7}, {%8, %9, %10, %11}`, `{%4, %5, %6, %7}, {%10, %11, %8, %9}`, false},
	{"mma.sp bf16", "mma.cuh", `"r"(b[3]), "r"(e));`, `"r"(b[3]), "r"(e << 16 | e >> 16));`, false},
	{"box of 3 dimensions", "hopper.cuh", `prefetch.tensormap [%0];`, `prefetch.tensormap [%0+64];`, false},
	{"round_tf32", "mma.cuh", `cvt.rna.tf32.f32 %0, %1;`, `and.b32 %0, %1, 0xffffe000;`, false},
	{"round_tf32", "mma.cuh", `cvt.rna.tf32.f32 %0, %1;`, `mov.b32 %0, %1;`, false},
	{"ldmatrix_x4 of floats", "mma.cuh", `x4.shared.b16 {%0, %1, %2, %3}`, `x4.shared.b16 {%0, %2, %1, %3}`, false},
	{"product tf32 64", "hopper.cuh", `"}, %" #A ", %" #B ", %" #ADD ", 1, 1;"`, `"}, %" #B ", %" #A ", %" #ADD ", 1, 1;"`, false},
	{"product tf32 64", "hopper.cuh", `DM_WGMMA_LINES("tf32", "tf32", COLS, 8, R0, R1, R2)`, `DM_WGMMA_LINES("tf32", "tf32", COLS, 8, R1, R0, R2)`, false},
	{"order_keys f16 false", "ops.cuh", `prmt.b32 %0, %1, 0, 0xbb99;`, `prmt.b32 %0, %1, 0, 0xbbbb;`, false},
	{"order_keys bf16 false", "ops.cuh", `fma.rn.bf16x2 %0, %0, %1, %2;`, `fma.rn.f16x2 %0, %0, %1, %2;`, false},
	{"order_keys f16 true", "ops.cuh", `fma.rn.f16x2 %0, %0, %1, %2;`, `mov.b32 %0, %0;`, false},
	{"order_keys bf16 true", "ops.cuh", `0xbf80bf80u : 0x3f803f80u), "r"(0)`, `0xbf80bf80u : 0x3f803f80u), "r"(0x80008000)`, false},
	{"match_digit", "sort.cuh", `setp.ne.u32 set`, `setp.eq.u32 set`, false},
	{"match_digit", "sort.cuh", `and.b32 bit, %1, %2;`, `or.b32 bit, %1, %2;`, false},
	{"match_digit", "sort.cuh", `(31 - b)`, `(30 - b)`, false},
	{"pack2 f16", "mma.cuh", `cvt.rn.f16x2.f32 %0, %1, %2;`, `cvt.rn.f16x2.f32 %0, %2, %1;`, false},
	{"pack2 bf16", "mma.cuh", `cvt.rn.bf16x2.f32 %0, %1, %2;`, `cvt.rn.bf16x2.f32 %0, %2, %1;`, false},
	{"pack2 bf16", "mma.cuh", `cvt.rn.bf16x2.f32`, `cvt.rn.f16x2.f32`, false},
	{"load_once", "memory.cuh", `v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w) : "l"(p));
    return bits_as<V>(r);
  } else {
    return load_vector`, `v4.u32 {%1, %0, %2, %3}, [%4];" : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w) : "l"(p));
    return bits_as<V>(r);
  } else {
    return load_vector`, false},
	{"loads of vectors", "memory.cuh", `ld.global.v4.u32 {%0, %1, %2, %3}`, `ld.global.v4.u32 {%1, %0, %2, %3}`, false},
	{"loads of vectors", "memory.cuh", `ld.global.v2.u32 {%0, %1}, [%2]`, `ld.global.v2.u32 {%1, %0}, [%2]`, false},
	{"loads of vectors", "memory.cuh", `ld.global.u32 %0, [%1]`, `ld.global.u32 %0, [%1+4]`, false},
	{"flags", "warp.cuh", `st.release.gpu.global.u32 [%0], %1;`, `st.release.gpu.global.u32 [%0+4], %1;`, false},
	{"flags", "warp.cuh", `"r"(1) : "memory"`, `"r"(2) : "memory"`, false},
	{"store of 16 bytes", "memory.cuh", `[%0], {%1, %2, %3, %4}`, `[%0], {%1, %3, %2, %4}`, false},
	{"store of 8 bytes", "memory.cuh", `[%0], {%1, %2}`, `[%0], {%2, %1}`, false},
	{"load_once", "memory.cuh", `v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w) : "l"(p));
    return bits_as<V>(r);
  } else {
    return load_vector`, `v4.u32 {%0, %1, %2, %3}, [%4+16];" : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w) : "l"(p));
    return bits_as<V>(r);
  } else {
    return load_vector`, false},
	{"cluster", "cluster.cuh", `mapa.shared::cluster.u32 %0, %1, %2;`, `mapa.shared::cluster.u32 %0, %1, 0;`, false},
	{"cluster", "cluster.cuh", `%%cluster_ctarank`, `%%cluster_nctarank`, false},
	{"cluster", "cluster.cuh", `ld.shared::cluster.u32 %0, [%1];`, `ld.shared::cluster.u32 %0, [%1+4];`, false},
	{"cluster", "cluster.cuh", `ld.shared::cluster.u64 %0, [%1];`, `ld.shared::cluster.u64 %0, [%1+8];`, false},
	{"cluster", "cluster.cuh", `ld.shared::cluster.v4.u32 {%0, %1, %2, %3}`, `ld.shared::cluster.v4.u32 {%0, %2, %1, %3}`, false},
	{"cluster", "cluster.cuh", `ld.shared::cluster.v2.u32 {%0, %1}`, `ld.shared::cluster.v2.u32 {%1, %0}`, false},
	{"cluster", "cluster.cuh", `st.shared::cluster.u32 [%0], %1;`, `st.shared::cluster.u32 [%0], %0;`, false},
	{"cluster", "cluster.cuh", `st.shared::cluster.u64 [%0], %1;" ::"r"(to), "l"`, `st.shared::cluster.u64 [%0], %1;" ::"r"(to), "r"`, true},
	{"cluster", "hopper.cuh", `shared::cluster.b64 _, [%0];`, `shared::cluster.b64 _, [%0+8];`, false},
	{"cluster", "hopper.cuh", `acquire.cluster.shared::cta.b64 done, [%0], %1;`, `acquire.cluster.shared::cta.b64 done, [%0+8], %1;`, false},
	{"add_in_turn", "hopper.cuh", `add.v4.f32 [%0], {%1, %2, %3, %4};`, `add.v4.f32 [%0], {%1, %3, %2, %4};`, false},
	{"add_in_turn", "hopper.cuh", `add.v4.f32 [%0], {%1, %2, %3, %4};`, `add.v4.f32 [%0+16], {%1, %2, %3, %4};`, false},
	// Modifiers.
	{"ldmatrix_x4_trans", "mma.cuh", `x4.trans.shared`, `x4.shared`, false},
	{"ldmatrix_x4", "mma.cuh", `x4.shared`, `x4.trans.shared`, false},
	{"ldmatrix_x2", "mma.cuh", `x2.shared`, `x2.trans.shared`, false},
	{"ldmatrix_x2_trans", "mma.cuh", `x2.trans.shared.b16 {%0, %1}`, `x2.trans.shared.b16 {%1, %0}`, false},
	{"ldmatrix_x4", "mma.cuh", `x4.shared.b16 {%0, %1, %2, %3}`, `x4.shared.b16 {%0, %2, %1, %3}`, false},
	{"narrow f16", "types.cuh", `cvt.rn.f16.f32`, `cvt.rz.f16.f32`, false},
	{"narrow bf16", "types.cuh", `cvt.rn.bf16.f32`, `cvt.rz.bf16.f32`, false},
	{"narrow bf16", "types.cuh", `cvt.rn.bf16.f32`, `cvt.rn.f16.f32`, false},
	{"max", "math.cuh", `max.NaN.f32`, `min.NaN.f32`, false},
	{"min", "math.cuh", `min.NaN.f32`, `max.NaN.f32`, false},
	{"max", "math.cuh", `max.NaN.f32`, `max.f32`, false},
	{"exp_coarse", "math.cuh", `ex2.approx.ftz.f32 %0, %1;`, `ex2.approx.ftz.f32 %0, 0f3F800000;`, false},
	{"power_of_2", "attention.cuh", `ex2.approx.ftz.f32`, `lg2.approx.ftz.f32`, false},
	// Immediates.
	{"cp_async 16", "async.cuh", `[%0], [%1], 16, %2;`, `[%0], [%1], 16;`, false},
	{"cp_async 16", "async.cuh", `[%0], [%1], 16, %2;`, `[%0], [%1], 16, 8;`, false},
	{"cp_async from a place false", "async.cuh", `cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(src.p + j)`, `cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(src.p + j)`, false},
	{"cp_async from a place true", "async.cuh", `cp.async.ca.shared.global [%0], [%1], 16, %2;`, `cp.async.ca.shared.global [%0], [%1], 8, %2;`, false},
	{"cp_async from a place true", "async.cuh", `asm("" : "+l"(p));`, `asm("add.u64 %0, %0, 16;" : "+l"(p));`, false},
	{"cp_async 8", "async.cuh", `[%0], [%1], %2, %3;`, `[%0], [%1], %2;`, false},
	{"cp_async 4", "async.cuh", `[%0], [%1], %2, %3;`, `[%0+4], [%1], %2, %3;`, false},
	{"cp_async 4", "async.cuh", `"n"(BYTES)`, `"n"(BYTES * 2)`, false},
	{"box of 3 dimensions", "hopper.cuh", `{%3, %4, %5}], [%2];`, `{%3, %5, %4}], [%2];`, false},
	{"box of 4 dimensions", "hopper.cuh", `{%3, %4, %5, %6}], [%2];`, `{%3, %4, %6, %5}], [%2];`, false},
	{"box of 5 dimensions", "hopper.cuh", `{%3, %4, %5, %6, %7}], [%2];`, `{%3, %4, %5, %7, %6}], [%2];`, false},
	{"multicast of 2 dimensions", "hopper.cuh", `{%4, %5}], [%2], %3;`, `{%5, %4}], [%2], %3;`, false},
	{"multicast of 3 dimensions", "hopper.cuh", `{%4, %5, %6}], [%2], %3;`, `{%4, %6, %5}], [%2], %3;`, false},
	{"multicast of 4 dimensions", "hopper.cuh", `{%4, %5, %6, %7}], [%2], %3;`, `{%4, %5, %7, %6}], [%2], %3;`, false},
	{"multicast of 5 dimensions", "hopper.cuh", `{%4, %5, %6, %7, %8}], [%2], %3;`, `{%4, %5, %6, %8, %7}], [%2], %3;`, false},
	{"multicast of 2 dimensions", "hopper.cuh", `"h"(mask), "r"(c0), "r"(c1) :`, `"h"(u16(1)), "r"(c0), "r"(c1) :`, false},
	{"multicast of 3 dimensions", "hopper.cuh", `"h"(mask), "r"(c0), "r"(c1), "r"(c2) :`, `"r"(mask), "r"(c0), "r"(c1), "r"(c2) :`, true},
	{"multicast of 2 dimensions", "hopper.cuh", `mbarrier.arrive.shared::cluster.b64 _, [%0];`, `mbarrier.arrive.shared::cluster.b64 _, [%0+8];`, false},
	{"store of 2 dimensions", "hopper.cuh", `[%0, {%2, %3}], [%1];`, `[%0, {%3, %2}], [%1];`, false},
	{"store of 3 dimensions", "hopper.cuh", `[%0, {%2, %3, %4}], [%1];`, `[%0, {%2, %4, %3}], [%1];`, false},
	{"store of 4 dimensions", "hopper.cuh", `[%0, {%2, %3, %4, %5}], [%1];`, `[%0, {%2, %3, %5, %4}], [%1];`, false},
	{"store of 5 dimensions", "hopper.cuh", `[%0, {%2, %3, %4, %5, %6}], [%1];`, `[%0, {%2, %3, %4, %6, %5}], [%1];`, false},
	{"store of 2 dimensions", "hopper.cuh", `{%2, %3}], [%1];" ::"l"(&map), "r"(`, `{%2, %3}], [%1+1024];" ::"l"(&map), "r"(`, false},
	{"product f16 64 false false", "hopper.cuh", `}, %" #A ", %" #B ",`, `}, %" #B ", %" #A ",`, false},
	{"product f16 64 true true", "hopper.cuh", `1, 1, %" #TURN_A ", %" #TURN_B ";`, `1, 1, 0, 0;`, false},
	{"product f16 128 false true", "hopper.cuh", `#TURN_A ", %" #TURN_B ";`, `#TURN_B ", %" #TURN_A ";`, false},
	{"product bf16 128 false false", "hopper.cuh", `#ADD ", 1, 1, %" #TURN_A`, `#ADD ", -1, 1, %" #TURN_A`, false},
	{"product f16 256 false false", "hopper.cuh", `%112, %113,`, `%113, %112,`, false},
	{"product f16 192 false false", "hopper.cuh", `F(192, 96, 97, 98,`, `F(192, 96, 97, 100,`, false},
	{"product_held f16 64 true", "hopper.cuh", `{%" #A0 ", %" #A1 ", %" #A2 ", %" #A3 "}`, `{%" #A0 ", %" #A2 ", %" #A1 ", %" #A3 "}`, false},
	{"product_held bf16 128 true", "hopper.cuh", `{%" #A0 ", %" #A1 ", %" #A2 ", %" #A3 "}`, `{%" #A0 ", %" #A1 ", %" #A2 ", %" #A2 "}`, false},
	{"product_held bf16 192 true", "hopper.cuh", `%" #ADD ", 1, 1, %" #TURN_B ";" \`, `%" #ADD ", 1, 1, 0;" \`, false},
	{"product_held f16 16 false", "hopper.cuh", `%" #ADD ", 1, 1, %" #TURN_B ";" \`, `1, 1, 1, %" #TURN_B ";" \`, false},
	{"product bf16 64 true false", "hopper.cuh", `u64((lead & 0x3ffff) >> 4) << 16 | u64((stride & 0x3ffff) >> 4) << 32`, `u64((stride & 0x3ffff) >> 4) << 16 | u64((lead & 0x3ffff) >> 4) << 32`, false},
	{"product f16 64 false false", "hopper.cuh", `u64(1) << 62`, `u64(2) << 62`, false},
	{"product f16 64 false false", "hopper.cuh", `(address & 0x3ffff) >> 4`, `(address & 0x1ffff) >> 5`, false},
	{"product f8E4M3FN f8E4M3FN 128", "hopper.cuh", `"}, %" #A ", %" #B ", %" #ADD ", 1, 1;"`, `"}, %" #B ", %" #A ", %" #ADD ", 1, 1;"`, false},
	{"product f8E4M3FN f8E4M3FN 128", "hopper.cuh", `if constexpr (left && right) DM_WGMMA_LINES("e4m3", "e4m3"`, `if constexpr (left && right) DM_WGMMA_LINES("e5m2", "e5m2"`, false},
	{"product f8E4M3FN f8E5M2 64", "hopper.cuh", `if constexpr (left) DM_WGMMA_LINES("e4m3", "e5m2"`, `if constexpr (left) DM_WGMMA_LINES("e5m2", "e4m3"`, false},
	{"product f8E5M2 f8E4M3FN 128", "hopper.cuh", `if constexpr (right) DM_WGMMA_LINES("e5m2", "e4m3"`, `if constexpr (right) DM_WGMMA_LINES("e4m3", "e4m3"`, false},
	{"product f8E5M2 f8E5M2 64", "hopper.cuh", `#ADD ", 1, 1;" \
      : DM_HELD_##COLS \
      : "l"(a), "l"(b), "n"(int(Add)))`, `#ADD ", 1, 1;" \
      : DM_HELD_##COLS \
      : "l"(a), "l"(b), "n"(1))`, false},
	// Constraints.
	{"pack2 f16", "mma.cuh", `asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r)`, `asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=f"(r)`, true},
	{"wide f16", "types.cuh", `"h"(x.bits)`, `"r"(x.bits)`, true},
	{"loads of vectors", "memory.cuh", `"=r"(r.w) : "l"(p)`, `"=r"(r.w) : "r"(p)`, true},
	{"mma f16", "mma.cuh", `"+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// The same for bf16.`, `"=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// The same for bf16.`, false},
	{"product f16 64 false false", "hopper.cuh", `: "l"(a), "l"(b), "n"(int(Add))`, `: "r"(a), "l"(b), "n"(int(Add))`, true},
}

// Each mistake in a string shows beside its C++ twin, or the compiler refuses it.
func TestWrongStrings(t *testing.T) {
	need.Long(t)
	needCompiler(t)
	nvrtctest.Compiler(t)
	p := twinProgram(twins)
	right, err := Run(t.Context(), p, twinInputs(p, twins), Options{})
	if err != nil {
		t.Fatal(err)
	}
	inputs := twinInputs(p, twins)
	first := map[string]int{} // of a twin's inputs
	n := 0
	for i, w := range twins {
		first[w.name] = n
		n += len(p.Steps[i].Launch.Args) - 1
	}
	for _, wrong := range wrongStrings {
		t.Run(wrong.twin+"/"+wrong.new, func(t *testing.T) {
			i := 0
			for twins[i].name != wrong.twin {
				i++
			}
			headers := slices.Clone(prelude.Files())
			changed := false
			for j := range headers {
				if headers[j].Name == wrong.header {
					text := strings.Replace(headers[j].Text, wrong.old, wrong.new, 1)
					changed = text != headers[j].Text
					headers[j].Text = text
				}
			}
			if !changed {
				t.Fatalf("%s has no %q", wrong.header, wrong.old)
			}
			one := twinProgram(twins[i : i+1])
			got, err := runAssembly(t, one, headers, inputs[first[wrong.twin]:first[wrong.twin]+len(one.Inputs)])
			var refused *nvrtc.CompileError
			if errors.As(err, &refused) != wrong.compiler {
				t.Fatalf("the compiler says: %v", err)
			}
			if err == nil {
				err = differ(twins[i], right.Outputs[i], got[0])
			}
			if err == nil {
				t.Error("it computes what its twin does")
			}
		})
	}
}
