package interp

import (
	"context"

	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// Literals are the results of a function without arguments as constants.
func Literals(ctx context.Context, f *ir.Func) ([]*types.Dense, error) {
	res, err := Run(ctx, &ir.Module{}, f, nil, Options{Threads: 1})
	if err != nil {
		return nil, err
	}
	out := make([]*types.Dense, len(res.Outputs))
	for i, t := range res.Outputs {
		out[i] = types.DenseOf(f.Results[i].(*types.Tensor), tensor.Pack(t))
	}
	return out, nil
}
