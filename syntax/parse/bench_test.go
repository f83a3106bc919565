package parse

import (
	"fmt"
	"strings"
	"testing"

	"dmir/syntax/source"
)

// genericOps is a function of n generic ops of about 160 bytes each.
func genericOps(n int) string {
	var b strings.Builder
	b.WriteString("func.func @f(%arg0: tensor<8x512x1024xf16>) {\n")
	for i := range n {
		fmt.Fprintf(&b, "  %%%d = \"dm.add\"(%%arg0, %%arg0) {dm.note = \"n%d\", k = 1 : i64} : (tensor<8x512x1024xf16>, tensor<8x512x1024xf16>) -> tensor<8x512x1024xf16> loc(\"a.py\":%d:3)\n", i, i%7, i)
	}
	b.WriteString("  return\n}\n")
	return b.String()
}

func prettyOps(n int) string {
	var b strings.Builder
	b.WriteString("func.func @f(%arg0: tensor<8x512x1024xf16>) {\n")
	for i := range n {
		fmt.Fprintf(&b, "  %%%d = dm.transpose %%arg0, dims = [0, 2, 1] : (tensor<8x512x1024xf16>) -> tensor<8x1024x512xf16>\n", i)
	}
	b.WriteString("  return\n}\n")
	return b.String()
}

func customOps(n int) string {
	var b strings.Builder
	b.WriteString("func.func @f(%arg0: tensor<8x512x1024xf16>) {\n")
	for i := range n {
		fmt.Fprintf(&b, "  %%%d = linalg.matmul ins(%%arg0, %%arg0 : tensor<8x512x1024xf16>, tensor<8x512x1024xf16>) outs(%%arg0 : tensor<8x512x1024xf16>) -> tensor<8x512x1024xf16>\n", i)
	}
	b.WriteString("  return\n}\n")
	return b.String()
}

func benchFile(b *testing.B, text string, n int) {
	src := source.New("bench", text)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if f := File(src); len(f.Diags) > 0 {
			b.Fatal(f.Diags[0])
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}

func BenchmarkFileGeneric(b *testing.B) { benchFile(b, genericOps(10_000), 10_000) }
func BenchmarkFilePretty(b *testing.B)  { benchFile(b, prettyOps(10_000), 10_000) }
func BenchmarkFileCustom(b *testing.B)  { benchFile(b, customOps(10_000), 10_000) }

// BenchmarkSplice puts a change of one op into the tree.
func BenchmarkSplice(b *testing.B) {
	const n = 10_000
	src := source.New("bench", prettyOps(n))
	at := strings.LastIndex(src.Text(), "dims = [0") + len("dims = [")
	f := File(src)
	b.ReportAllocs()
	for b.Loop() {
		next := src.Edit(at, at+1, "1")
		p, ok := Replan(f, next, Change{Start: at, End: at + 1, Length: 1})
		if !ok {
			b.Fatal("the change was not understood")
		}
		p.Apply(f)
		src = next
	}
}

func BenchmarkSignature(b *testing.B) {
	for b.Loop() {
		if _, err := Signature("(tensor<8x512x1024xf16>, tensor<8x512x1024xf16>) -> tensor<8x512x1024xf16>"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTypeNew reads types that were not seen before.
func BenchmarkTypeNew(b *testing.B) {
	i := 0
	for b.Loop() {
		i++
		if _, err := Type(fmt.Sprintf("tensor<8x%dx1024xf16, #dm.at<hbm>>", i)); err != nil {
			b.Fatal(err)
		}
	}
}
