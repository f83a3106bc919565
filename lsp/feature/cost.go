package feature

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"dmir/analysis/cost"
	"dmir/analysis/program"
	"dmir/dialect/ir"
)

// Cost is the cost of a file or a function, for a page of its own.
type Cost struct {
	Title string
	Text  string // the table of dmir cost
	JSON  json.RawMessage
}

// CostOf is the cost of the function called name (without "@"), or of all
// functions where name is empty, beside the measured times where there are any.
func CostOf(p *program.Program, ran *Times, name string) (*Cost, error) {
	funcs, title := p.Funcs, filepath.Base(p.Src.Path)
	if name != "" {
		f := p.Func(name)
		if f == nil {
			return nil, fmt.Errorf("there is no function @%s", name)
		}
		funcs, title = []*cost.Func{f}, "@"+name
	}
	raw, err := json.Marshal(cost.JSON(p.Target, funcs))
	if err != nil {
		return nil, err
	}
	var o cost.TableOptions
	if ran != nil {
		o.Measured, o.Device = map[*ir.Op]int64{}, ran.Device
		for _, f := range funcs {
			byOp(o.Measured, ran, f.Entries)
		}
		if len(o.Measured) == 0 {
			o.Measured = nil
		}
	}
	var b strings.Builder
	if err := cost.Table(&b, p.Target, funcs, o); err != nil {
		return nil, err
	}
	return &Cost{Title: "Cost of " + title + " on " + p.Target.Name, Text: b.String(), JSON: raw}, nil
}

func byOp(into map[*ir.Op]int64, ran *Times, es []*cost.Entry) {
	for _, e := range es {
		if ns, ok := ran.Ops[e.Line()]; ok {
			into[e.Op] = ns
		}
		byOp(into, ran, e.Inner)
	}
}
