package verify_test

import (
	"fmt"
	"strings"
	"testing"

	"dmir/dialect/lower"
	"dmir/dialect/verify"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// chain is a function of n ops of a few kinds.
func chain(n int) string {
	var b strings.Builder
	b.WriteString("func.func @f(%x: tensor<8x512x1024xf16>, %w: tensor<1024x1024xf16>) -> tensor<8x512x1024xf16> {\n")
	last := "%x"
	for i := range n {
		switch i % 4 {
		case 0:
			fmt.Fprintf(&b, "  %%v%d = dm.einsum \"bln,nu->blu\" %s, %%w : (tensor<8x512x1024xf16>, tensor<1024x1024xf16>) -> tensor<8x512x1024xf16>\n", i, last)
		case 1:
			fmt.Fprintf(&b, "  %%v%d = dm.add %s, %%x : tensor<8x512x1024xf16>\n", i, last)
		case 2:
			fmt.Fprintf(&b, "  %%v%d = dm.softmax %s, dim = 2 : tensor<8x512x1024xf16>\n", i, last)
		case 3:
			fmt.Fprintf(&b, "  %%v%d = dm.relu %s : tensor<8x512x1024xf16>\n", i, last)
		}
		last = fmt.Sprintf("%%v%d", i)
	}
	fmt.Fprintf(&b, "  return %s : tensor<8x512x1024xf16>\n}\n", last)
	return b.String()
}

// BenchmarkLower and BenchmarkVerify measure 100,000 ops.
func BenchmarkLower(b *testing.B) {
	f := parse.File(source.New("bench.dmir", chain(100_000)))
	b.ReportAllocs()
	for b.Loop() {
		lower.File(f)
	}
}

func BenchmarkVerify(b *testing.B) {
	m := lower.File(parse.File(source.New("bench.dmir", chain(100_000))))[0]
	b.ReportAllocs()
	for b.Loop() {
		if ds := verify.Module(m); len(ds) > 0 {
			b.Fatal(ds[0].Message)
		}
	}
}
