package gradient_test

import (
	"fmt"
	"math"
	"testing"

	"dmir/compile/tensor"
	"dmir/dialect/op"
	"dmir/dialect/types"
)

const (
	f64 = types.F64
	i64 = types.I64
)

type given = map[string]*tensor.Tensor

type variant struct {
	name, in, clauses, out string
	given                  given
}

// functions are uses of the ops that are a function of one number, in each of its
// forms, where it is tame.
func functions() (vs []variant) {
	for _, d := range op.All() {
		if d.Scalar == nil || d.Scalar.Range == nil {
			continue
		}
		v := variant{d.Name, "2x3", "", "2x3", nil}
		switch tame := d.Scalar.Tame; {
		case math.IsInf(tame.Hi, 1):
			x := positive(2, 3)
			for k := range x.Len() {
				x.SetFloat(k, x.Float(k)+tame.Lo)
			}
			v.given = given{"a0": x}
		case tame != op.Interval{}:
			x := tensor.New(f64, 2, 3)
			for k := range x.Len() {
				x.SetFloat(k, tame.Hi*math.Sin(float64(k+1)))
			}
			v.given = given{"a0": x}
		}
		forms := []string{""}
		if a := d.Attr(d.Scalar.Form); a != nil {
			forms = a.Enum
		}
		for _, form := range forms {
			if form != "" {
				v.clauses = d.Scalar.Form + " = " + form
			}
			vs = append(vs, v)
		}
	}
	return vs
}

// variants are uses of the other differentiable ops, each attribute among them.
var variants = []variant{
	{"add", "2x3 3", "", "2x3", nil},
	{"add", "2x1 4x2x3", "", "4x2x3", nil},
	{"sub", "3 2x3", "", "2x3", nil},
	{"mul", "2x1 2x3", "", "2x3", nil},
	{"mul", "2x3 _", "", "2x3", nil},
	{"div", "2x3 3", "", "2x3", given{"a1": positive(3)}},
	{"max", "2x3 2x3", "", "2x3", nil},
	{"min", "2x3 3", "", "2x3", nil},
	{"pow", "2x3 3", "", "2x3", given{"a0": positive(2, 3)}},
	{"rem", "2x3 3", "", "2x3", given{"a1": positive(3)}},
	{"atan2", "2x3 3", "", "2x3", nil},

	{"select", "2x3:i1 2x3 3", "", "2x3", nil},
	{"clamp", "_ 4x3 3", "", "4x3", nil},
	{"clamp", "3 4x3 _", "", "4x3", nil},
	{"convert", "2x3", "", "2x3", nil},
	{"dropout", "2x8", "rate = 0.4, seed = 3", "2x8", nil},
	{"dropout", "2x8", "rate = 0.4, seed = 3", "2x8 2x8:i1", nil},
	{"dropout", "2x8 _:i64", "rate = 0.4, seed = 3", "2x8", nil},

	{"mean", "2x3x4", "dims = [1]", "2x4", nil},
	{"mean", "2x3", "", "_", nil},
	{"variance", "2x3x4", "dims = [0, 2], keep_dims = true", "1x3x1", nil},
	{"variance", "2x3", "correction = 0", "_", nil},
	{"logsumexp", "2x3x4", "dims = [0, 2]", "3", nil},
	{"logsumexp", "2x3", "dims = [1], keep_dims = true", "2x1", nil},
	{"cumprod", "3x4", "dim = 0", "3x4", nil},
	{"cumprod", "2x5", "exclusive = true", "2x5", nil},
	{"cumprod", "2x5", "reverse = true", "2x5", given{"a0": tensor.FromFloats(f64, []int{2, 5}, []float64{2, 0, 3, 0, -1, 1, -2, 0, 0.5, 3})}},
	{"cumprod", "2x5", "reverse = true, exclusive = true", "2x5", given{"a0": tensor.FromFloats(f64, []int{2, 5}, []float64{2, 0, 3, 4, -1, 0, -2, 5, 0.5, 0})}},
	{"cummax", "3x4", "dim = 0", "3x4", nil},
	{"cummax", "2x1", "dim = 1", "2x1", nil},
	{"cummax", "2x3x4", "dim = -2", "2x3x4", nil},
	{"cummax", "3x4", "reverse = true", "3x4", nil},
	{"cummax", "2x5", "reverse = true", "2x5", given{"a0": tensor.FromFloats(f64, []int{2, 5}, []float64{0, 2, 1, 4, 3, 5, -4, 3, 2, 1})}},
	{"roll", "3x4", "shifts = [1, -6]", "3x4", nil},
	{"roll", "3x4", "shifts = [3], dims = [1]", "3x4", nil},
	{"rope", "2x3x4 3x2 1x2", "", "2x3x4", nil},
	{"rope", "2x3x4 2 2x1x2", "pairs = interleaved", "2x3x4", nil},
	{"softmax", "2x3x4", "dim = 1", "2x3x4", nil},
	{"softmax", "2x4", "", "2x4", nil},
	{"log_softmax", "2x4", "", "2x4", nil},
	{"log_softmax", "2x3x4", "dim = 0", "2x3x4", nil},
	{"layer_norm", "3x5", "", "3x5", nil},
	{"layer_norm", "3x5 5", "epsilon = 0.01", "3x5", nil},
	{"layer_norm", "2x3x4 4x3 4x3", "dims = [2, 1]", "2x3x4", nil},
	{"layer_norm", "2x3x4 4x2x3 4x2x3", "dims = [2, 0, 1]", "2x3x4", nil},
	{"rms_norm", "3x5", "", "3x5", nil},
	{"rms_norm", "3x5 5", "epsilon = 0.01", "3x5", nil},
	{"rms_norm", "2x3x4 2x4", "dims = [0, 2]", "2x3x4", nil},
	{"batch_norm", "4x3x2 3 3", "", "4x3x2", nil},
	{"batch_norm", "4x3x2 3 3", "", "4x3x2 3 3", nil},
	{"batch_norm", "4x3x2 2 2", "dim = 2, epsilon = 0.1", "4x3x2", nil},
	{"batch_norm", "4x3x2 3 3 3 3", "", "4x3x2", given{"a4": positive(3)}},
	{"group_norm", "2x4x3", "groups = 2", "2x4x3", nil},
	{"group_norm", "2x4x3 4 4", "groups = 2", "2x4x3", nil},
	{"group_norm", "2x4 4", "groups = 1", "2x4", nil},
	{"cross_entropy", "3x5 3:i64", "", "_", given{"a1": whole(5, 3)}},
	{"cross_entropy", "3x5 3:i64", "reduction = sum", "_", given{"a1": whole(7, 3)}},
	{"cross_entropy", "3x5x2 3x2:i64", "reduction = none, dim = 1", "3x2", given{"a1": whole(5, 3, 2)}},
	{"cross_entropy", "4x5 4:i64", "ignore_index = 3, label_smoothing = 0.2", "_", given{"a1": whole(5, 4)}},
	{"cross_entropy", "4x5 4:i64", "ignore_index = 1, reduction = sum", "_", given{"a1": whole(5, 4)}},
	{"cross_entropy", "4x5 4:i64", "ignore_index = 1, label_smoothing = 1.0, reduction = none", "4", given{"a1": whole(5, 4)}},
	{"cross_entropy", "5x3 3:i64", "dim = 0", "_", given{"a1": whole(5, 3)}},

	{"reduce add", "2x3x4", "dims = [1]", "2x4", nil},
	{"reduce add", "2x3x4", "", "_", nil},
	{"reduce add", "2x3x4", "dims = [2, 0], keep_dims = true", "1x3x1", nil},
	{"reduce max", "2x3x4", "dims = [1]", "2x4", nil},
	{"reduce min", "2x3", "keep_dims = true", "1x1", nil},
	{"reduce mul", "2x3x4", "dims = [0, 2]", "3", nil},
	{"reduce mul", "2x3", "dims = [1]", "2", given{"a0": tensor.FromFloats(f64, []int{2, 3}, []float64{0, 2, 3, 0, 0, 5})}},
	{"cumsum", "2x4", "", "2x4", nil},
	{"cumsum", "2x4", "dim = 0, exclusive = true", "2x4", nil},
	{"cumsum", "2x4", "reverse = true", "2x4", nil},
	{"cumsum", "2x4", "reverse = true, exclusive = true", "2x4", nil},
	{"reduce_window add", "1x2x6x6", "window_dimensions = [1, 1, 2, 3], window_strides = [1, 1, 2, 2], padding = [[0, 0], [0, 0], [1, 1], [0, 2]]", "1x2x4x3", nil},
	{"reduce_window add", "7", "window_dimensions = [2], window_strides = [3]", "2", nil},
	{"reduce_window add", "9", "window_dimensions = [3], window_dilations = [2], padding = [[3, 1]]", "9", nil},
	{"reduce_window mul", "1x6", "window_dimensions = [1, 3], window_strides = [1, 2]", "1x2", nil},
	{"reduce_window max", "1x2x5x5", "window_dimensions = [1, 1, 3, 2], window_strides = [1, 1, 2, 2], padding = [[0, 0], [0, 0], [1, 1], [0, 1]]", "1x2x3x3", nil},
	{"reduce_window max", "6", "window_dimensions = [1], window_strides = [2]", "3", nil},
	{"reduce_window min", "8", "window_dimensions = [3], window_dilations = [2], window_strides = [2]", "2", nil},
	{"select_and_scatter max", "1x5x5 1x3x3", "window_dimensions = [1, 3, 2], window_strides = [1, 2, 2], padding = [[0, 0], [1, 1], [0, 1]]", "1x5x5", nil},
	{"select_and_scatter min", "8 2", "window_dimensions = [3], window_dilations = [2], window_strides = [2]", "8", nil},
	{"top_k", "2x5", "k = 2", "2x2", nil},
	{"top_k", "5x2", "k = 3, dim = 0, largest = false", "3x2 3x2:i64", nil},
	{"sort", "2x5", "", "2x5", nil},
	{"sort", "3x4x2", "dim = 1, descending = true", "3x4x2 3x4x2:i32", nil},

	{"einsum \"ij,jk->ik\"", "2x3 3x4", "", "2x4", nil},
	{"einsum \"bhlm,bmhp->blhp\"", "2x2x3x3 2x3x2x2", "", "2x3x2x2", nil},
	{"einsum \"ij->ji\"", "2x3", "", "3x2", nil},
	{"einsum \"ij->i\"", "2x3", "", "2", nil},
	{"einsum \"ii->i\"", "3x3", "", "3", nil},
	{"einsum \"ii->\"", "3x3", "", "_", nil},
	{"einsum \"iji,kj->jk\"", "2x3x2 4x3", "", "3x4", nil},
	{"einsum \"ij,k->jk\"", "2x3 4", "", "3x4", nil},
	{"einsum \"i,j->ij\"", "2 3", "", "2x3", nil},
	{"einsum \"ij,jk,kl->il\"", "2x3 3x4 4x2", "", "2x2", nil},
	{"einsum \"ij,ij->\"", "2x3 2x3", "", "_", nil},
	{"matmul", "2x3x4 4x5", "", "2x3x5", nil},
	{"matmul", "3x4 2x1x4x5", "", "2x1x3x5", nil},
	{"matmul", "2x4x3 2x4x5", "transpose_a = true", "2x3x5", nil},
	{"matmul", "3x4 5x4", "transpose_b = true", "3x5", nil},
	{"matmul", "4x3 2x5x4", "transpose_a = true, transpose_b = true", "2x3x5", nil},
	{"matmul", "2x1x3x4 2x5x4", "transpose_b = true", "2x2x3x5", nil},
	{"matmul", "2x1x4x3 1x1x4x5", "transpose_a = true", "2x1x3x5", nil},
	{"einsum \"...ij,...jk->...ik\"", "5x1x2x3 4x3x2", "", "5x4x2x2", nil},
	{"einsum \"...i,ij...,...->j...\"", "1x3x2 2x4x3 3", "", "4x1x3", nil},
	{"convolution", "2x2x5x5 3x2x3x3", "", "2x3x3x3", nil},
	{"convolution", "1x2x5x6 3x2x3x2", "window_strides = [2, 3], padding = [[1, 2], [0, 1]]", "1x3x3x2", nil},
	{"convolution", "2x4x7 6x2x2", "feature_group_count = 2, rhs_dilation = [2], window_strides = [2]", "2x6x3", nil},
	{"convolution", "1x3x6 3x1x2", "feature_group_count = 3, padding = [[3, 0]]", "1x3x8", nil},
	{"convolution", "3x4x5 6x2x2", "feature_group_count = 2, padding = [[0, 1]]", "3x6x5", nil},
	{"convolution", "2x4x2x3x3 4x2x2x2x1", "feature_group_count = 2, padding = [[1, 0], [0, 0], [0, 0]], window_strides = [1, 1, 2]", "2x4x2x2x2", nil},
	{"convolution", "1x1x8 1x1x2", "window_strides = [4]", "1x1x2", nil},
	{"convolution", "1x1x1 1x1x1", "window_strides = [3], padding = [[5, 5]]", "1x1x4", nil},
	{"convolution", "1x1x2 1x1x1", "window_strides = [2], padding = [[3, 2]]", "1x1x4", nil},
	{"convolution", "2x2x4 3x2x3", "lhs_dilation = [2], padding = [[2, 2]]", "2x3x9", nil},
	{"convolution", "1x4x3x2 6x2x2x3", "lhs_dilation = [3, 2], feature_group_count = 2, rhs_dilation = [2, 1], window_strides = [2, 1], padding = [[0, 1], [2, 1]]", "1x6x3x4", nil},
	{"convolution", "1x2x5 2x2x1", "lhs_dilation = [2], window_strides = [3]", "1x2x3", nil},
	{"convolution", "1x2x3x3x3 2x2x2x2x2", "padding = [[1, 0], [0, 1], [0, 0]]", "1x2x3x3x2", nil},

	{"transpose", "2x3x4", "dims = [2, 0, 1]", "4x2x3", nil},
	{"reshape", "2x6", "", "3x4", nil},
	{"broadcast", "3", "dims = [0]", "3x4", nil},
	{"broadcast", "3x1", "dims = [2, 0]", "5x2x3", nil},
	{"broadcast", "2x3", "dims = [1, 0]", "3x2", nil},
	{"broadcast", "_", "", "2x2", nil},
	{"slice", "4x6", "start_indices = [1, 0], limit_indices = [3, 6], strides = [1, 2]", "2x3", nil},
	{"slice", "4x7", "start_indices = [1], limit_indices = [7], strides = [3], dims = [1]", "4x2", nil},
	{"slice", "4x7", "start_indices = [2], limit_indices = [2], dims = [0]", "0x7", nil},
	{"dynamic_slice", "4x6 :i64 :i64", "slice_sizes = [2, -1]", "2x6", given{"a1": whole(5)}},
	{"dynamic_update_slice", "4x6 2x3 :i64 :i64", "", "4x6", given{"a2": whole(5), "a3": whole(9)}},
	{"concatenate", "2x3 2x1 2x2", "dim = 1", "2x6", nil},
	{"pad", "2x3 _", "low = [1, 0], high = [1, 2], interior = [0, 2]", "4x9", nil},
	{"pad", "2x3 _", "", "2x3", nil},
	{"reverse", "2x3", "dims = [1]", "2x3", nil},
	{"gather", "4x3 2x2:i64", "dim = 0", "2x2x3", given{"a1": whole(6, 2, 2)}},
	{"gather", "2x4x3 2x5:i64", "dim = 1, batch_dims = 1", "2x5x3", given{"a1": whole(4, 2, 5)}},
	{"segment_reduce add", "7x3 5:i64", "", "4x3", given{"a1": integers(1, 1, 3, 3, 6)}},
	{"segment_reduce add", "2x7x3 4:i64", "dim = 1", "2x3x3", given{"a1": integers(0, 2, 2, 7)}},
	{"segment_reduce max", "3x7 5:i64", "dim = -1", "3x4", given{"a1": integers(0, 1, 3, 6, 7)}},
	{"segment_reduce min", "7x3 4:i64", "", "3x3", given{"a1": integers(2, 4, 6, 9)}},
	{"segment_attention", "2x4x3 1x5x3 1x5x2 5:i64 7:i64", "scale = 0.5", "2x4x2", given{"a3": integers(0, 2, 2, 5, 6), "a4": integers(0, 3, 1, 2, 4, 2, 0)}},
	{"segment_attention", "2x4x3 2x6x3 2x6x3 3:i64 4:i64 1x4x2x2", "block = [2, 2]", "2x4x3", given{"a3": integers(0, 2, 3), "a4": integers(0, 2, 1, 2)}},
	{"segment_attention", "4x6x1 2x6x1 2x6x3 3:i64 4:i64 4x4x3x2", "block = [3, 2], scores = sum, scale = 0.5, slope = 0.2", "4x6x3", given{"a3": integers(0, 2, 3), "a4": integers(0, 2, 1, 2)}},
	{"segment_attention", "2x4x3 1x5x3 1x5x2 5:i64 7:i64 1x1x3", "scores = sum, leak = 0.2, scale = 0.5", "2x4x2", given{"a3": integers(0, 2, 2, 5, 6), "a4": integers(0, 3, 1, 2, 4, 2, 0)}},
	{"segment_attention", "4x6x3 2x6x3 2x6x2 3:i64 4:i64 4x4x3x2 4x2x3", "block = [3, 2], scores = sum, leak = 0.2, slope = 0.5", "4x6x2", given{"a3": integers(0, 2, 3), "a4": integers(0, 2, 1, 2)}},
	{"segment_product", "4:i64 5:i64 5 4:i64 6:i64 6", "columns = 4, products = 12", "4:i64 10:i64 10", given{"a0": integers(0, 2, 2, 5), "a1": integers(0, 2, 0, 1, 2), "a3": integers(0, 2, 3, 6), "a4": integers(1, 3, 0, 0, 1, 2)}},
	{"segment_product", "4:i64 5:i64 5 4:i64 6:i64 6", "kind = max, combine = add, columns = 4, products = 12", "4:i64 10:i64 10", given{"a0": integers(0, 2, 2, 5), "a1": integers(0, 2, 0, 1, 2), "a3": integers(0, 2, 3, 6), "a4": integers(1, 3, 0, 0, 1, 2)}},
	{"segment_dense_product", "4:i64 5:i64 5 4:i64 6:i64 6", "columns = 4, products = 12", "3x4", given{"a0": integers(0, 2, 2, 5), "a1": integers(0, 2, 0, 1, 2), "a3": integers(0, 2, 3, 6), "a4": integers(1, 3, 0, 0, 1, 2)}},
	{"segment_dense_product", "4:i64 5:i64 5 4:i64 6:i64 6", "columns = 4", "3x4", given{"a0": integers(0, 2, 2, 5), "a1": integers(0, 2, 0, 1, 2), "a3": integers(0, 2, 3, 6), "a4": integers(1, 3, 0, 0, 1, 2)}},
	{"segment_sample a", "4:i64 5:i64 4:i64 6:i64 4:i64 7:i64 6 7", "columns = 4, products = 12", "5", given{"a0": integers(0, 2, 2, 5), "a1": integers(0, 2, 0, 1, 2), "a2": integers(0, 2, 3, 6), "a3": integers(1, 3, 0, 0, 1, 2), "a4": integers(0, 2, 3, 7), "a5": integers(1, 2, 0, 0, 1, 2, 3)}},
	{"segment_sample b", "4:i64 5:i64 4:i64 6:i64 4:i64 7:i64 5 7", "columns = 4, products = 12", "6", given{"a0": integers(0, 2, 2, 5), "a1": integers(0, 2, 0, 1, 2), "a2": integers(0, 2, 3, 6), "a3": integers(1, 3, 0, 0, 1, 2), "a4": integers(0, 2, 3, 7), "a5": integers(1, 2, 0, 0, 1, 2, 3)}},
	{"segment_sample c", "4:i64 5:i64 4:i64 6:i64 4:i64 7:i64 5 6", "columns = 4, products = 12", "7", given{"a0": integers(0, 2, 2, 5), "a1": integers(0, 2, 0, 1, 2), "a2": integers(0, 2, 3, 6), "a3": integers(1, 3, 0, 0, 1, 2), "a4": integers(0, 2, 3, 7), "a5": integers(1, 2, 0, 0, 1, 2, 3)}},
	{"grouped_matmul", "7x3 3x3x2 4:i64", "", "7x2", given{"a2": integers(0, 2, 2, 7)}},
	{"grouped_matmul", "7x3 3x2x3 4:i64", "transpose_b = true", "7x2", given{"a2": integers(1, 2, 5, 6)}},
	{"grouped_matmul", "7x3 7x2 4:i64", "", "3x3x2", given{"a2": integers(0, 0, 4, 6)}},
	{"grouped_matmul", "8x3 3x2x3 4:i64", "transpose_b = true, block = 2", "8x2", given{"a2": integers(0, 1, 1, 3)}},
	{"structured_einsum", "3x16 4x32 3x1:ui32", `equation = "mk,nk->nm"`, "4x3", given{"a2": words(0x4e9d8cd4, 0xeeeeeeee, 0x44444444)}},
	{"grouped_matmul", "8x3 8x2 4:i64", "block = 2", "3x3x2", given{"a2": integers(0, 2, 2, 3)}},
	{"segment_reduce mul", "7x2 4:i64", "", "3x2", given{"a1": integers(0, 3, 5, 6)}},
	{"segment_reduce mul", "7 3:i64", "", "2", given{"a0": tensor.FromFloats(f64, []int{7}, []float64{2, 0, 3, 0, -1, 0, 5}), "a1": integers(0, 3, 6)}},
	{"embedding", "5x3 2x4:i64", "", "2x4x3", given{"a1": whole(7, 2, 4)}},
	{"scatter add", "4x3 5:i64 5x3", "dim = 0", "4x3", given{"a1": whole(6, 5)}},
	{"scatter set", "4x3 5:i64 5x3", "dim = 0", "4x3", given{"a1": whole(6, 5)}},
	{"scatter set", "2x3x4 2x5:i64 2x3x5", "dim = 2, batch_dims = 1", "2x3x4", given{"a1": whole(5, 2, 5)}},
	{"scatter mul", "4x3 5:i64 5x3", "dim = 0", "4x3", given{"a1": whole(6, 5)}},
	{"scatter max", "4x3 5:i64 5x3", "dim = 0", "4x3", given{"a1": whole(6, 5)}},
	{"scatter min", "3x4 2:i64 3x2", "dim = 1", "3x4", given{"a1": whole(4, 2)}},
	{"copy", "2x3", "", "2x3", nil},

	{"attention", "2x4x3x5 2x2x4x5 2x2x4x6", "", "2x4x3x6", nil},
	{"attention", "1x2x3x4 1x2x3x4 1x2x3x4", "causal = true, scale = 0.3", "1x2x3x4", nil},
	{"attention", "2x2x3x4 2x1x5x4 2x1x5x4 2x1x5", "causal = true", "2x2x3x4", nil},
	{"attention", "2x2x3x4 2x2x5x4 2x2x5x4 2x2x3x5", "dropout = 0.3, seed = 5", "2x2x3x4", nil},
	{"attention", "2x2x3x4 2x2x5x4 2x2x5x4 _:i32", "dropout = 0.3, seed = 5", "2x2x3x4", nil},
	{"attention", "2x2x3x4 2x2x5x4 2x2x5x4 2x2x3x5 _:i64", "dropout = 0.3, seed = 5", "2x2x3x4 2x2x3", nil},
	{"attention", "3x4 5x4 5x2", "", "3x2", nil},
	{"attention", "2x4x3x5 2x2x4x5 2x2x4x6 4", "", "2x4x3x6 2x4x3", nil},

	{"reshard", "2x3", "", "2x3", nil},

	{"sgd", "3 3", "lr = 0.1, weight_decay = 0.2", "3", nil},
	{"momentum", "3 3 3 _", "nesterov = true, weight_decay = 0.1", "3 3 3", nil},
	{"adam", "3 3 3 3 :i64", "lr = 0.1, weight_decay = 0.1", "3 3 3", given{"a3": positive(3), "a4": whole(9)}},
}

// Every rule agrees with central differences, whatever the op's attributes.
// words are metadata of lines of 32 elements.
func words(ws ...int64) *tensor.Tensor {
	x := tensor.New(types.UI32, len(ws), 1)
	for i, w := range ws {
		x.SetInt(i, w)
	}
	return x
}

func TestOps(t *testing.T) {
	tried := map[string]bool{}
	for _, v := range append(functions(), variants...) {
		t.Run(v.name+" "+v.in+" "+v.clauses, func(t *testing.T) {
			tried[name(v.name)] = true
			against(t, one(v.name, v.in, v.clauses, v.out), v.given)
		})
	}
	for _, d := range op.All() {
		if d.Derivative != nil && !d.Derivative.Flat() && !d.Is(op.Collective) && !tried[d.Name] {
			t.Errorf("the derivative of %s is not tried", d.Name)
		}
	}
}

// The first result of a running maximum without its own element is minus infinity, and
// stands in no sum.
func TestExclusiveMaximum(t *testing.T) {
	for reverse, start := range map[string]int{"false": 1, "true": 0} {
		against(t, fmt.Sprintf(`func.func @f(%%x: tensor<3x5xf64>) -> tensor<3x4xf64> {
  %%y = dm.cummax %%x, dim = 1, exclusive = true, reverse = %s : tensor<3x5xf64>
  %%z = dm.slice %%y, start_indices = [0, %d], limit_indices = [3, %d] : (tensor<3x5xf64>) -> tensor<3x4xf64>
  return %%z : tensor<3x4xf64>
}
`, reverse, start, start+4), nil)
	}
}

func name(lead string) string {
	for i, r := range lead {
		if r == ' ' {
			return lead[:i]
		}
	}
	return lead
}
