package interp

import (
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/types"
)

// call is one execution of an op.
type call struct {
	*machine
	frame *frame
	op    *ir.Op
	in    []*tensor.Tensor
}

// executor computes an op's results. Operands are never written to. Results are
// discarded after cancellation, so an executor may then return early.
type executor func(c *call) ([]*tensor.Tensor, error)

// executors has one entry for every op that can run. It is filled in init
// because executors of regions run other ops through it.
var executors map[string]executor

func init() {
	executors = map[string]executor{}
	for _, family := range []map[string]executor{
		unaryExecutors(), binaryExecutors(), selectionExecutors(), contractionExecutors(),
		reductionExecutors(), normalizationExecutors(), orderExecutors(), attentionExecutors(),
		movementExecutors(), indexingExecutors(), sourceExecutors(), controlExecutors(), checkExecutors(), trainingExecutors(), distributionExecutors(), segmentExecutors(),
	} {
		for name, e := range family {
			executors[name] = e
		}
	}
}

// outElem is the element type of result i.
func (c *call) outElem(i int) types.Elem {
	if t := tensorType(c.op.Results[i].Type); t != nil {
		return t.Elem
	}
	return types.InvalidElem
}

// outShape is the shape of result i in its type.
func (c *call) outShape(i int) ([]int, *Error) {
	t := tensorType(c.op.Results[i].Type)
	if t == nil {
		return nil, c.errorf("DM703", "a result of type %s cannot be created", c.op.Results[i].Type)
	}
	shape, bad := shapeOf(t, c.frame.bind)
	if bad != nil {
		return nil, sizeError(c.op, t, *bad)
	}
	return shape, nil
}

func (c *call) errorf(code, format string, args ...any) *Error {
	return errorAt(c.op, code, "", format, args...)
}

func one(t *tensor.Tensor) []*tensor.Tensor { return []*tensor.Tensor{t} }

// storage is t's elements as a slice of T, nil if they have another kind of
// storage.
func storage[T float32 | float64 | int64 | uint8](t *tensor.Tensor) []T {
	var zero T
	switch any(zero).(type) {
	case float32:
		return any(t.F32).([]T)
	case float64:
		return any(t.F64).([]T)
	case int64:
		return any(t.Int).([]T)
	default:
		return any(t.Bool).([]T)
	}
}

// narrow converts computed elements to the range of elem: floats are rounded,
// integers wrapped.
func narrow[T float32 | float64 | int64 | uint8](elem types.Elem, x []T) {
	switch x := any(x).(type) {
	case []float32:
		tensor.RoundSlice(elem, x)
	case []int64:
		if elem.Bytes() == 8 {
			return
		}
		for i, v := range x {
			x[i] = tensor.Wrap(elem, v)
		}
	}
}
