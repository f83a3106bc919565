package feature

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"dmir/analysis/cost"
	"dmir/analysis/program"
)

// Cost is the cost of a file or a function, for a page of its own.
type Cost struct {
	Title string
	Text  string // the table of dmir cost
	JSON  json.RawMessage
}

// CostOf is the cost of the function called name (without "@"), or of all
// functions where name is empty.
func CostOf(p *program.Program, name string) (*Cost, error) {
	funcs, title := p.Funcs, filepath.Base(p.Src.Path)
	if name != "" {
		f := funcNamed(p, name)
		if f == nil {
			return nil, fmt.Errorf("there is no function @%s", name)
		}
		funcs, title = []*cost.Func{f}, "@"+name
	}
	raw, err := cost.JSON(p.Target, funcs)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	if err := cost.Table(&b, p.Target, funcs); err != nil {
		return nil, err
	}
	return &Cost{Title: "Cost of " + title + " on " + p.Target.Name, Text: b.String(), JSON: raw}, nil
}
