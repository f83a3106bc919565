package cuda

import (
	"testing"

	"dmir/compile/kernel"
	"dmir/gpu/artifact"
)

// What a planner is told that a kernel hands on in memory is what its launches
// do hand on.
func TestHanded(t *testing.T) {
	for _, c := range []struct{ name, args, body, results string }{
		{"elements", "%x: tensor<64x32xf32>", "%1 = dm.exp %x : tensor<64x32xf32>", "%1 : tensor<64x32xf32>"},
		{"rows", "%x: tensor<4096x64xf16>", "%1 = dm.softmax %x : tensor<4096x64xf16>", "%1 : tensor<4096x64xf16>"},
		{"few columns of many rows", "%x: tensor<65536x64xf16>", "%1 = dm.reduce add %x, dims = [0] : (tensor<65536x64xf16>) -> tensor<64xf16>", "%1 : tensor<64xf16>"},
		{"many columns of few rows", "%x: tensor<16x65536xf32>", "%1 = dm.reduce max %x, dims = [0] : (tensor<16x65536xf32>) -> tensor<65536xf32>", "%1 : tensor<65536xf32>"},
		{"all of a tensor", "%x: tensor<2048x4096xf32>", "%1 = dm.reduce add %x, dims = [0, 1] : (tensor<2048x4096xf32>) -> tensor<f32>", "%1 : tensor<f32>"},
		{"columns of normalised rows", "%x: tensor<4096x1024xf32>", "%0 = dm.softmax %x : tensor<4096x1024xf32>\n%1 = dm.reduce add %0, dims = [0] : (tensor<4096x1024xf32>) -> tensor<1024xf32>", "%1 : tensor<1024xf32>"},
		{"more columns than registers hold", "%x: tensor<2048x32768xf32>", "%0 = dm.softmax %x : tensor<2048x32768xf32>\n%1 = dm.reduce add %0, dims = [0] : (tensor<2048x32768xf32>) -> tensor<32768xf32>", "%0, %1 : tensor<2048x32768xf32>, tensor<32768xf32>"},
		{"a total of rows", "%x: tensor<4096x512xf32>", "%0 = dm.reduce add %x, dims = [1] : (tensor<4096x512xf32>) -> tensor<4096xf32>\n%2 = dm.sqrt %0 : tensor<4096xf32>\n%1 = dm.reduce max %2, dims = [0] : (tensor<4096xf32>) -> tensor<f32>", "%2, %1 : tensor<4096xf32>, tensor<f32>"},
		{"folds behind a product", "%x: tensor<512x256xf16>, %w: tensor<256x384xf16>", "%0 = dm.matmul %x, %w : (tensor<512x256xf16>, tensor<256x384xf16>) -> tensor<512x384xf16>\n%1 = dm.reduce add %0, dims = [0] : (tensor<512x384xf16>) -> tensor<384xf16>", "%0, %1 : tensor<512x384xf16>, tensor<384xf16>"},
	} {
		for _, arch := range []string{"sm_80", "sm_90a"} {
			fn := module(t, productCase{name: c.name, args: c.args, body: c.body, out: c.results}).Funcs[0]
			f, err := kernel.Of(fn.Body.Ops[:len(fn.Body.Ops)-1], fn.Body.Terminator().Operands)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			target := targetOf(t, arch)
			p, err := target.plan(f, options{})
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			ls, err := p.launches()
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			var want int64
			for _, l := range ls {
				for _, p := range l.params {
					if p.temp == nil {
						continue
					}
					times := int64(1)
					if p.mode == artifact.InOut {
						times = 2
					}
					want += times * p.temp.bytes()
				}
			}
			if got := target.partialBytes(f); got != want {
				t.Errorf("%s, %s: %d bytes, its %d launches hand on %d", c.name, arch, got, len(ls), want)
			}
		}
	}
}
