package op

import (
	"dmir/dialect/dim"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

func kernels() []*Def { return []*Def{kernelDef, yieldDef} }

var kernelDef = &Def{
	Name: "kernel", Family: Kernels, Class: ClassElementwise,
	Summary: "ops that run as one device kernel",
	Doc: "The ops inside run as one kernel: they use values from outside by name, and `dm.yield` gives the results. To fuse by hand is to wrap lines in `dm.kernel`; what is computed stays the same.\n\n" +
		"Only what crosses its edge moves: each value from outside is read once in full or, if only slice-like ops use it, as far as these touch it; what is yielded is written. Constants and everything else inside move nothing. " +
		"Counts the FLOP of the ops inside; its class is that of its strongest op: contraction, normalization, element-wise, movement.\n\n" +
		"In a function that one device of a mesh runs, a kernel that holds nothing but all-reduces, reduce-scatters or all-gathers, of one reduction, element type and set of axes, none of which reads what another gives, is a bucket: devices run them as one, and the latency of their links is taken once.",
	Example: `func.func @example(%x: tensor<2x4xf32>, %b: tensor<4xf32>) -> tensor<2x4xf32> {
  %y = dm.kernel -> tensor<2x4xf32> {
    %0 = dm.add %x, %b : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    %1 = dm.relu %0 : tensor<2x4xf32>
    dm.yield %1 : tensor<2x4xf32>
  }
  return %y : tensor<2x4xf32>
}`,
	Results: []Param{{Name: "results", Elems: storable, Variadic: true, Doc: "what the region yields"}},
	Regions: []RegionDef{{Name: "body", Doc: "takes nothing, yields the results"}},
	Traits:  Pure,
	Infer:   func(o *ir.Op) ([]types.Type, *Problem) { return yielded(o, 0) },
	Verify:  func(o *ir.Op) *Problem { return regionProblem(o, 0, nil, nil) },
	FLOP: func(o *ir.Op) dim.Dim {
		if len(o.Regions) == 0 {
			return dim.Dim{}
		}
		return bodyFLOP(o.Regions[0])
	},
	Traffic: func(o *ir.Op) ([]dim.Dim, dim.Dim) {
		return make([]dim.Dim, len(o.Operands)), resultBytes(o)
	},
	Kernel: Structure,
}

var yieldDef = &Def{
	Name: "yield", Family: Kernels, Class: ClassMovement,
	Summary: "the results of a region",
	Doc:     "Ends every region of the dialect's ops. It moves nothing by itself: what a kernel yields is written by the kernel.",
	Example: `func.func @example(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = dm.kernel -> tensor<4xf32> {
    %0 = dm.exp %x : tensor<4xf32>
    dm.yield %0 : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}`,
	Operands: []Param{{Name: "values", Variadic: true, Doc: "of the types that the op around it expects"}},
	Traits:   Terminator,
	Infer:    func(*ir.Op) ([]types.Type, *Problem) { return nil, nil },
	Traffic: func(o *ir.Op) ([]dim.Dim, dim.Dim) {
		return make([]dim.Dim, len(o.Operands)), dim.Dim{}
	},
	Kernel: Structure,
}
