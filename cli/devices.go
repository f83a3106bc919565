package cli

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"strconv"
	"strings"
	"time"

	"dmir/analysis/program"
	"dmir/compile/devices"
	"dmir/compile/driver"
	"dmir/compile/pass"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/shard"
	"dmir/dialect/types"
	"dmir/gpu/artifact"
	"dmir/gpu/collective"
	"dmir/syntax/diag"
)

// deviceFlags are the flags of commands that divide a program over devices.
type deviceFlags struct {
	Devices int      `help:"Divide the program over this many devices, those of its mesh." placeholder:"N"`
	Mesh    []string `help:"Give an axis of the mesh another size." placeholder:"data=2" sep:","`
}

// sizes are those of --mesh.
func (f deviceFlags) sizes() (map[string]int64, error) {
	if f.Devices < 0 {
		return nil, &failure{"DM612", fmt.Sprintf("--devices %d", f.Devices), "is not a number of devices", "write --devices 4"}
	}
	sizes, err := binding(f.Mesh)
	var bad *failure
	if errors.As(err, &bad) {
		return nil, &failure{bad.code, "--mesh" + strings.TrimPrefix(bad.where, "--bind"), "is not axis=size", "write --mesh data=2,model=2"}
	}
	return sizes, err
}

// count is pass.Options.Devices.
func (f deviceFlags) count() int {
	if f.Devices == 0 && len(f.Mesh) > 0 {
		return pass.AllDevices
	}
	return f.Devices
}

// divide gives the meshes of p the sizes asked for, and checks that they have the number of
// devices asked for.
func (f deviceFlags) divide(a *app, p *program.Program) error {
	sizes, err := f.sizes()
	if err != nil {
		return err
	}
	if len(sizes) > 0 {
		unknown := maps.Clone(sizes)
		err := p.Change(func(m *ir.Module) error {
			own := map[string]int64{}
			for _, on := range mesh.All(m) {
				for _, axis := range on.Axes {
					if n, ok := sizes[axis.Name]; ok {
						own[axis.Name] = n
						delete(unknown, axis.Name)
					}
				}
			}
			return devices.Mesh(m, own)
		})
		if err == nil && len(unknown) > 0 {
			err = devices.Mesh(&ir.Module{}, unknown)
		}
		if err != nil {
			return compileFailed(a, p, err)
		}
		if p.HasErrors() {
			printErrors(a.stderr, p.Src, p.Diags)
			return exitStatus(exitFailed)
		}
	}
	if f.Devices == 0 {
		return nil
	}
	where, found := fmt.Sprintf("--devices %d", f.Devices), false
	for _, g := range p.Funcs {
		on := g.Mesh()
		if on == nil {
			continue
		}
		if found = true; on.Devices() != f.Devices {
			return &failure{"DM830", where, fmt.Sprintf("mesh @%s of @%s has %s (%s)", on.Name, g.Func.Name, diag.Count(on.Devices(), "device"), on), "give its axes other sizes with --mesh"}
		}
	}
	if !found {
		return &failure{"DM832", where, "nothing in the file is divided over devices", "define a mesh with dm.mesh, and state the sharding of an argument"}
	}
	return nil
}

// processFlags are the flags of runs with a process for each device.
type processFlags struct {
	Timeout time.Duration `help:"End a run whose processes wait for each other this long." default:"5m" placeholder:"TIME"`
}

// distribution is over how many devices fn runs: those of --devices, or one for each process
// that mpirun or srun started. One is left out where nothing is to be divided.
func (f deviceFlags) distribution(p *program.Program, m *ir.Module, fn *ir.Func, flags ...string) (on driver.Distribution, err error) {
	if on.Mesh, err = f.sizes(); err != nil {
		return on, err
	}
	on.Devices = f.count()
	l, ok := collective.Launched()
	if !ok || l.Size == 1 && !divided(m, fn) {
		return on, nil
	}
	if on.Devices > 0 && on.Devices != l.Size {
		return on, &failure{"DM830", fmt.Sprintf("--devices %d", f.Devices), fmt.Sprintf("%s started %d processes", l.By, l.Size), "leave the flag out: each process is a device"}
	}
	on.Devices, on.Launch = 0, &l
	h := sha256.New()
	for _, part := range append([]string{versionText(), p.Src.Text(), fn.Name, fmt.Sprint(p.Bind), p.F32Products, fmt.Sprint(on.Mesh)}, flags...) {
		fmt.Fprintf(h, "%d %s", len(part), part)
	}
	on.Identity = fmt.Sprintf("%x", h.Sum(nil))
	return on, nil
}

// devicePlace is what the number of a device replaces in the names of files.
const devicePlace = "{device}"

// pieceReader reads the pieces of arg from files with the numbers of devices in their names.
func pieceReader(path string, arg argument) driver.PieceReader {
	return func(device int, elem types.Elem, shape []int) (*tensor.Tensor, error) {
		own := argument{name: arg.name, typ: fmt.Sprintf("%s on device %d", typeText(elem, shape), device), elem: elem, shape: shape}
		return readTensor(strings.ReplaceAll(path, devicePlace, strconv.Itoa(device)), own)
	}
}

func typeText(elem types.Elem, shape []int) string {
	text := "tensor<"
	for _, n := range shape {
		text += strconv.Itoa(n) + "x"
	}
	return text + elem.String() + ">"
}

func piecesByName(args []argument, pieces map[int]driver.PieceReader) map[string]driver.PieceReader {
	out := map[string]driver.PieceReader{}
	for i, read := range pieces {
		out[args[i].name] = read
	}
	return out
}

// together prepares the run of a program on the devices of on. Of several processes the first
// one prints, and writes what is whole.
func (c runCmd) together(a *app, on *driver.Distribution) (runCmd, error) {
	on.Timeout, on.Pieces = c.Timeout, c.Pieces
	several := on.Devices != 0 || on.Launch != nil
	if !several {
		if c.Pieces {
			return c, &failure{"DM612", "--pieces", "is for programs that several devices run", "add --devices, or remove it"}
		}
		for _, in := range c.Input {
			if strings.Contains(in, devicePlace) {
				return c, &failure{"DM612", "--input " + in, "names a file for each device, and one device runs the program", "add --devices"}
			}
		}
		return c, nil
	}
	if c.Pieces && c.Output == "" {
		return c, &failure{"DM612", "--pieces", "needs --output", "add --output DIR"}
	}
	if c.Pieces && c.steps() > 0 {
		return c, &failure{"DM612", "--pieces", "writes the results of one run, and --steps repeats it", "remove one of them"}
	}
	if on.Launch != nil && on.Launch.Rank > 0 {
		a.stdout = newOutput(io.Discard)
		if !c.Pieces {
			c.Output = ""
		}
		c.Log, c.rank = "", on.Launch.Rank
	}
	return c, nil
}

// compiledDistribution is over how many devices the compiled program p runs: those that it was
// compiled for.
func (c runCmd) compiledDistribution(p *artifact.Program) (on driver.Distribution, err error) {
	if len(c.Mesh) > 0 {
		return on, &failure{"DM612", "--mesh", "is for programs, and " + c.File + " is compiled for one mesh", "give it to dmir compile"}
	}
	if _, err := c.sizes(); err != nil {
		return on, err
	}
	l, launched := collective.Launched()
	switch {
	case p.Divided == nil && c.Devices == 0 && (!launched || l.Size == 1):
		return on, nil
	case p.Divided == nil:
		return on, &failure{"DM830", c.File, "was compiled for one device, and is to run on several", "compile it with --devices"}
	case !launched || l.Size == 1 && p.Devices() > 1 && c.Devices > 0:
		on.Devices = pass.AllDevices
		if c.Devices > 0 {
			on.Devices = c.Devices
		}
		return on, nil
	}
	on.Launch = &l
	h := sha256.New()
	fmt.Fprintf(h, "%s %d %d ", versionText(), c.Seed, c.steps())
	if err := p.Write(h); err != nil {
		return on, err
	}
	on.Identity = fmt.Sprintf("%x", h.Sum(nil))
	return on, nil
}

// divided reports whether fn is what one device of a mesh runs, or states a sharding.
func divided(m *ir.Module, fn *ir.Func) bool {
	if mesh.Find(m, fn.Op.Str(op.MeshAttr)) != nil {
		return true
	}
	_, stated, problem := shard.Stated(m, fn)
	return len(stated) > 0 || problem != nil
}

// endedElsewhere reports whether err is that the process of another device has ended the run
// and reports why.
func endedElsewhere(err error) bool {
	var ended *collective.Ended
	return errors.As(err, &ended)
}
