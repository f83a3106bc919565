package op

// The full names of the ops that give a program its structure: functions, what
// calls, groups and orders other ops, and constants. Code that builds or walks
// programs names these; what else it must know of an op, it asks the op's entry.
const (
	Module   = "builtin.module"
	Func     = "func.func"
	Call     = "func.call"
	Return   = "func.return"
	Constant = Prefix + "constant"
	Empty    = Prefix + "empty"
	Bitcast  = Prefix + "bitcast"
	Grad     = Prefix + "grad"
	If       = Prefix + "if"
	Kernel   = Prefix + "kernel"
	Map      = Prefix + "map"
	Scan     = Prefix + "scan"
	Pack     = Prefix + "pack"
	Unpack   = Prefix + "unpack"
	While    = Prefix + "while"
	Yield    = Prefix + "yield"

	Mesh        = Prefix + "mesh"
	Reshard     = Prefix + "reshard"
	PartitionID = Prefix + "partition_id"

	AllReduce         = Prefix + "all_reduce"
	ReduceScatter     = Prefix + "reduce_scatter"
	AllGather         = Prefix + "all_gather"
	AllToAll          = Prefix + "all_to_all"
	CollectivePermute = Prefix + "collective_permute"
	Send              = Prefix + "send"
	Recv              = Prefix + "recv"
)

// NeedsSymbol reports whether the symbols that an op of the given name mentions,
// without its dialect where the text may leave it out, must exist.
func NeedsSymbol(name string) bool {
	switch name {
	case Call, "call", "func.constant", Grad:
		return true
	}
	return false
}
