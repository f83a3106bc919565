package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"dmir/analysis/machine"
	"dmir/analysis/plan"
	"dmir/analysis/program"
	"dmir/bench/models"
	"dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// A Row is what the planner makes of a run.
type Row struct {
	Run        Run        `json:"run"`
	Parameters int64      `json:"parameters"`
	Published  float64    `json:"published_s"`
	Fixed      *plan.Plan `json:"fixed,omitempty"` // the plan that was published
	FixedWhy   string     `json:"fixed_why,omitempty"`
	Best       *plan.Plan `json:"best,omitempty"`
	BestWhy    string     `json:"best_why,omitempty"`
	Searched   int        `json:"searched"`
	Gap        float64    `json:"gap"`
	Elapsed    float64    `json:"elapsed_s"` // of the search for the best plan
}

// Error is the predicted time against the published one, relative; ok is false where there is none.
func (r Row) Error() (e float64, ok bool) {
	if r.Fixed == nil {
		return 0, false
	}
	return r.Fixed.Time/r.Published - 1, true
}

func (r Row) summary() string {
	predicted, best := "no prediction", "no plan"
	if r.Fixed != nil {
		predicted = "predicted " + seconds(r.Fixed.Time)
	}
	if r.Best != nil {
		best = "best " + seconds(r.Best.Time)
	}
	return fmt.Sprintf("published %s, %s, %s", seconds(r.Published), predicted, best)
}

// A search is plan.Search.
type search func(ctx context.Context, m *ir.Module, fn *ir.Func, o plan.Options) (*plan.Result, error)

// evaluate predicts a run with its published plan and, unless only that is asked for, searches the best one, each
// within a time limit.
func evaluate(ctx context.Context, set *Set, r Run, find search, limit time.Duration, fixedOnly bool) (Row, error) {
	row := Row{Run: r}
	m, err := set.module(r)
	if err != nil {
		return row, err
	}
	if row.Parameters, err = models.Parameters(m); err != nil {
		return row, err
	}
	o := plan.Options{Machine: set.machine(r), Devices: r.Devices, Top: 1}
	row.Published = set.seconds(r, r.Figure, o.Machine, float64(row.Parameters))
	fn := m.Func("train")
	fixed := o
	fixed.Fix = r.Plan.setting()
	result, why, err := within(ctx, limit, m, fn, fixed, find)
	if err != nil {
		return row, err
	}
	row.FixedWhy = why
	if result != nil {
		row.Fixed = result.Plans[0]
	}
	if fixedOnly {
		return row, row.possible(set, o.Machine)
	}
	o.Limit = limit // what is found until then is an answer
	if result, why, err = within(ctx, 2*limit, m, fn, o, find); err != nil {
		return row, err
	}
	row.BestWhy = why
	if result != nil {
		row.Best, row.Searched, row.Gap, row.Elapsed = result.Plans[0], result.Searched, result.Gap, result.Elapsed
	}
	return row, row.possible(set, o.Machine)
}

// possible is an error if a predicted step takes less than its products at the peak rate of the devices: then the
// planner counts too little.
func (r Row) possible(set *Set, m *machine.Machine) error {
	least := set.products(r.Run, float64(r.Parameters)) / (m.Peak(true, types.BF16) * float64(r.Run.Devices))
	for _, p := range []*plan.Plan{r.Fixed, r.Best} {
		if p != nil && p.Time < least {
			return fmt.Errorf("a step of %s is predicted, but its products alone take %s at the peak rate (%s)",
				seconds(p.Time), seconds(least), describe(p))
		}
	}
	return nil
}

// module is the training step of a run.
func (s *Set) module(r Run) (*ir.Module, error) {
	text, err := s.text(r)
	if err != nil {
		return nil, err
	}
	p := program.Load(source.New(r.Model+".dmir", text), program.Options{})
	for _, d := range p.Diags {
		if d.Severity == diag.Error {
			return nil, fmt.Errorf("the text of the model has an error: %s %s", d.Code, d.Message)
		}
	}
	return p.Modules[0], nil
}

// within searches within a time limit. That there is no plan, or none in time, is why and no error.
func within(
	ctx context.Context, limit time.Duration, m *ir.Module, fn *ir.Func, o plan.Options, find search,
) (r *plan.Result, why string, err error) {
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r, err = find(timed, m, fn, o)
	var none *plan.Error
	switch {
	case errors.As(err, &none):
		return nil, none.Code + ": " + none.Msg, nil
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return nil, "not found in " + limit.String(), nil
	case err != nil:
		return nil, "", err
	case len(r.Plans) == 0:
		return nil, "", errors.New("the search has no plan and no error")
	}
	return r, "", nil
}
