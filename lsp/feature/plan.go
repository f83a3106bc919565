package feature

import (
	"fmt"

	"dmir/analysis/machine"
	"dmir/analysis/plan/request"
	"dmir/analysis/program"
	"dmir/dialect/ir"
)

// PlanChoice is what an editor's settings choose for plans; what is zero follows from the program and
// dmir.toml.
type PlanChoice struct {
	Devices int
	Target  string
}

// planDevices is how many devices a step is planned for where nothing states a number: those of a
// usual server.
const planDevices = 8

// PlanRequest is what the planner is asked for of a function of p. With devices 0 their number is that of
// the program, the settings or dmir.toml. The errors are those of request.New, but for ErrDevices.
func PlanRequest(p *program.Program, fn string, devices int, choice PlanChoice) (*request.Request, error) {
	return request.New(p, request.Asked{Func: fn, Devices: devices, Machine: choice.machine(p), Otherwise: choice.otherwise(p)})
}

// otherwise is the number of devices of a program without a mesh.
func (c PlanChoice) otherwise(p *program.Program) int {
	switch {
	case c.Devices > 0:
		return c.Devices
	case p.Config.Plan.Devices > 0:
		return p.Config.Plan.Devices
	}
	return planDevices
}

// machine is the cluster of the settings, nil if they name none.
func (c PlanChoice) machine(p *program.Program) *machine.Machine {
	if c.Target == "" {
		return nil
	}
	if m, ok := p.Config.Machine(c.Target); ok {
		return m
	}
	return nil
}

// planTitle is the title of the lens of a training step.
func planTitle(p *program.Program, m *ir.Module, fn *ir.Func, choice PlanChoice) string {
	on := choice.machine(p)
	if on == nil {
		on = request.Cluster(p)
	}
	return fmt.Sprintf("Plan for %d × %s", request.Devices(p, m, fn, choice.otherwise(p)), on.Title)
}
