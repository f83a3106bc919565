package export

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
)

// A Format is a file that a plan is written as, for one tool.
type Format struct {
	Name      string // as --export takes it
	Extension string // of the file's name, with its dot
	Tool      string // whose code or launcher takes the file
	Doc       string // what the file has, in a line
	Write     func(io.Writer, *Portable) error
}

// formats are all there are, in the order in which people read of them. Help, completion and documentation list these.
var formats = []*Format{
	{"jax", ".py", "JAX", "a module with the mesh, the `PartitionSpec` of every parameter, argument, state and result by its path, and `jit`, `shard`, `constrained`, `checkpoint` and `value_and_grad` for your own step", writeJAX},
	{"torch", ".py", "PyTorch", "a module that divides the parameters of an `nn.Module` (DTensor, FSDP2), cuts it into stages and runs its step", writeTorch},
	{"torchtitan", ".py", "torchtitan", "a function that puts degrees, schedule, batch and recomputation into a configuration", writeTorchTitan},
	{"megatron", ".sh", "Megatron-LM", "command-line flags, as an array of a shell", writeMegatron},
	{"deepspeed", ".json", "DeepSpeed", "a configuration: ZeRO stage, batch, accumulation, tensor parallelism, pipeline", writeDeepSpeed},
	{"nemo", ".yaml", "NeMo", "what recipes of Megatron Bridge are overridden with", writeNeMo},
	{"slurm", ".sh", "Slurm", "a batch file that runs the planned program with `mpirun dmir run` on its machines", writeSlurm},
	{"jobset", ".yaml", "Kubernetes", "a JobSet that does the same in pods", writeJobSet},
	{"json", ".json", "any program", "the description that the other files are written from", writeJSON},
}

// Formats are all formats.
func Formats() []*Format { return slices.Clone(formats) }

// Lookup is the format called name, nil if there is none.
func Lookup(name string) *Format {
	for _, f := range formats {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// Names are those of all formats.
func Names() []string {
	var out []string
	for _, f := range formats {
		out = append(out, f.Name)
	}
	return out
}

// Table is the formats as a table of Markdown.
func Table() string {
	var b strings.Builder
	b.WriteString("| format | for | the file |\n|---|---|---|\n")
	for _, f := range formats {
		b.WriteString("| `" + f.Name + "` | " + f.Tool + " | `" + f.Extension + "`: " + f.Doc + " |\n")
	}
	return b.String()
}

func writeJSON(w io.Writer, p *Portable) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(p)
}
