package cli

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"dmir/analysis/program"
	"dmir/compile/devices"
	"dmir/compile/driver"
	"dmir/compile/pass"
	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/shard"
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
	if on.Devices = f.Devices; f.Devices == 0 && len(f.Mesh) > 0 {
		on.Devices = pass.AllDevices
	}
	l, ok := collective.Launched()
	if !ok || l.Size == 1 && !divided(m, fn) {
		return on, nil
	}
	if on.Devices > 0 && on.Devices != l.Size {
		return on, &failure{"DM830", fmt.Sprintf("--devices %d", f.Devices), fmt.Sprintf("%s started %d processes", l.By, l.Size), "leave the flag out: each process is a device"}
	}
	on.Devices, on.Launch = 0, &l
	h := sha256.New()
	for _, part := range append([]string{versionText(), p.Src.Text(), fn.Name, fmt.Sprint(p.Bind), fmt.Sprint(on.Mesh)}, flags...) {
		fmt.Fprintf(h, "%d %s", len(part), part)
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
