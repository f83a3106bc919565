package onnx

import "dmir/syntax/diag"

// The codes of errors: a valid model that the dialect has no equivalent for, which is
// registered with StableHLO's importer, and a model that is not valid.
const (
	unsupportedCode = "DM140"
	invalidCode     = "DM144"
)

// Codes are the diagnostics of this package.
var Codes = diag.Register([]diag.Code{
	{Code: invalidCode, Name: "invalid-model", Doc: "A model in ONNX cannot be read, or is not valid: the file is cut off, a value is not defined, sizes or types do not fit, or a file of its data is missing or outside of its folder.", Help: "export the model again"},
})
