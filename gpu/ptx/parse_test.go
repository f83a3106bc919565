package ptx

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tokensOf are the tokens of a text.
func tokensOf(t testing.TB, text string) (out []string) {
	t.Helper()
	s := scanner{text: text, line: 1}
	for {
		k, err := s.next()
		if err != nil {
			t.Fatal(err)
		}
		if k.kind == 0 {
			return out
		}
		out = append(out, k.text)
	}
}

// roundTrip checks that a module printed has the tokens of its text.
func roundTrip(t testing.TB, text string) {
	t.Helper()
	m, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	printed := m.String()
	want, got := tokensOf(t, text), tokensOf(t, printed)
	// An empty statement is not kept.
	if !slices.Equal(want, got) && !strings.Contains(text, ";;") {
		t.Errorf("printed, it has other tokens:\n%s", printed)
	}
	again, err := Parse(printed)
	if err != nil {
		t.Fatalf("%v in:\n%s", err, printed)
	}
	if again.String() != printed {
		t.Errorf("printed again, it is another text")
	}
}

// forms has one of each form that NVRTC writes.
const forms = `// a comment
.version 9.5
.target sm_90a, debug
.address_size 64
	// .globl	k
.global .align 4 .u32 g = 128;
.global .align 4 .b8 h[8] = {1, 2, 3, 255, 0, 0, 0, 0};
.extern .shared .align 16 .b8 dyn[];
.extern .func  (.param .b32 r) vprintf (.param .b64 a, .param .b64 b) ;
.visible .entry k(.param .u64 k_0, .param .align 128 .b8 k_1[128])
.maxntid 384, 1, 1
.minnctapersm 1
{
	.local .align 8 .b8 depot[16];
	.reg .pred %p<3>;
	.reg .b32 %r<9>, %q;
	.reg .f32 %f<9>;
	.pragma "nounroll";
	.loc	1 4 3
	.loc	2 48 3, function_name $L__info_string0, inlined_at 1 4 3
	.loc	2 48 3, function_name $L__info_string0+12, inlined_at 1 4 3
	ld.param.u64 	%rd8, [k_0];
	mov.u32 %r1, %tid.x; mov.f32 %f1, 0f3F800000;
	setp.ne.s32 %p1|%p2, %r1, -1;
	@!%p1 bra $L__BB0_2;
	ld.global.nc.L1::no_allocate.v4.u32 {%r1, %r2, %r3, %r4}, [%rd8+-16];
	st.shared.u32 [dyn+4], %r1;
	mov.u32 %r1, dyn+8;
	/* two
	lines */ selp.b32 %r1, 0, 0x1F, !%p1;
	{ // callseq
	.param .b64 param0;
	.reg .pred done;
	call.uni (retval0), vprintf, (param0, param1);
again:
	mbarrier.try_wait.parity.shared::cta.b64 done, [%r1], %r2;
	@!done bra again;
	}
$L__BB0_2:
	cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd8, {%r3, %r4}], [%r2];
	ret;
}
	.file	1 "a.dmir"
	.section	.debug_str
	{
$L__info_string0:
.b8 95,90,0
	}
`

func TestForms(t *testing.T) {
	roundTrip(t, forms)
	for name := range launchOf {
		roundTrip(t, kernelText(t, name))
	}
}

// What is wrong with a text, and where.
func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"x":                                            `1:1: a directive is expected, not "x"`,
		".version 9.5\n.entry":                         "2:7: the name of a function is expected",
		".entry k() {\n  add.s32 %r1, %r2\n}":          `3:1: a semicolon is expected, not "}"`,
		".entry k() {\n  ld [}":                        `2:7: an address is expected, not "}"`,
		".entry k() {\n  add é;":                       `2:7: "é" means nothing here`,
		".entry k() {\n":                               "2:1: an instruction is expected, not the end of the text",
		".entry k() { .reg .b32 %r<99999999>; }":       "1:27: 99999999 registers are not possible",
		"/* no end":                                    "1:1: the comment has no end",
		".file 1 \"no end\n":                           "1:9: the string has no end",
		".entry k() { bra L; }":                        "1:14: the label L is not defined",
		".entry k() { @%p bra L; L: }":                 "1:14: the register %p is not declared",
		".entry k() {\n\tmbarrier.init.b64 [0]; }":     "2:2: mbarrier.init.b64 with 1 operands",
		".entry k() " + strings.Repeat("{", 100):       "1:77: more than 64 levels",
		".entry k() { add " + strings.Repeat("{", 100): "1:81: more than 64 levels",
		".section .debug {\n.b8 1":                     "2:6: the section has no end",
	} {
		m, err := Parse(text)
		if err == nil {
			_, err = Check(m, nil)
		}
		var at *Error
		if !errors.As(err, &at) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

// A text of any kind gives a report or an error, and what Parse takes survives printing.
func FuzzCheck(f *testing.F) {
	f.Add(forms)
	paths, err := filepath.Glob("testdata/*.ptx")
	if err != nil || len(paths) == 0 {
		f.Fatal("no kernels", err)
	}
	for _, p := range paths {
		text, err := os.ReadFile(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	for _, p := range mistakes {
		f.Add(replaced(f, kernelText(f, p.kernel), p.old, p.new, p.n))
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Parse(text)
		if err != nil {
			var at *Error
			if !errors.As(err, &at) || at.Line < 1 || at.Col < 1 {
				t.Fatalf("no place: %v", err)
			}
			return
		}
		printed := m.String()
		again, err := Parse(printed)
		if err != nil {
			t.Fatalf("%v in:\n%s", err, printed)
		}
		if again.String() != printed {
			t.Error("printed again, it is another text")
		}
		launches := map[string][]Launch{}
		for _, fn := range m.Funcs() {
			l := launchOf["ring"]
			l.Grid = [3]int{1, 1, 1}
			launches[fn.Name] = []Launch{l}
		}
		check(m, launches, 1<<12)
	})
}
