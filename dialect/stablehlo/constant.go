package stablehlo

import (
	"dmir/dialect/types"
	"dmir/syntax/parse"
)

// denseOf is the constant of a text `dense<…>`, with its type behind it or not.
func denseOf(text string, t *types.Tensor) (*types.Dense, error) {
	x, err := parse.Attr(text)
	if err != nil {
		return nil, invalid("%v", err)
	}
	d, err := types.DenseFromExpr(x, t)
	if err != nil {
		return nil, invalid("%v", err)
	}
	return d, nil
}
