package scope

// Code explains one kind of diagnostic of this package.
type Code struct {
	Code string // "DM090"
	Name string // "undefined-value"
	Doc  string // what it means
	Help string // what to do about it
}

// Codes are all diagnostics about names, in the order of their numbers.
var Codes = []Code{
	undefinedValue, redefinedValue, undefinedBlock, redefinedBlock,
	undefinedSymbol, redefinedSymbol, undefinedAlias, redefinedAlias, noSuchResult,
}

var (
	undefinedValue = Code{
		"DM090", "undefined-value",
		"An op uses an SSA value that no op, block or function argument in its reach defines. Values are visible in the region that defines them and in the regions nested there, but not in another function.",
		"define the value before its use, or correct its name",
	}
	redefinedValue = Code{
		"DM091", "redefined-value",
		"Two ops or arguments of one region define a value of the same name. In SSA form each name has one definition.",
		"give one of the two another name",
	}
	undefinedBlock = Code{
		"DM092", "undefined-block",
		"A branch leads to a block that its region does not have. Labels are visible in their own region only.",
		"add the block to the region, or correct the label",
	}
	redefinedBlock = Code{
		"DM093", "redefined-block",
		"Two blocks of one region have the same label.",
		"give one of the two another label",
	}
	undefinedSymbol = Code{
		"DM094", "undefined-symbol",
		"A call names a function that neither its module nor a module around it defines or declares.",
		"declare the function with func.func private, or correct its name",
	}
	redefinedSymbol = Code{
		"DM095", "redefined-symbol",
		"Two ops of one module, or of another op that holds symbols, define the same symbol.",
		"give one of the two another name",
	}
	undefinedAlias = Code{
		"DM096", "undefined-alias",
		"An attribute or type alias is used but not defined in its section of the file. A line // ----- begins a new section.",
		"define the alias, #name = attribute or !name = type, above its first use",
	}
	redefinedAlias = Code{
		"DM097", "redefined-alias",
		"An attribute or type alias is defined twice in one section of the file.",
		"remove one of the two, or give it another name",
	}
	noSuchResult = Code{
		"DM098", "no-such-result",
		"A use like %x#2 picks a result that %x does not have; results are counted from 0.",
		"use a smaller number, or define more results: %x:3 = …",
	}
)
