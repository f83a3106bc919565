package sass

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// listing is nvdisasm's output for two kernels: one with a loop and a slow path in a
// called function, one without.
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
`

func TestHot(t *testing.T) {
	kernels := Parse("no code\n" + listing)
	if len(kernels) != 3 || kernels[0].Name != "scale" || kernels[1].Name != "product" {
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
	if k := (&Kernel{}); len(k.Regions()) != 1 {
		t.Error("a kernel without code has no part")
	}
}
