package plan

import "dmir/syntax/diag"

// The codes of an Error.
const (
	CodeDevices = "DM870" // they cannot be factored into axes, or are too many
	CodeMemory  = "DM871" // no plan fits
	CodeStated  = "DM872" // the file's annotations contradict what is asked for
	CodeLinks   = "DM873" // the machine is no cluster
	CodeStep    = "DM874" // the function is no training step that can be planned
	CodeExport  = "DM875" // a tool cannot be told of the plan
)

// Codes documents them.
var Codes = diag.Register([]diag.Code{
	{Code: CodeDevices, Name: "plan-devices", Doc: "The training step cannot be divided over that many devices: no product of axes that divide its batch, its dimensions and its layers gives their number, or the cluster has fewer devices.", Help: "ask for another number of devices, such as a power of two: `dmir plan --devices 64`"},
	{Code: CodeMemory, Name: "plan-memory", Doc: "No plan fits into the memory of a device. The message states by how many bytes the smallest one exceeds it, and what of it is parameters, optimizer states or activations.", Help: "use more devices, a machine with more memory, full recomputation, or a smaller batch"},
	{Code: CodeStated, Name: "plan-contradicts", Doc: "The file has a mesh, shardings, stages or a schedule that contradict each other or the number of devices that a plan is made for.", Help: "remove the annotation, or plan for the devices of the file's mesh"},
	{Code: CodeLinks, Name: "plan-links", Doc: "A plan is for a cluster, of which the bandwidth and latency between devices are known. The machine has no links, or they join fewer devices than the plan needs.", Help: "name a cluster, such as `--target dgx-h100`, or describe the links of yours in `dmir.toml`"},
	{Code: CodeStep, Name: "plan-step", Doc: "The function is no training step that can be planned: it differentiates nothing, has ops that are not counted or sizes that are not known, or nothing in it can be divided.", Help: "name the function that takes the gradient and returns the next state with `--func`, and give sizes to its symbols with `--bind`"},
	{Code: CodeExport, Name: "plan-export", Doc: "The tool that a plan is exported for has no form for it, not even one that is near: PyTorch cuts a model into stages between modules, and a loop over stacked weights is none; in JAX's loop and PyTorch's pipeline micro-batches have one size.", Help: "export for another tool, or a plan without what the message names"},
})
