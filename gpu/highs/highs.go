// Package highs solves mixed-integer linear programs with HiGHS (Huangfu and Hall, "Parallelizing the dual
// revised simplex method", 2018), whose shared library it opens at run time.
package highs

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"dmir/base/milp"
	"dmir/gpu/dylib"
)

// model is the library's handle of a program.
type model uintptr

// status is what the library's functions return.
type status int32

// failed is the status of an error; the others are success, and success with a warning.
const failed status = -1

// What Highs_getModelStatus returns, numbered as in highs_c_api.h.
const (
	optimal    = 7
	infeasible = 8
	// A program whose columns have finite bounds is not unbounded.
	unboundedOrInfeasible = 9
)

// The callbacks that may interrupt the library, numbered as in highs_c_api.h.
var interrupts = []int32{1, 2, 6} // simplex, interior point, branch and bound

// api is the functions of HiGHS that dmir calls. Integers are of 32 bits (HIGHSINT64 is not set).
type api struct {
	Create    func() model      `c:"Highs_create"`
	Destroy   func(model)       `c:"Highs_destroy"`
	Major     func() int32      `c:"Highs_versionMajor"`
	Minor     func() int32      `c:"Highs_versionMinor"`
	Patch     func() int32      `c:"Highs_versionPatch"`
	SizeOfInt func(model) int32 `c:"Highs_getSizeofHighsInt"`

	Columns func(m model, n int32, cost, lower, upper *float64, entries int32, start, index *int32, value *float64) status `c:"Highs_addCols"`

	Rows func(m model, n int32, lower, upper *float64, entries int32, start, index *int32, value *float64) status `c:"Highs_addRows"`

	Integrality  func(m model, from, to int32, kind *int32) status     `c:"Highs_changeColsIntegralityByRange"`
	Offset       func(m model, offset float64) status                  `c:"Highs_changeObjectiveOffset"`
	Guess        func(m model, x, dual, rows, rowDual *float64) status `c:"Highs_setSolution"`
	Flag         func(m model, option *byte, value int32) status       `c:"Highs_setBoolOptionValue"`
	Number       func(m model, option *byte, value float64) status     `c:"Highs_setDoubleOptionValue"`
	Whole        func(m model, option *byte, value int32) status       `c:"Highs_setIntOptionValue"`
	Callback     func(m model, callback, data uintptr) status          `c:"Highs_setCallback"`
	Start        func(m model, kind int32) status                      `c:"Highs_startCallback"`
	Run          func(m model) status                                  `c:"Highs_run"`
	State        func(m model) int32                                   `c:"Highs_getModelStatus"`
	Solution     func(m model, x, dual, rows, rowDual *float64) status `c:"Highs_getSolution"`
	NumberResult func(m model, info *byte, value *float64) status      `c:"Highs_getDoubleInfoValue"`
	WholeResult  func(m model, info *byte, value *int32) status        `c:"Highs_getIntInfoValue"`
}

// A Library is an open HiGHS. It implements milp.Solver, also for concurrent calls.
type Library struct {
	api
	Path    string
	Version string // "HiGHS 1.15.1"
}

// Open opens a library and verifies that it is one that dmir can call.
func Open(path string) (*Library, error) {
	l, err := dylib.Open(path)
	if err != nil {
		return nil, err
	}
	lib := &Library{Path: path}
	if err := l.BindAll(&lib.api); err != nil {
		return nil, err
	}
	lib.Version = fmt.Sprintf("HiGHS %d.%d.%d", lib.Major(), lib.Minor(), lib.Patch())
	m := lib.Create()
	if m == 0 {
		return nil, fmt.Errorf("%s cannot be used: it makes no model", path)
	}
	defer lib.Destroy(m)
	if size := lib.SizeOfInt(m); size != 4 {
		return nil, fmt.Errorf("%s cannot be used: its integers have %d bytes, not 4", path, size)
	}
	return lib, nil
}

// Name is that of the solver.
func (l *Library) Name() string { return "highs" }

// runs are the calls of Solve that the callback may interrupt, by the number that it is given.
var runs struct {
	sync.Mutex
	last  uintptr
	ended map[uintptr]*atomic.Bool
}

// callback is the C function that the library calls at times: it sets the first field of its data, an int,
// if the run is to end. There is one, since the process has a limited number of them.
var callback = sync.OnceValue(func() uintptr {
	return dylib.Callback(func(kind int32, message, out uintptr, in unsafe.Pointer, run uintptr) uintptr {
		runs.Lock()
		ended := runs.ended[run]
		runs.Unlock()
		if in != nil && ended != nil && ended.Load() {
			*(*int32)(in) = 1
		}
		return 0
	})
})

// Solve solves a program on one core. Bounds and optima hold within HiGHS's tolerances: 1e-6 of integrality,
// 1e-7 of feasibility and of optimality.
func (l *Library) Solve(ctx context.Context, p *milp.Program, limits milp.Limits) (milp.Result, error) {
	result := milp.Result{Bound: math.Inf(-1)}
	if err := ctx.Err(); err != nil {
		return result, err
	}
	runtime.LockOSThread() // the library keeps its threads by the thread that calls it
	defer runtime.UnlockOSThread()
	m := l.Create()
	if m == 0 {
		return result, errors.New("highs: no memory for a model")
	}
	defer l.Destroy(m)
	if err := l.load(m, p, limits); err != nil {
		return result, err
	}
	var ended atomic.Bool
	defer context.AfterFunc(ctx, func() { ended.Store(true) })()
	runs.Lock()
	if runs.ended == nil {
		runs.ended = map[uintptr]*atomic.Bool{}
	}
	runs.last++
	run := runs.last
	runs.ended[run] = &ended
	runs.Unlock()
	defer func() {
		runs.Lock()
		delete(runs.ended, run)
		runs.Unlock()
	}()
	s := l.Callback(m, callback(), run)
	for _, kind := range interrupts {
		if s != failed {
			s = l.Start(m, kind)
		}
	}
	if s == failed {
		return result, errors.New("highs: Highs_setCallback failed")
	}
	if l.Run(m) == failed && l.State(m) != infeasible {
		return result, fmt.Errorf("highs: Highs_run failed in state %d", l.State(m))
	}
	err := l.result(m, p, &result)
	if err == nil && !result.Optimal && !result.Infeasible {
		err = ctx.Err()
	}
	return result, err
}

// load passes a program and its limits to the library.
func (l *Library) load(m model, p *milp.Program, limits milp.Limits) error {
	n, rows := int32(len(p.Cost)), int32(len(p.RowLower))
	kinds := make([]int32, n)
	for i, whole := range p.Integer {
		if whole {
			kinds[i] = 1
		}
	}
	steps := []struct {
		name string
		call func() status
	}{
		{"output_flag", func() status { return l.Flag(m, cString("output_flag"), 0) }},
		{"threads", func() status { return l.Whole(m, cString("threads"), 1) }},
		{"mip_rel_gap", func() status { return l.Number(m, cString("mip_rel_gap"), limits.Gap) }},
		{"mip_abs_gap", func() status { return l.Number(m, cString("mip_abs_gap"), 0) }},
		{"time_limit", func() status {
			if limits.Time <= 0 {
				return 0
			}
			return l.Number(m, cString("time_limit"), limits.Time.Seconds())
		}},
		{"Highs_addCols", func() status {
			return l.Columns(m, n, first(p.Cost), first(p.Lower), first(p.Upper), 0, nil, nil, nil)
		}},
		{"Highs_changeColsIntegralityByRange", func() status {
			if n == 0 {
				return 0
			}
			return l.Integrality(m, 0, n-1, first(kinds))
		}},
		{"Highs_addRows", func() status {
			return l.Rows(m, rows, first(p.RowLower), first(p.RowUpper), int32(len(p.Index)), first(p.Start), first(p.Index), first(p.Value))
		}},
		{"Highs_changeObjectiveOffset", func() status { return l.Offset(m, p.Offset) }},
		{"Highs_setSolution", func() status {
			if p.Guess == nil {
				return 0
			}
			return l.Guess(m, first(p.Guess), nil, nil, nil)
		}},
	}
	for _, s := range steps {
		if s.call() == failed {
			return fmt.Errorf("highs: %s failed", s.name)
		}
	}
	return nil
}

// result reads what is known when the library has run.
func (l *Library) result(m model, p *milp.Program, r *milp.Result) error {
	switch l.State(m) {
	case infeasible, unboundedOrInfeasible:
		r.Infeasible, r.Bound = true, math.Inf(1)
		return nil
	case optimal:
		r.Optimal = true
	}
	integers := false
	for _, whole := range p.Integer {
		integers = integers || whole
	}
	info := "objective_function_value"
	if integers {
		info = "mip_dual_bound"
	}
	if r.Optimal || integers {
		if l.NumberResult(m, cString(info), &r.Bound) == failed || math.IsNaN(r.Bound) {
			r.Bound = math.Inf(-1)
		}
	}
	var has int32
	const feasible = 2 // kHighsSolutionStatusFeasible
	if l.WholeResult(m, cString("primal_solution_status"), &has) == failed || has != feasible || len(p.Cost) == 0 {
		return nil
	}
	x, dual := make([]float64, len(p.Cost)), make([]float64, len(p.Cost))
	rows, rowDual := make([]float64, len(p.RowLower)), make([]float64, len(p.RowLower))
	if l.Solution(m, first(x), first(dual), first(rows), first(rowDual)) == failed {
		return errors.New("highs: Highs_getSolution failed")
	}
	r.X = x
	return nil
}

func cString(s string) *byte { return &append([]byte(s), 0)[0] }

// first is the address of a slice's elements, nil if it has none.
func first[T any](s []T) *T {
	if len(s) == 0 {
		return nil
	}
	return &s[0]
}
