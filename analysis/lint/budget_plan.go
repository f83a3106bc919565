package lint

import (
	"crypto/sha256"
	"encoding/json"
	errs "errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/analysis/plan"
	"dmir/analysis/plan/request"
	"dmir/analysis/units"
	"dmir/dialect/dim"
	"dmir/syntax/diag"
)

// overOn checks a budget for the time on a cluster: of a function that is divided over so many
// devices its own time there, of any other the time of the best plan for it.
func (c *Context) overOn(l cost.Limit) {
	on, ok := c.program.Config.Machine(l.On.Machine)
	invalid := func(help, format string, args ...any) {
		c.Report(Finding{Op: c.Fn.Op, Message: l.Attr + ": " + fmt.Sprintf(format, args...), Label: "invalid budget", Help: help})
	}
	if !ok {
		invalid(c.program.Config.Meant(l.On.Machine), "there is no machine %q", l.On.Machine)
		return
	}
	mesh := c.Cost.Mesh()
	switch {
	case mesh != nil && mesh.Devices() == l.On.Devices:
		c.over(l, on, " on "+l.On.String(), "plan it again with dmir plan, or raise "+l.Attr)
		return
	case mesh != nil:
		invalid("state the budget for the devices of the mesh, or plan the function for those of the budget",
			"it is for %s, and @%s is divided over %s", diag.Count(l.On.Devices, "device"), c.Fn.Name, diag.Count(mesh.Devices(), "device"))
		return
	}
	ns, known := l.At.Int()
	if !known {
		return
	}
	r, err := c.plansFor(on, l.On.Devices)
	var none *plan.Error
	switch {
	case c.ctx.Err() != nil:
	case errs.As(err, &none):
		invalid(none.Help, "there is no plan for %s: %s", l.On, none.Msg)
	case err != nil:
		invalid("", "there is no plan for %s: %v", l.On, err)
	default:
		c.overPlan(l, float64(ns), r)
	}
}

// overPlan reports that the best plan of r takes longer than a budget, and whether another one may
// not.
func (c *Context) overPlan(l cost.Limit, budget float64, r *plan.Result) {
	best := r.Plans[0].Time * 1e9
	if best <= budget {
		return
	}
	have := dim.Const(int64(math.Round(best)))
	x := cost.Excess{Limit: cost.Limit{Attr: l.Attr, At: l.At}, Have: have}
	f := Finding{
		Op: c.Fn.Op, Message: x.Message(c.Cost) + ", with the best plan found for " + l.On.String(), Label: l.Attr + " exceeded",
		Help: fmt.Sprintf("use more devices (dmir plan --devices %d --target %s shows the plans), or raise %s", 2*l.On.Devices, l.On.Machine, l.Attr),
	}
	note := "by the planner's model no plan takes less than " + units.Time(r.Bound*1e9)
	if r.Bound*1e9 <= budget {
		note += ": whether one meets the budget is not known"
	}
	f.Notes = append(f.Notes, note)
	c.Report(f)
}

// planned are results of searches, by what was asked for, the newest at the end.
var planned struct {
	mu   sync.Mutex
	list []plannedFor
}

type plannedFor struct {
	key [sha256.Size]byte
	r   *plan.Result
	err error
}

// keptPlanned bounds them.
const keptPlanned = 16

// plansFor finds plans for the function, once for the same text and settings.
func (c *Context) plansFor(on *machine.Machine, devices int) (*plan.Result, error) {
	asked, err := json.Marshal(struct {
		Text, Func string
		Machine    *machine.Machine
		Devices    int
		Bind       map[string]int64
		Plan       any  // of dmir.toml
		Compiled   bool // plans have the figures of their texts as compiled
	}{c.program.Src.Text(), c.Fn.Name, on, devices, c.Bind, c.program.Config.Plan, c.program.Compiled != nil})
	if err != nil {
		return nil, err
	}
	key := sha256.Sum256(asked)
	planned.mu.Lock()
	i := slices.IndexFunc(planned.list, func(p plannedFor) bool { return p.key == key })
	if i >= 0 {
		defer planned.mu.Unlock()
		return planned.list[i].r, planned.list[i].err
	}
	planned.mu.Unlock()
	req, err := request.New(c.program, request.Asked{Func: c.Fn.Name, Machine: on, Devices: devices})
	var r *plan.Result
	if err == nil {
		req.Options.Top = 1
		r, err = req.Search(c.ctx)
	}
	if c.ctx.Err() != nil {
		return nil, c.ctx.Err()
	}
	if err == nil && len(r.Plans) == 0 {
		err = &plan.Error{Code: plan.CodeDevices, Msg: "none was found"}
	}
	planned.mu.Lock()
	defer planned.mu.Unlock()
	if planned.list = append(planned.list, plannedFor{key, r, err}); len(planned.list) > keptPlanned {
		planned.list = slices.Delete(planned.list, 0, 1)
	}
	return r, err
}
