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

// The attributes by which a step is cut into parts. MicrobatchesAttr of a function is into how many
// micro-batches its batch is cut, which run one after the other; with PipelineAttr, the axis of the mesh
// along which stages lie, they overlap. StageAttr of an op is the stage that it belongs to. MicroAttr, which
// package microbatch writes, is the micro-batch that an op computes a part of, from 0.
const (
	MicrobatchesAttr = "dm.microbatches"
	PipelineAttr     = "dm.pipeline"
	StageAttr        = "dm.stage"
	MicroAttr        = "dm.micro"
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
