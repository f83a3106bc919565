package op

import (
	"math"
	"slices"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/syntax/diag"
)

// A Discardable is an attribute with the dialect's prefix, which an op, a function, an argument or a result may have
// beside the attributes of an op's entry. (MLIR calls these attributes discardable.) All that there are is declared
// in Discardables.
type Discardable struct {
	Name string // with the prefix
	On   Sites  // what may have it
	Want string // what its value is, as it follows "not": "a positive number"
	// Is reports whether a is such a value; nil where that depends on more than a: then the verifier or the pass
	// that reads the attribute checks it.
	Is      func(a types.Attr) bool
	Enum    []string // the values, where these are fixed strings
	Unit    string   // of a quantity, "B" or "s"; "" of others
	Example string   // a value, as text writes it; "" where the attribute has none
	Snippet string   // Example with places to fill in, in the LSP's syntax; "": Example
	Code    string   // of the diagnostic of a wrong value; "": DM133
	Made    bool     // passes write it, and people rarely
	Doc     string   // a clause without a final stop
}

// Sites are kinds of things that have attributes.
type Sites uint8

// The sites.
const (
	OnOp Sites = 1 << iota // an op that is no function and no module: calls, ops of other dialects too
	OnFunction
	OnArgument
	OnResult // of a function
	OnModule
)

var siteNames = []string{"an op", "a function", "an argument", "a result", "a module"}

// String is the sites in words, "ops and functions".
func (s Sites) String() string {
	var names []string
	for i, n := range siteNames {
		if s&(1<<i) != 0 {
			_, bare, _ := strings.Cut(n, " ")
			names = append(names, bare+"s")
		}
	}
	return diag.List(names)
}

// Name is one site with its article, "an argument".
func (s Sites) Name() string {
	for i, n := range siteNames {
		if s == 1<<i {
			return n
		}
	}
	return s.String()
}

// Attributes that package ir, or one reader alone, has no need to name.
const (
	MaxMovedAttr = "dm.max_moved"
	MaxPeakAttr  = "dm.max_peak"
	MaxSentAttr  = "dm.max_sent"
	MaxTimeAttr  = "dm.max_time"

	RelaxedAttr        = "dm.relaxed"
	InPlaceAttr        = "dm.in_place"
	NameAttr           = "dm.name"
	TileAttr           = "dm.tile"
	StreamAttr         = "dm.stream"
	WaitsAttr          = "dm.waits"
	OffsetsAttr        = "dm.offsets"
	ArgOffsetsAttr     = "dm.arg_offsets"
	WorkspaceAttr      = "dm.workspace"
	ScratchAttr        = "dm.scratch"
	ScratchOffsetAttr  = "dm.scratch_offset"
	ScratchReadAttr    = "dm.scratch_read"
	ScratchWrittenAttr = "dm.scratch_written"
	LaunchesAttr       = "dm.launches"
	BandwidthAttr      = "dm.bandwidth"
	EpilogueAttr       = "dm.epilogue"
)

// Discardables are the attributes of the dialect's prefix: by site as people meet them, then those that passes write.
var Discardables = []*Discardable{
	{
		Name: MaxMovedAttr, On: OnFunction, Unit: "B", Want: "a size in bytes", Example: `"1.2 GB"`, Snippet: `"${1:1 GB}"`,
		Doc: "how much the function may move; more is an error. Of a function divided over devices, each of them. If sizes are symbols it may be a formula, `\"8*n B\"`",
	},
	{
		Name: MaxPeakAttr, On: OnFunction, Unit: "B", Want: "a size in bytes", Example: `"3 GB"`, Snippet: `"${1:1 GB}"`,
		Doc: "how much memory the function may hold at once; more is an error",
	},
	{
		Name: MaxSentAttr, On: OnFunction, Unit: "B", Want: "a size in bytes", Example: `"100 MB"`, Snippet: `"${1:1 GB}"`,
		Doc: "how much a device may send to others; more is an error",
	},
	{
		Name: MaxTimeAttr, On: OnFunction, Unit: "s", Want: "a time", Example: `"50 µs"`, Snippet: `"${1:50 µs}"`,
		Doc: "how long the function may take on the chosen machine, or on a cluster, `\"350 ms on 64 x dgx-h100\"`; more is an error",
	},
	{
		Name: BindAttr, On: OnFunction, Want: "a dictionary of sizes", Example: "{n = 512}", Snippet: "{${1:n} = ${2:512}}",
		Doc: "sizes of dimensions that have a name, for this function",
	},
	{
		Name: SizesAttr, On: OnFunction, Want: "a dictionary from symbols to their min and max", Example: "{n = {min = 2, max = 512}}", Snippet: "{${1:n} = {min = ${2:1}, max = ${3:512}}}",
		Doc: "the sizes that the function is for: the least and the greatest",
	},
	{
		Name: MeshAttr, On: OnFunction, Want: "the name of a mesh", Example: "@pod", Snippet: "@${1:mesh}",
		Doc: "the function is what one device of the mesh runs, on its pieces",
	},
	{
		Name: OnlyAttr, On: OnFunction, Want: "a mesh and a position along one of its axes", Example: "[@pod, {pipe = 0}]", Snippet: "[@${1:mesh}, {${2:pipe} = ${3:0}}]",
		Doc: "the devices of a mesh that run the function, those with a position along an axis",
	},
	{
		Name: MicrobatchesAttr, On: OnFunction, Is: wholeFrom(1), Want: "a positive number", Example: "8 : i64", Snippet: "${1:8} : i64", Code: "DM199",
		Doc: "how many parts the batch of a training step is cut into, whose gradients are summed",
	},
	{
		Name: PipelineAttr, On: OnFunction, Want: "an axis of the mesh", Example: `"pipe"`, Snippet: `"${1:pipe}"`,
		Doc: "the axis of the mesh along which the stages of a training step lie",
	},
	{
		Name: ScheduleAttr, On: OnFunction, Enum: Schedules, Want: "a schedule", Example: `"1f1b"`, Snippet: `"${1:1f1b}"`, Code: "DM199",
		Doc: "the order in which the pipeline works on micro-batches",
	},

	{
		Name: InitAttr, On: OnArgument, Is: isBeginning, Want: "a number or an array in a file", Example: "0.0", Snippet: "${1:0.0}",
		Doc: "the number of which all elements are where no input is given, as of the state of an optimizer; or the file with the array that the argument then is, as of trained weights: `#dm.file<\"weights.npz\", \"name\">`",
	},
	{
		Name: StddevAttr, On: OnArgument, Is: isDeviation, Want: "a number of 0 or more", Example: "0.02", Snippet: "${1:0.02}",
		Doc: "the standard deviation of the random numbers where no input is given, as of weights",
	},
	{
		Name: PatternAttr, On: OnArgument, Is: func(a types.Attr) bool { _, ok := StatedPattern(a); return ok },
		Want:    "one of " + strings.Join(Patterns, ", ") + ", or a dictionary of its kind and its exponent, width or size",
		Example: `{kind = "power_law", exponent = 2.1}`, Snippet: `"${1:power_law}"`,
		Doc: "which elements of a sparse argument are stored where no input is given, as many as its type has room for. `\"uniform\"`: any, each as likely; `\"power_law\"`: few rows have many and many have few, " +
			"the number of rows with d elements falls as d to the negative `exponent`, 2.1 by default; `\"band\"`: those near the diagonal, at most `width` from it; `\"blocks\"`: dense blocks with sides of `size`, 32 by default",
	},
	{
		Name: PieceRoomAttr, On: OnArgument, Is: func(a types.Attr) bool { return RoomOf(a, 1) != nil }, Want: "a number of entries, or a list with one for each compressed level", Example: "4096", Snippet: "${1:4096}",
		Doc: "how many entries each device's piece has room for, of a sparse argument that devices divide; where it is not stated, as many as the largest piece has that a run counts, else its share of `nnz`",
	},
	{
		Name: DivideByAttr, On: OnArgument, Enum: Divisions, Want: "rows or entries", Example: `"entries"`, Snippet: `"${1:entries}"`,
		Doc: "what the devices that divide a sparse argument have equally many of: of its `rows`, the coordinates along its outermost level, as where nothing is stated; or of its `entries`, however they lie in rows. " +
			"What a device computes of entries is a part of a sum, since two may have entries of one row",
	},
	{
		Name: DonatedAttr, On: OnArgument, Is: isFlag, Want: "an attribute without a value",
		Doc: "the function may overwrite the argument",
	},
	{
		Name: PositionAttr, On: OnArgument, Is: isStrings, Want: "a list of axes of the mesh", Example: `["pipe"]`, Snippet: `["${1:pipe}"]`, Code: "DM195",
		Doc: "callers leave the argument out: it is the position of the device along these axes, as `dm.partition_id` gives it",
	},
	{
		Name: StateAttr, On: OnResult, Is: isState, Want: "the name of an argument", Example: `"w"`, Snippet: `"$1"`, Code: "DM192",
		Doc: "the argument whose next value the result is, in steps that are repeated",
	},
	{
		Name: GlobalAttr, On: OnArgument | OnResult, Is: isTensorType, Want: "the type of a tensor", Example: "tensor<8x4xf32, #dm.at<split = @pod[{data}, {}]>>", Snippet: "${1:type}", Code: "DM195",
		Doc: "the type, with its sharding, of the whole tensor that this is a piece of",
	},
	{
		Name: ShardingAttr, On: OnArgument | OnResult | OnOp, Want: "a sharding", Example: "#dm.at<split = @pod[{data}, {}]>", Snippet: "#dm.at<split = $1>",
		Doc: "how the value, or the op's result, is divided over the devices of a mesh, where its type does not state it",
	},
	{
		Name: GradientShardingAttr, On: OnOp, Want: "a sharding", Example: "#dm.at<split = @pod[{data}, {}]>", Snippet: "#dm.at<split = $1>",
		Doc: "how the gradient by the op's only result, a tensor, is divided over the devices of a mesh, where the op is differentiated",
	},

	{
		Name: RegatherAttr, On: OnArgument, Is: isRegather, Want: "an attribute without a value, or a list of booleans",
		Doc: "what devices gather of the argument, a parameter that is stored in pieces, is freed behind the forward pass and gathered again for the backward pass (ZeRO-3)",
	},

	{
		Name: StageAttr, On: OnOp, Is: wholeFrom(0), Want: "the number of a stage", Example: "0", Snippet: "$1", Code: "DM198",
		Doc: "the stage of a pipeline that the op and those after it belong to, from 0",
	},
	{
		Name: StagesAttr, On: OnOp, Is: wholeFrom(1), Want: "a number of stages", Example: "4", Snippet: "$1", Code: "DM198",
		Doc: "of a `dm.scan` over layers: how many stages of a pipeline its iterations are cut into, equally many for each, from stage 0 on; the last one may have fewer. Ops before the loop are of stage 0, those behind it of the last one. " +
			"The devices of a stage hold the part of the stacks, of their gradients and of the states of their optimizers that belongs to its layers",
	},
	{
		Name: RecomputeAttr, On: OnOp, Is: func(a types.Attr) bool { return isUnit(a) || wholeFrom(1)(a) }, Want: "an attribute without a value", Code: "DM199",
		Doc: "what the op computes, or a call but for its results, is computed again for the derivative and not kept",
	},
	{
		Name: NameAttr, On: OnResult | OnOp, Is: isString, Want: "a name in quotes", Example: `"loss"`, Snippet: `"$1"`,
		Doc: "the name of a result, by which runs report it and write it to a file; of a kernel, that of its step",
	},
	{
		Name: RelaxedAttr, On: OnFunction | OnOp, Is: isUnit, Want: "an attribute without a value",
		Doc: "rewrites may change the signs of zeros, and results where operands are infinite or NaN",
	},
	{
		Name: InPlaceAttr, On: OnFunction, Is: isFlag, Want: "an attribute without a value",
		Doc: "element-wise kernels write over operands whose last use they are",
	},

	{Name: ComponentAttr, On: OnArgument, Made: true, Is: isTensorType, Want: "the type of a sparse tensor", Example: "tensor<8x8xf32, #dm.csr<nnz = 12>>", Doc: "the sparse tensor that the argument, with those beside it, stores"},
	{
		Name: CountedAttr, On: OnArgument, Made: true, Is: func(a types.Attr) bool { return CountedOf(a) != nil }, Want: "what was counted of a pattern",
		Example: `{file = "a.mtx", stored = 2, rows = 2, empty = 0, longest = 1, median = 1, uneven = 1, blocks = 1, levels = [{level = 1, reads = 2, touched = [2, 1, 1], later = [[], [], []]}]}`,
		Doc: "what was counted of the elements that a sparse argument stores, where a file gives them: rows, those without elements, the longest and the median one, blocks of 16 × 16 that hold elements, and of each level with coordinates how a table is read by these: " +
			"`reads`, the lines of 1, 8 and 16 rows that are `touched`, and, for k from 0, the reads of lines that were not among the last 2^k (`later`)",
	},
	{Name: StackedAttr, On: OnArgument | OnResult, Made: true, Is: wholeFrom(1), Want: "a size", Example: "4 : i64", Doc: "the value is a piece along the first dimension of one of this size there, which the stages of a pipeline have in pieces"},
	{Name: RecomputedAttr, On: OnOp, Made: true, Is: isUnit, Want: "an attribute without a value", Doc: "the op computes again what one with `dm.recompute` has computed"},
	{Name: BackwardAttr, On: OnOp, Made: true, Is: isUnit, Want: "an attribute without a value", Doc: "differentiation has added the op"},
	{Name: RegatheredAttr, On: OnOp, Made: true, Is: wholeFrom(0), Want: "a number", Example: "0 : i64", Doc: "which gathering of an argument with `dm.regather` the op is a part of"},
	{Name: MicroAttr, On: OnOp, Made: true, Is: wholeFrom(0), Want: "the number of a micro-batch", Example: "0 : i64", Doc: "the micro-batch that the op works on"},
	{Name: TaskAttr, On: OnOp, Made: true, Is: isString, Want: "a task", Example: `"2F0"`, Doc: "the task of the pipeline's schedule in which the op runs: the stage, `F`, `B` or `W`, the micro-batch"},
	{Name: TileAttr, On: OnOp, Made: true, Is: isString, Want: "a tile", Example: `"mma 128x128x32 / 4"`, Doc: "how a contraction or an attention is cut into tiles: its path, the block, how two blocks share an operand (`2x1`), and the blocks that share a sum (`/ 4`), in memory or as a `cluster`, or that all share the steps of the last tiles (`stream-k`); of a convolution whose threads add up windows (`window 4x2x186`) the lines and outputs of a thread, and the slots in which its instructions are issued"},
	{Name: StreamAttr, On: OnOp, Made: true, Want: "the number of a stream", Example: "0", Doc: "the stream on which the step runs"},
	{Name: WaitsAttr, On: OnOp, Made: true, Want: "a list of steps", Example: "[0]", Doc: "the steps on other streams that the step waits for"},
	{Name: OffsetsAttr, On: OnOp, Made: true, Want: "a list of bytes", Example: "[256]", Doc: "where the results lie in the workspace"},
	{Name: ArgOffsetsAttr, On: OnFunction, Made: true, Want: "a list of bytes", Example: "[0, 256]", Doc: "where the arguments lie in the workspace"},
	{Name: WorkspaceAttr, On: OnFunction | OnOp, Made: true, Want: "a number of bytes", Example: "4096", Doc: "the size of the workspace, of a function or of the regions of an op"},
	{Name: ScratchAttr, On: OnOp, Made: true, Want: "a number of bytes", Example: "512", Doc: "the scratch memory that the step is given"},
	{Name: ScratchOffsetAttr, On: OnOp, Made: true, Want: "a number of bytes", Example: "1024", Doc: "where the step's scratch memory lies in the workspace"},
	{Name: ScratchReadAttr, On: OnOp, Made: true, Is: wholeFrom(0), Want: "a number of bytes", Example: "0", Doc: "what the step's kernels read beside what crosses its boundary"},
	{Name: ScratchWrittenAttr, On: OnOp, Made: true, Is: wholeFrom(0), Want: "a number of bytes", Example: "0", Doc: "what the step's kernels write beside what crosses its boundary"},
	{Name: LaunchesAttr, On: OnOp, Made: true, Is: wholeFrom(1), Want: "a number of kernels", Example: "2", Doc: "how many kernels run one after the other for the step"},
	{Name: BandwidthAttr, On: OnOp, Made: true, Is: wholeFrom(1), Want: "a number of bytes per second", Example: "1000000000000", Doc: "the bandwidth that the blocks of the step's kernels reach, where that is less than the machine's"},
	{Name: EpilogueAttr, On: OnOp, Made: true, Is: wholeFrom(1), Want: "a number of nanoseconds", Example: "12000", Doc: "what the epilogues of a contraction's tiles add to the time of its products"},
}

var byAttr = func() map[string]*Discardable {
	out := map[string]*Discardable{}
	for _, d := range Discardables {
		if d.Enum != nil && d.Is == nil {
			d.Is = func(a types.Attr) bool {
				s, ok := a.(types.Str)
				return ok && slices.Contains(d.Enum, string(s))
			}
		}
		out[d.Name] = d
	}
	return out
}()

// LookupAttr is the declaration of the attribute called name, nil where there is none.
func LookupAttr(name string) *Discardable { return byAttr[name] }

// AttrsOn are the attributes that a person writes on a site.
func AttrsOn(s Sites) []*Discardable {
	return slices.DeleteFunc(slices.Clone(Discardables), func(d *Discardable) bool { return d.Made || d.On&s == 0 })
}

// SiteOf is what o is as one that has attributes.
func SiteOf(o *ir.Op) Sites {
	switch o.Name {
	case Func:
		return OnFunction
	case Module:
		return OnModule
	}
	return OnOp
}

// Form is the attribute with a value, as text writes it.
func (d *Discardable) Form() string {
	if d.Example == "" {
		return d.Name
	}
	return d.Name + " = " + d.Example
}

// Values is what a value is, in words: the strings where these are fixed.
func (d *Discardable) Values() string {
	switch {
	case d.Enum != nil:
		return "one of " + strings.Join(d.Enum, ", ")
	case d.Unit != "":
		return d.Want + ", with its unit"
	case d.Example == "":
		return "none"
	}
	return d.Want
}

// Markdown is the attribute's documentation.
func (d *Discardable) Markdown() string {
	return "**" + d.Name + "**, an attribute of " + d.On.String() + "\n\n" + strings.ToUpper(d.Doc[:1]) + d.Doc[1:] + ".\n\n```mlir\n" + d.Form() + "\n```\n"
}

// Unfit is why an argument of type t cannot have the attribute a: a number that its elements cannot be, a
// deviation of what has none, or a pattern of what is dense; "" where it can.
func Unfit(a types.Named, t types.Type) string {
	sparse := slices.ContainsFunc(types.Members(t), func(m types.Member) bool { return m.Tensor.Format != nil })
	switch {
	case (a.Name == PatternAttr || a.Name == DivideByAttr) && !sparse:
		return "is dense"
	case a.Name == InitAttr && !isNumber(a.Value) && sparse:
		return "is sparse, and no array in a file"
	}
	v, ok := types.NumberOf(a.Value)
	if !ok {
		return ""
	}
	members := types.Members(t)
	isFloat := func(m types.Member) bool { return m.Tensor.Elem.IsFloat() }
	switch {
	case a.Name == StddevAttr && !slices.ContainsFunc(members, isFloat):
		return "has no floating-point elements, whose deviation it would be"
	case a.Name == InitAttr:
		for _, m := range members {
			if e := m.Tensor.Elem; e.IsInt() && !types.Holds(e, v) {
				return "has elements of " + e.String() + ", which cannot be " + a.Value.String()
			}
		}
	}
	return ""
}

// discardables is the section of the reference page.
func discardables() string {
	var b strings.Builder
	b.WriteString("\n## Attributes\n\nOps, functions, their arguments and results may have the attributes of this table beside those of an op's entry. " +
		"They stand in a dictionary: behind the operands of an op, behind the type of an argument or a result, and of a function behind its signature, " +
		"`attributes {dm.max_moved = \"1.2 GB\"}`. Others that begin with `dm.` are errors; those of other dialects are kept. A quantity is written with its unit.\n")
	for _, made := range []bool{false, true} {
		b.WriteString("\n| attribute | of | value | |\n|---|---|---|---|\n")
		for _, d := range Discardables {
			if d.Made != made {
				continue
			}
			value := d.Values()
			if d.Example != "" {
				value += ": `" + d.Example + "`"
			}
			b.WriteString("| `" + d.Name + "` | " + d.On.String() + " | " + value + " | " + strings.ToUpper(d.Doc[:1]) + d.Doc[1:] + ". |\n")
		}
		if !made {
			b.WriteString("\nPasses write these, which `dmir opt` prints and reads again:\n")
		}
	}
	return b.String()
}

func wholeFrom(least int64) func(types.Attr) bool {
	return func(a types.Attr) bool {
		i, ok := a.(types.Int)
		return ok && i.V >= least && (i.Elem == types.InvalidElem || i.Elem == types.I64)
	}
}

func isUnit(a types.Attr) bool { return a == types.Attr(types.Unit{}) }

// isFlag: true and false are what generic form may write.
func isFlag(a types.Attr) bool {
	_, isBool := a.(types.Bool)
	return isBool || isUnit(a)
}

func isString(a types.Attr) bool {
	_, ok := a.(types.Str)
	return ok
}

func isNumber(a types.Attr) bool {
	_, ok := types.NumberOf(a)
	return ok
}

func isBeginning(a types.Attr) bool {
	d, ok := a.(*types.Dense)
	return isNumber(a) || ok && d.File() != nil
}

func isDeviation(a types.Attr) bool {
	v, ok := types.NumberOf(a)
	return ok && v >= 0 && !math.IsInf(v, 0)
}

func isState(a types.Attr) bool {
	_, isNumber := a.(types.Int)
	return isNumber || isString(a)
}

func isStrings(a types.Attr) bool {
	list, ok := a.(types.Array)
	return ok && len(list) > 0 && !slices.ContainsFunc(list, func(e types.Attr) bool { return !isString(e) })
}

func isTensorType(a types.Attr) bool {
	t, _ := a.(types.TypeAttr)
	_, ok := t.T.(*types.Tensor)
	return ok
}
