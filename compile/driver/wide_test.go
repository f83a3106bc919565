package driver

import (
	"strings"
	"testing"

	"dmir/compile/suite"
	"dmir/gpu/artifact"
)

// wide is a program with a value of more elements than 32 bits number, of which it
// gives a few rows; and one that computes those rows alone.
type wide struct {
	name, whole, rows string
	least             int64 // elements of the largest buffer
	most              float64
}

// Rows at the ends, and where 31 and 32 bits end: row 32768 begins at element 2^31.
const wideRows = "0, 1, 32767, 32768, 40000, 65535, 65536, 65663"

var wideTypes = strings.NewReplacer(
	"!x", "tensor<65664x64xf16>", "!few", "tensor<8x64xf16>", "!w", "tensor<64x65536xf16>", "!y", "tensor<65664x65536xf16>", "!r", "tensor<8x65536xf16>",
	"!cols", "tensor<65536xf16>", "!t", "tensor<65536x65664xf16>", "!s", "tensor<8x65664xf16>", "IDS", "%ids = dm.constant dense<["+wideRows+"]> : tensor<8xi64>",
	"TURNED", "%ids = dm.constant dense<[0, 1, 32703, 32704, 40000, 65534, 65535, 65535]> : tensor<8xi64>",
	"!some", "tensor<64x8xf16>", "!k", "tensor<64xf16>",
)

// looped is a loop over a value of type @, with a kernel of one element-wise op in it.
const looped = `  %zero = dm.constant dense<0> : tensor<i64>
  %n, %z = dm.while %zero, %y, trip_count = 2 : (tensor<i64>, @) -> (tensor<i64>, @) {
  ^bb0(%i: tensor<i64>, %v: @):
    %two = dm.constant dense<2> : tensor<i64>
    %more = dm.compare lt %i, %two : (tensor<i64>, tensor<i64>) -> tensor<i1>
    dm.yield %more : tensor<i1>
  } do {
  ^bb0(%i: tensor<i64>, %v: @):
    %one = dm.constant dense<1> : tensor<i64>
    %next = dm.add %i, %one : tensor<i64>
    %u = dm.tanh %v : @
    dm.yield %next, %u : tensor<i64>, @
  }
`

var widePrograms = []wide{
	{name: "product", least: 1 << 32, whole: `func.func @f(%x: !x, %w: !w) -> !r {
  IDS
  %y = dm.matmul %x, %w : (!x, !w) -> !y
  %r = dm.embedding %y, %ids : (!y, tensor<8xi64>) -> !r
  return %r : !r
}`, rows: `func.func @f(%x: !x, %w: !w) -> !r {
  IDS
  %few = dm.embedding %x, %ids : (!x, tensor<8xi64>) -> !few
  %r = dm.matmul %few, %w : (!few, !w) -> !r
  return %r : !r
}`},
	{name: "softmax", least: 1 << 32, whole: `func.func @f(%x: !x, %w: !w) -> !r {
  IDS
  %y = dm.matmul %x, %w : (!x, !w) -> !y
  %s = dm.softmax %y, dim = 1 : !y
  %r = dm.embedding %s, %ids : (!y, tensor<8xi64>) -> !r
  return %r : !r
}`, rows: `func.func @f(%x: !x, %w: !w) -> !r {
  IDS
  %few = dm.embedding %x, %ids : (!x, tensor<8xi64>) -> !few
  %y = dm.matmul %few, %w : (!few, !w) -> !r
  %r = dm.softmax %y, dim = 1 : !r
  return %r : !r
}`},
	{name: "columns", least: 1 << 32, most: 0.02, whole: `func.func @f(%x: !x, %w: !w) -> (!cols, !r) {
  IDS
  %y = dm.matmul %x, %w : (!x, !w) -> !y
  %c = dm.reduce add %y, dims = [0] : (!y) -> !cols
  %r = dm.embedding %y, %ids : (!y, tensor<8xi64>) -> !r
  return %c, %r : !cols, !r
}`, rows: `func.func @f(%x: !x, %w: !w) -> (!cols, !r) {
  IDS
  %all = dm.reduce add %x, dims = [0] : (!x) -> !k
  %c = dm.einsum "k,kn->n" %all, %w : (!k, !w) -> !cols
  %few = dm.embedding %x, %ids : (!x, tensor<8xi64>) -> !few
  %r = dm.matmul %few, %w : (!few, !w) -> !r
  return %c, %r : !cols, !r
}`},
	{name: "loop", least: 1 << 32, whole: `func.func @f(%x: !x, %w: !w) -> !r {
  IDS
  %y = dm.matmul %x, %w : (!x, !w) -> !y
` + strings.ReplaceAll(looped, "@", "!y") + `  %r = dm.embedding %z, %ids : (!y, tensor<8xi64>) -> !r
  return %r : !r
}`, rows: `func.func @f(%x: !x, %w: !w) -> !r {
  IDS
  %few = dm.embedding %x, %ids : (!x, tensor<8xi64>) -> !few
  %y = dm.matmul %few, %w : (!few, !w) -> !r
` + strings.ReplaceAll(looped, "@", "!r") + `  return %z : !r
}`},
	{name: "transpose", least: 1 << 32, whole: `func.func @f(%x: !x, %w: !w) -> !s {
  TURNED
  %y = dm.matmul %x, %w : (!x, !w) -> !y
  %t = dm.transpose %y, dims = [1, 0] : (!y) -> !t
  %s = dm.softmax %t, dim = 1 : !t
  %r = dm.embedding %s, %ids : (!t, tensor<8xi64>) -> !s
  return %r : !s
}`, rows: `func.func @f(%x: !x, %w: !w) -> !s {
  TURNED
  %wt = dm.transpose %w, dims = [1, 0] : (!w) -> tensor<65536x64xf16>
  %few = dm.embedding %wt, %ids : (tensor<65536x64xf16>, tensor<8xi64>) -> !few
  %t = dm.einsum "rk,mk->rm" %few, %x : (!few, !x) -> !s
  %s = dm.softmax %t, dim = 1 : !s
  return %s : !s
}`},
	// Each of 16384 batches is the same, so the last one is as the only one.
	{name: "attention", least: 1 << 31, most: 0.01, whole: strings.NewReplacer("!qkv", "tensor<16384x8x128x128xf16>", "!one", "tensor<1x8x128x8xf16>", "!many", "tensor<16384x8x128x8xf16>",
		"!y", "tensor<16777216x128xf16>", "!r", "tensor<4x128xf16>").Replace(`func.func @f(%x: !one, %w: tensor<128x8xf16>) -> !r {
  %ids = dm.constant dense<[0, 1000, 16776192, 16777192]> : tensor<4xi64>
  %m = dm.broadcast %x, dims = [0, 1, 2, 3] : (!one) -> !many
  %q = dm.einsum "bhlk,pk->bhlp" %m, %w : (!many, tensor<128x8xf16>) -> !qkv
  %a = dm.attention %q, %q, %q : (!qkv, !qkv, !qkv) -> !qkv
  %y = dm.reshape %a : (!qkv) -> !y
  %r = dm.embedding %y, %ids : (!y, tensor<4xi64>) -> !r
  return %r : !r
}`), rows: strings.NewReplacer("!qkv", "tensor<1x8x128x128xf16>", "!one", "tensor<1x8x128x8xf16>", "!y", "tensor<1024x128xf16>", "!r", "tensor<4x128xf16>").Replace(`func.func @f(%x: !one, %w: tensor<128x8xf16>) -> !r {
  %ids = dm.constant dense<[0, 1000, 0, 1000]> : tensor<4xi64>
  %q = dm.einsum "bhlk,pk->bhlp" %x, %w : (!one, tensor<128x8xf16>) -> !qkv
  %a = dm.attention %q, %q, %q : (!qkv, !qkv, !qkv) -> !qkv
  %y = dm.reshape %a : (!qkv) -> !y
  %r = dm.embedding %y, %ids : (!y, tensor<4xi64>) -> !r
  return %r : !r
}`)},
}

// Programs whose values have more elements than 32 bits number are built, with
// such a value in memory; no machine without a card runs them. The device suite
// does, where a card has the memory.
func TestWide(t *testing.T) {
	t.Parallel()
	for _, c := range widePrograms {
		t.Run(c.name, func(t *testing.T) {
			p := loaded(t, c.name+".dmir", wideTypes.Replace(c.whole))
			m, fn, err := Pick(p, "")
			if err != nil {
				t.Fatal(err)
			}
			build := builderOf(m, fn, nil)
			for _, arch := range archs {
				built, err := build(arch)
				if err != nil {
					t.Fatal(err)
				}
				if err := built.Check(); err != nil {
					t.Fatal(err)
				}
				t.Logf("%s: %d kernels, %.1f GB", arch, len(built.Kernels), float64(built.Workspace)/1e9)
				if n := largest(built); n < c.least {
					t.Errorf("%s: the largest value in memory has %d elements", arch, n)
				}
			}
			if _, _, ok := suite.Recording(); !ok {
				return
			}
			few := loaded(t, "rows.dmir", wideTypes.Replace(c.rows))
			m, fn, err = Pick(few, "")
			if err != nil {
				t.Fatal(err)
			}
			args, want, err := suite.Reference(t.Context(), m, fn, nil, nil)(7)
			if err != nil {
				t.Fatal(err)
			}
			suite.Record(t, 7, suite.Source{Class: "wide", Build: build, Args: args, Want: want, Within: func(i int) suite.Within {
				return suite.Within{Most: max(c.most, tolerance(want[i])), Scaled: true}
			}})
		})
	}
}

// largest is the elements of the largest buffer.
func largest(p *artifact.Program) (most int64) {
	for i := range p.Buffers {
		n, _ := p.Buffers[i].Len()
		most = max(most, n)
	}
	return most
}
