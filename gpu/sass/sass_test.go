package sass

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// listing is nvdisasm's output for kernels: with a loop and a slow path in a called function, without any, with
// a switch, and with a wait that is repeated behind the end.
const listing = `	.target	sm_90a
//--------------------- .text.scale               --------------------------
	.section	.text.scale,"ax",@progbits
        .global         scale
scale:
.text.scale:
        /*0000*/                   S2R R5, SR_TID.X ;
        /*0010*/              @P0  EXIT ;
.L_x_1:
        /*0020*/                   LDG.E.128.CONSTANT R4, desc[UR4][R2.64] ;
        /*0030*/                   LDG.E.U16 R8, desc[UR4][R2.64+0x10] ;
        /*0040*/                   IMAD.WIDE.U32 R2, R5, 0x4, R2 ;
        /*0050*/                   MUFU.EX2 R4, R4 ;
        /*0060*/                   MUFU.EX2 R5, R5 ;
        /*0070*/                   IADD3.X R3, R3, RZ, RZ, P1, !PT ;
        /*0080*/             @!P2  BRA ` + "`(.L_x_2)" + ` ;
        /*0090*/                   CALL.REL.NOINC ` + "`($scale$slow)" + ` ;
.L_x_2:
        /*00a0*/                   STG.E.64 desc[UR4][R2.64], R4 ;
        /*00b0*/              @P0  BRA ` + "`(.L_x_1)" + ` ;
        /*00c0*/                   EXIT ;
$scale$slow:
        /*00d0*/                   DADD R4, R4, R4 ;
        /*00e0*/                   RET.REL.NODEC R2 ` + "`(scale)" + ` ;
.L_x_3:
        /*00f0*/                   BRA ` + "`(.L_x_3)" + `;
        /*0100*/                   NOP;
.text.product:
        /*0000*/                   UTMALDG.2D [UR8], [UR4], desc[UR6] ;
        /*0010*/                   HGMMA.64x256x16.F32 R24, gdesc[UR8], R24 ;
        /*0020*/                   LDL R1, [R1] ;
        /*0030*/                   STG.E desc[UR4][R2.64], R24 ;
        /*0040*/                   EXIT ;
.text.switch:
        /*0000*/                   MOV R10, RZ ;
.L_x_1:
        /*0010*/                   ISETP.NE.AND P5, PT, R10.reuse, RZ, PT ;
        /*0020*/                   ISETP.NE.AND P6, PT, R10, 0x1, PT ;
        /*0030*/               @P5 BRA ` + "`(.L_x_2)" + ` ;
        /*0040*/                   STS.64 [R8], R24 ;
.L_x_2:
        /*0050*/               @P6 BRA ` + "`(.L_x_3)" + ` ;
        /*0060*/                   STS.64 [R8], R26 ;
        /*0070*/                   STS.64 [R8+0x8], R28 ;
.L_x_3:
        /*0080*/                   STG.E.128 desc[UR4][R2.64], R4 ;
        /*0090*/                   VIADD R10, R10, 0x1 ;
        /*00a0*/                   ISETP.NE.AND P0, PT, R10, 0x2, PT ;
        /*00b0*/               @P0 BRA ` + "`(.L_x_1)" + ` ;
        /*00c0*/                   EXIT ;
.text.waits:
        /*0000*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4+0x8], R11 ;
        /*0010*/              @!P0 BRA ` + "`(.L_x_4)" + ` ;
.L_x_3:
        /*0020*/                   HGMMA.64x256x16.F32 R24, gdesc[UR8], R24 ;
        /*0030*/                   STG.E desc[UR4][R2.64], R24 ;
        /*0040*/                   EXIT ;
.L_x_4:
        /*0050*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4+0x8], R11 ;
        /*0060*/              @!P0 BRA ` + "`(.L_x_4)" + ` ;
        /*0070*/                   BRA ` + "`(.L_x_3)" + ` ;
`

func TestHot(t *testing.T) {
	kernels := Parse("no code\n" + listing)
	if len(kernels) != 4 || kernels[0].Name != "scale" || kernels[1].Name != "product" {
		t.Fatalf("kernels %+v", kernels)
	}
	region, c := kernels[0].Hot()
	if want := (Region{From: 2, To: 12, Depth: 1}); region != want {
		t.Errorf("the hot part is %+v, want %+v", region, want)
	}
	// Two of 16 a clock take as long as 16 of 128 do.
	if d := cmp.Diff(Counts{Instrs: 10, Slots: 16, Pipe: "xu", Bytes: 26, Vector: 16, Wide: 1}, c); d != "" {
		t.Error(d)
	}
	if all := kernels[0].Count(kernels[0].Regions()[0]); all.Instrs != 13 || all.Float64 != 0 {
		t.Errorf("all of it: %+v, want 13 instructions and none of what is called", all)
	}
	region, c = kernels[1].Hot()
	if d := cmp.Diff(Counts{Instrs: 5, Slots: 8, Pipe: "lsu", Bytes: 4, Tensor: 1, Bulk: 1, Local: 1}, c); d != "" || region.Depth != 0 {
		t.Errorf("%+v: %s", region, d)
	}
	// The labels are those of another kernel too, since kernels are compiled alone. A turn of the loop takes one arm.
	region, c = kernels[2].Hot()
	if d := cmp.Diff(Counts{Instrs: 10, Slots: 12, Pipe: "lsu", Bytes: 16, Vector: 16}, c); d != "" || region != (Region{From: 1, To: 12, Depth: 1}) {
		t.Errorf("%+v: %s", region, d)
	}
	// What waits again behind the end of the kernel is a loop, and the way back from there is none.
	if d := cmp.Diff([]Region{{0, 8, 0}, {5, 7, 1}}, kernels[3].Regions()); d != "" {
		t.Error(d)
	}
	if region, c = kernels[3].Hot(); region.Depth != 0 || c.Instrs != 8 {
		t.Errorf("the hot part is %+v with %d instructions, want the whole kernel", region, c.Instrs)
	}
	// On an A100 what takes four of 128 slots on the lanes of multiply-adds is two of f32 and two of integers.
	early := Parse("\t.target\tsm_80\n.text.sum:\n" + strings.Repeat("/*0000*/ FFMA R1, R1, R1, R1 ;\n/*0010*/ IMAD R1, R1, R1, R1 ;\n", 2) + "/*0020*/ EXIT ;\n")[0]
	if d := cmp.Diff(Counts{Instrs: 5, Slots: 8, Pipe: "fma"}, early.Count(early.Regions()[0])); d != "" || early.Arch != "sm_80" {
		t.Error(early.Arch, d)
	}
	if k := (&Kernel{}); len(k.Regions()) != 1 {
		t.Error("a kernel without code has no part")
	}
}
