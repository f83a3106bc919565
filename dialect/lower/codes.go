package lower

import "dmir/syntax/diag"

// Codes are the diagnostics of this package, in the order of their numbers.
var Codes = diag.Register([]diag.Code{
	{Code: "DM160", Name: "unknown-value", Doc: "An operand names a value that is not defined, or not visible here: a function cannot use values from outside, and the values of a region are not visible after it. Or `%x#2` picks a result that `%x` does not have; results are counted from 0.", Help: "define the value before its use, or correct the name"},
	{Code: "DM161", Name: "redefined-value", Doc: "A value name is defined twice where both are visible. Every name is assigned once.", Help: "give one of them another name"},
	{Code: "DM162", Name: "used-before-definition", Doc: "A value is used by an op that stands before its definition.", Help: "move the definition up"},
	{Code: "DM163", Name: "signature-count", Doc: "The number of types after the colon differs from the number of operands or results.", Help: "write one type for every operand and every result"},
	{Code: "DM164", Name: "type-mismatch", Doc: "An operand is written with another type than the value was defined with.", Help: "correct the type after the colon, or convert the value"},
	{Code: "DM165", Name: "missing-types", Doc: "The op has results, but their types are not written.", Help: "add `: (operand types) -> result types`"},
	{Code: "DM167", Name: "unknown-dialect", Doc: "The op belongs to a dialect that dmir does not know. It is kept as it is, and nothing is known about its cost.", Help: ""},
	{Code: "DM168", Name: "unknown-attribute", Doc: "The op has no attribute of this name.", Help: "see the op's documentation for its attributes"},
	{Code: "DM172", Name: "unexpected-lead", Doc: "There is text between the op's name and its operands, but this op has no attribute that is written there.", Help: "write attributes as clauses after the operands: `, name = value`"},
	{Code: "DM174", Name: "bad-function", Doc: "A function has no name, or its type does not match its body.", Help: "write `func.func @name(%arg: type) -> type { … }`"},
})
