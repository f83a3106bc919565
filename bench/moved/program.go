package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dmir/analysis/program"
	"dmir/dialect/ir"
	"dmir/dialect/types"
	"dmir/syntax/source"
)

// entry is one program: testdata/NAME.dmir and the function NAME of programs.py.
type entry struct {
	name     string
	constant []string // arguments without a gradient
	noGrad   bool     // the forward pass alone
	// Why the plan moves more than Inductor, where it does.
	forward, both string
}

// step is an entry's program as it is planned and measured.
type step struct {
	entry
	text      string // with @forward
	train     string // with @train, results and gradients; "" without gradients
	args      []*ir.Value
	fn        *ir.Func
	wanted    []bool       // per argument: has a gradient
	cotangent []types.Type // of the floating-point results, none for a loss
}

// load reads an entry's text and writes its training step: its values and the
// gradients of its arguments, given the cotangents of its results.
func load(dir string, e entry) (*step, error) {
	text, err := os.ReadFile(filepath.Join(dir, e.name+".dmir"))
	if err != nil {
		return nil, err
	}
	p := program.Load(source.New(e.name+".dmir", string(text)), program.Options{})
	if p.HasErrors() {
		return nil, fmt.Errorf("%s: %s", e.name, p.Diags[0].Message)
	}
	fn := p.Modules[0].Func("forward")
	if fn == nil {
		return nil, fmt.Errorf("%s has no @forward", e.name)
	}
	s := &step{entry: e, text: string(text), fn: fn, args: fn.Args}
	for _, a := range fn.Args {
		s.wanted = append(s.wanted, !e.noGrad && !slices.Contains(e.constant, a.Name[1:]) && isFloat(a.Type))
	}
	if e.noGrad {
		return s, nil
	}
	if t, ok := fn.Results[0].(*types.Tensor); !ok || t.Rank() > 0 {
		for _, t := range fn.Results {
			if isFloat(t) {
				s.cotangent = append(s.cotangent, t)
			}
		}
	}
	s.train = trainText(s)
	return s, nil
}

func isFloat(t types.Type) bool {
	tt, ok := t.(*types.Tensor)
	return ok && tt.Elem.IsFloat()
}

// trainText is the program with @train, which calls dm.grad, as its public function.
func trainText(s *step) string {
	var params, operands, operandTypes, wrt, results, resultTypes []string
	for i, t := range s.fn.Results {
		results, resultTypes = append(results, fmt.Sprintf("%%r%d", i)), append(resultTypes, t.String())
	}
	add := func(name string, t types.Type) {
		params, operands, operandTypes = append(params, name+": "+t.String()), append(operands, name), append(operandTypes, t.String())
	}
	for i, a := range s.args {
		add(a.Name, a.Type)
		if s.wanted[i] {
			wrt = append(wrt, fmt.Sprint(i))
			results, resultTypes = append(results, "%d_"+a.Name[1:]), append(resultTypes, a.Type.String())
		}
	}
	for i, t := range s.cotangent {
		add(fmt.Sprintf("%%cotangent_%d", i), t)
	}
	r, t := strings.Join(results, ", "), strings.Join(resultTypes, ", ")
	cotangents := ""
	if n := len(s.cotangent); n > 0 {
		cotangents = fmt.Sprintf(", cotangents = %d", n)
	}
	train := fmt.Sprintf("\nfunc.func @train(%s) -> (%s) {\n  %s = dm.grad @forward %s, wrt = [%s]%s : (%s) -> (%s)\n  return %s : %s\n}\n",
		strings.Join(params, ", "), t, r, strings.Join(operands, ", "), strings.Join(wrt, ", "), cotangents, strings.Join(operandTypes, ", "), t, r, t)
	return strings.Replace(s.text, "func.func @forward", "func.func private @forward", 1) + train
}
