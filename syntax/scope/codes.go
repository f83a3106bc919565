package scope

import "dmir/syntax/diag"

// Codes are all diagnostics about names, in the order of their numbers.
var Codes = diag.Register([]diag.Code{
	undefinedValue, redefinedValue, undefinedBlock, redefinedBlock,
	undefinedSymbol, redefinedSymbol, undefinedAlias, redefinedAlias, noSuchResult,
})

var (
	undefinedValue = diag.Code{
		Code: "DM090", Name: "undefined-value",
		Doc:  "An op uses an SSA value that no visible op, block argument or function argument defines. Values are visible in the region that defines them and in the regions nested there, but not in another function.",
		Help: "define the value before its use, or correct its name",
	}
	redefinedValue = diag.Code{
		Code: "DM091", Name: "redefined-value",
		Doc:  "Two ops or arguments of one region define a value of the same name. In SSA form each name has one definition.",
		Help: "give one of the two another name",
	}
	undefinedBlock = diag.Code{
		Code: "DM092", Name: "undefined-block",
		Doc:  "A branch targets a block that its region does not have. Labels are visible in their own region only.",
		Help: "add the block to the region, or correct the label",
	}
	redefinedBlock = diag.Code{
		Code: "DM093", Name: "redefined-block",
		Doc:  "Two blocks of one region have the same label.",
		Help: "give one of the two another label",
	}
	undefinedSymbol = diag.Code{
		Code: "DM094", Name: "undefined-symbol",
		Doc:  "A call names a function that neither its module nor a module around it defines or declares.",
		Help: "declare the function with func.func private, or correct its name",
	}
	redefinedSymbol = diag.Code{
		Code: "DM095", Name: "redefined-symbol",
		Doc:  "Two ops of one module, or of another op that holds symbols, define the same symbol.",
		Help: "give one of the two another name",
	}
	undefinedAlias = diag.Code{
		Code: "DM096", Name: "undefined-alias",
		Doc:  "An attribute or type alias is used but not defined in its section of the file. A line // ----- begins a new section.",
		Help: "define the alias, #name = attribute or !name = type, above its first use",
	}
	redefinedAlias = diag.Code{
		Code: "DM097", Name: "redefined-alias",
		Doc:  "An attribute or type alias is defined twice in one section of the file.",
		Help: "remove one of the two, or give it another name",
	}
	noSuchResult = diag.Code{
		Code: "DM098", Name: "no-such-result",
		Doc:  "A use like %x#2 picks a result that %x does not have; results are counted from 0.",
		Help: "use a smaller number, or define more results: %x:3 = …",
	}
)
