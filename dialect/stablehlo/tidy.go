package stablehlo

import "dmir/dialect/ir"

// tidy removes from a block what the conversion left without use.
func tidy(b *ir.Block) {}
