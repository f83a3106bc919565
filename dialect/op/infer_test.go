package op_test

import (
	"fmt"
	"strings"
	"testing"

	"dmir/dialect/op"
	"dmir/syntax/diag"
)

// goodOps are ops with what they give and cost, worked by hand. Types are in
// the short form of tensorOf; read has one entry for each operand.
var goodOps = []struct {
	name, in, attrs, out string
	flop, read, written  string
}{
	// Contractions. 2·8·512·4096·1024, and the operands' sizes at 2 B.
	{"einsum", "8x512x1024xf16 1024x4096xf16", `equation = "bln,nu->blu"`, "8x512x4096xf16", "34359738368", "8388608 8388608", "33554432"},
	{"einsum", "3xf32 4xf32", `equation = "i,j->ij"`, "3x4xf32", "12", "12 16", "48"},
	{"einsum", "3x4xf32", `equation = "ij->ji"`, "4x3xf32", "0", "48", "48"},
	{"einsum", "3x4xf32", `equation = "ij->i"`, "3xf32", "9", "48", "12"},
	{"einsum", "4x4xf32", `equation = "ii->i"`, "4xf32", "0", "16", "16"},
	{"einsum", "4x4xf32", `equation = "ii->"`, "f32", "3", "16", "4"},
	// (ij,jk) first: 2·2·3·4, then (ik,kl): 2·2·4·5.
	{"einsum", "2x3xf32 3x4xf32 4x5xf32", `equation = "ij,jk,kl->il"`, "2x5xf32", "128", "24 48 80", "40"},
	{"einsum", "bx4xf16 4xnxf16", `equation = "bk,kn->bn"`, "bxnxf16", "8*b*n", "8*b 8*n", "2*b*n"},
	{"einsum", "2x3xi8 3x2xi8", `equation = "ij,jk->ik"`, "2x2xi32", "0", "6 6", "16"},
	{"einsum", "2x3xf8E4M3FN 3x2xf8E5M2", `equation = "ij,jk->ik"`, "2x2xf32", "24", "6 6", "16"},
	{"einsum", "5x1x2x3xf32 7x3x4xf32", `equation = "...ij,...jk->...ik"`, "5x7x2x4xf32", "1680", "120 336", "1120"},
	{"einsum", "bx2x3xf32 3x4xf32", `equation = "...ij,jk...->...ik"`, "bx2x4xf32", "48*b", "24*b 48", "32*b"},
	{"einsum", "2x3x5xf32", `equation = "i...->...i"`, "3x5x2xf32", "0", "120", "120"},
	{"matmul", "5x2x3xf32 3x4xf32", "", "5x2x4xf32", "240", "120 48", "160"},
	{"matmul", "3x2xf16 4x3xf16", "transpose_a = true, transpose_b = true", "2x4xf16", "48", "12 24", "16"},
	{"structured_einsum", "8x32xf16 4x64xf16 8x2xui32", `equation = "mk,nk->nm"`, "4x8xf16", "2048", "512 512 64", "64"},
	{"structured_einsum", "ax8x16xf32 ax32xnxf32 ax8x1xui32", `equation = "amk,akn->amn"`, "ax8xnxf32", "256*a*n", "512*a 128*a*n 32*a", "32*a*n"},
	{"grouped_matmul", "5x3xf32 2x3x4xf32 3xi32", "", "5x4xf32", "120", "60 96 12", "80"},
	{"grouped_matmul", "tx3xf16 ex4x3xf16 e+1xi64", "transpose_b = true", "tx4xf16", "24*t", "6*t 24*e 8*e + 8", "8*t"},
	{"grouped_matmul", "5x3xf32 5x4xf32 3xi32", "", "2x3x4xf32", "120", "60 80 12", "96"},
	{"grouped_matmul", "6x3xf32 6x4xf32 3xi32", "block = 2", "2x3x4xf32", "144", "72 96 12", "96"},
	{"matmul", "bxnx8xf16 1x8xnxf16", "", "bxnxnxf16", "16*b*n^2", "16*b*n 16*n", "2*b*n^2"},
	{"convolution", "1x2x5x5xf32 3x2x3x3xf32", "window_strides = [2, 2], padding = [[1, 1], [1, 1]]", "1x3x3x3xf32", "972", "200 216", "108"},
	{"convolution", "nx4x8xf32 4x1x3xf32", "feature_group_count = 4, rhs_dilation = [2]", "nx4x4xf32", "96*n", "128*n 48", "64*n"},
	{"convolution", "1x2xnxf32 3x2x3xf32", "window_strides = [2]", "1x3xmxf32", "36*m", "8*n 72", "12*m"},

	// Element-wise.
	{"exp", "2x3xf16", "", "2x3xf16", "6", "12", "12"},
	{"neg", "2x3xi32", "", "2x3xi32", "0", "24", "24"},
	{"logistic", "2x3xf32", "", "2x3xf32", "18", "24", "24"},
	{"silu", "2x3xf32", "", "2x3xf32", "24", "24", "24"},
	{"gelu", "2x3xf32", "", "2x3xf32", "30", "24", "24"},
	{"gelu", "2x3xf32", `approximate = "tanh"`, "2x3xf32", "54", "24", "24"},
	{"relu", "nxf16", "", "nxf16", "0", "2*n", "2*n"},
	{"add", "8x512x4096xf16 4096xf16", "", "8x512x4096xf16", "16777216", "33554432 8192", "33554432"},
	{"add", "2x1xf32 1x3xf32", "", "2x3xf32", "6", "8 12", "24"},
	{"add", "2x3xi32 3xi32", "", "2x3xi32", "0", "24 12", "24"},
	{"add", "bx1xf32 bxnxf32", "", "bxnxf32", "b*n", "4*b 4*b*n", "4*b*n"},
	{"add", "?x4xf32 8x4xf32", "", "8x4xf32", "32", "", "128"},
	{"mul", "=f32 =f32", "", "=f32", "1", "", "0"},
	{"max", "2x3xf32 f32", "", "2x3xf32", "0", "24 4", "24"},
	{"and", "4xi1 4xi1", "", "4xi1", "0", "4 4", "4"},
	{"compare", "2x3xf32 3xf32", `direction = "lt"`, "2x3xi1", "0", "24 12", "6"},
	{"compare", "=f32 =f32", `direction = "lt"`, "=i1", "0", "", "0"},
	{"select", "2x3xi1 2x3xf32 f32", "", "2x3xf32", "0", "6 24 4", "24"},
	{"clamp", "f32 2x3xf32 f32", "", "2x3xf32", "0", "4 24 4", "24"},
	{"convert", "2x3xf32", "", "2x3xf16", "0", "24", "12"},
	{"convert", "2x3xf8E5M2", "", "2x3xf32", "0", "6", "24"},
	{"dropout", "4x8xf16", "rate = 0.1", "4x8xf16 4x8xf16", "32", "64", "128"},
	{"dropout", "4x8xf16", "rate = 0.1", "4x8xf16 4x8xi1", "32", "64", "96"},
	{"dropout", "4x8xf16", "rate = 0.1", "4x8xf16", "32", "64", "64"},

	{"dropout", "4x8xf16 i64", "rate = 0.1", "4x8xf16 4x8xi1", "32", "64 8", "96"},
	{"dropout", "4x8xf16 i64", "rate = 0.1, whole = [5, 9]", "4x8xf16 4x8xi1", "32", "64 8", "96"},
	{"dropout", "4x8xf16 i32 i64", "rate = 0.1, whole = [4, 8]", "4x8xf16", "32", "64 4 8", "64"},

	// Of 27 pairs of a place and a tap, 13 are at zeros between elements.
	{"convolution", "1x2x4xf32 3x2x3xf32", "padding = [[2, 2]], lhs_dilation = [2]", "1x3x9xf32", "168", "32 72", "108"},
	{"convolution", "bx2x4xf32 3x2x2xf32", "lhs_dilation = [3], window_strides = [2]", "bx3x5xf32", "48*b", "32*b 48", "60*b"},

	// Normalization and reduction.
	{"reduce", "2x3x4xf32", `kind = "add", dims = [1]`, "2x4xf32", "16", "96", "32"},
	{"reduce", "2x3x4xf32", `kind = "mul", dims = [-1, 0], keep_dims = true`, "1x3x1xf32", "21", "96", "12"},
	{"reduce", "2x3x4xf32", `kind = "max"`, "f32", "0", "96", "4"},
	{"reduce", "bxnxf16", `kind = "add", dims = [1]`, "bxf16", "b*n - b", "2*b*n", "2*b"},
	{"softmax", "2x4xf32", "", "2x4xf32", "32", "32", "32"},
	{"log_softmax", "bx4xf16", "dim = 0", "bx4xf16", "16*b", "8*b", "8*b"},
	{"layer_norm", "8x512x1024xf16 1024xf16 1024xf16", "", "8x512x1024xf16", "29360128", "8388608 2048 2048", "8388608"},
	{"layer_norm", "2x4xf16 4xf32", "", "2x4xf16", "56", "16 16", "16"},
	{"layer_norm", "2x4x3xf32 4x3xf32", "dims = [1, 2]", "2x4x3xf32", "168", "96 48", "96"},
	{"rms_norm", "2x4xf32 4xf32", "", "2x4xf32", "32", "32 16", "32"},
	{"batch_norm", "2x3x4xf32 3xf32 3xf32", "", "2x3x4xf32 3xf32 3xf32", "168", "96 12 12", "120"},
	{"batch_norm", "2x3x4xf32 3xf32 3xf32 3xf32 3xf32", "", "2x3x4xf32", "96", "96 12 12 12 12", "96"},
	{"group_norm", "2x4x3xf32 4xf32 4xf32", "groups = 2", "2x4x3xf32", "168", "96 16 16", "96"},
	{"cross_entropy", "3x5xf32 3xi64", "", "f32", "63", "60 24", "4"},
	{"cross_entropy", "3x5xf32 3xi64", `reduction = "sum"`, "f32", "62", "60 24", "4"},
	{"cross_entropy", "3x5x2xf32 3x2xi32", `reduction = "none", dim = 1`, "3x2xf32", "120", "120 24", "24"},
	{"cross_entropy", "3x5xf32 3xi64", `label_smoothing = 0.1`, "f32", "87", "60 24", "4"},
	{"argmax", "2x4xf32", "", "2xi64", "0", "32", "16"},
	{"argmax", "2x4xf32", "dim = 0, keep_dims = true", "1x4xi32", "0", "32", "16"},
	{"cumsum", "2x4xf32", "dim = 1", "2x4xf32", "6", "32", "32"},
	{"cumprod", "2x4xf32", "dim = 1, reverse = true", "2x4xf32", "6", "32", "32"},
	{"cummax", "2x4xi32", "dim = 0", "2x4xi32", "0", "32", "32"},
	{"mean", "2x3x4xf16", "dims = [1]", "2x4xf16", "24", "48", "16"},
	{"mean", "2x3xf32", "", "f32", "6", "24", "4"},
	{"variance", "bxnxf32", "dims = [1], keep_dims = true", "bx1xf32", "4*b*n", "4*b*n", "4*b"},
	{"logsumexp", "2x3xf32", "dims = [-1]", "2xf32", "18", "24", "8"},
	{"reduce_window", "1x2x4x4xf32", `kind = "max", window_dimensions = [1, 1, 2, 2], window_strides = [1, 1, 2, 2]`, "1x2x2x2xf32", "0", "128", "32"},
	{"reduce_window", "5xf32", `kind = "add", window_dimensions = [3], padding = [[1, 1]]`, "5xf32", "10", "20", "20"},
	{"reduce_window", "2*nxf32", `kind = "add", window_dimensions = [2], window_strides = [2]`, "nxf32", "n", "8*n", "4*n"},
	{"select_and_scatter", "1x2x4x4xf32 1x2x2x2xf32", `kind = "max", window_dimensions = [1, 1, 2, 2], window_strides = [1, 1, 2, 2]`, "1x2x4x4xf32", "8", "128 32", "128"},
	{"top_k", "2x5xf32", "k = 3", "2x3xf32 2x3xi64", "0", "40", "72"},
	{"sort", "2x5xf32", "descending = true", "2x5xf32 2x5xi32", "0", "40", "80"},

	// Attention: 1·4·3·5 scores, each 2·8 + 2·6 and 5, 6 with a mask, 7 with dropout.
	{"roll", "2x3xf16", "shifts = [1, -4]", "2x3xf16", "0", "12", "12"},
	{"one_hot", "2x3xi32", "classes = 4, dim = 1", "2x4x3xf16", "0", "24", "48"},
	{"rope", "2x3x4xf32 3x2xf32 1x2xf32", "", "2x3x4xf32", "72", "96 24 8", "96"},
	{"rope", "nx4xf16 nx2xf16 2xf16", "pairs = interleaved", "nx4xf16", "12*n", "8*n 4*n 4", "8*n"},
	{"stop_gradient", "2x3xf32", "", "2x3xf32", "0", "0", "0"},
	{"attention", "1x4x3x8xf32 1x2x5x8xf32 1x2x5x6xf32", "causal = true", "1x4x3x6xf32", "1584", "384 320 240", "288"},
	{"attention", "1x4x3x8xf32 1x2x5x8xf32 1x2x5x6xf32 3x5xf32", "dropout = 0.5", "1x4x3x6xf32", "2100", "384 320 240 60", "288"},
	{"attention", "1x4x3x8xf32 1x2x5x8xf32 1x2x5x6xf32 3x5xf32 i32", "dropout = 0.5", "1x4x3x6xf32", "2100", "384 320 240 60 4", "288"},
	{"attention", "1x4x3x8xf32 1x2x5x8xf32 1x2x5x6xf32 3x5xf32 i32 i64", "dropout = 0.5, whole = [2, 4, 3]", "1x4x3x6xf32", "2100", "384 320 240 60 4 8", "288"},
	{"attention", "bxhxnx8xf16 bxhxnx8xf16 bxhxnx8xf16", "", "bxhxnx8xf16", "37*b*h*n^2", "16*b*h*n 16*b*h*n 16*b*h*n", "16*b*h*n"},
	{"attention", "3x8xf32 5x8xf32 5x8xf32", "scale = 1.0", "3x8xf32", "555", "96 160 160", "96"},

	{"attention", "2x3x8xf16 2x5x8xf16 2x5x8xf16", "", "2x3x8xf16 2x3xf32", "1110", "96 160 160", "120"},
	// 60 scores, each 6·8 + 4·6 and 6, with a mask and dropout 9, and 2 for each of 72 elements of y.
	{"segment_attention", "2x3x8xf32 1x4x8xf32 1x4x5xf32 4xi32 5xi32", "", "2x3x5xf32", "310", "192 128 80 16 20", "120"},
	{"segment_attention", "1x4x8xf16 1x64x8xf16 1x64x8xf16 3xi64 3xi32 1x3x2x4xf16", "block = [2, 4]", "1x4x8xf16", "912", "64 192 192 24 12 48", "64"},
	{"segment_attention", "2x3x1xf32 1x4x1xf32 1x4x5xf32 4xi32 5xi32", "scores = sum, slope = 0.2", "2x3x5xf32", "170", "24 16 80 16 20", "120"},
	{"segment_attention", "2x3x8xf32 1x4x8xf32 1x4x5xf32 4xi32 5xi32 2x1x8xf32", "scores = sum, leak = 0.2", "2x3x5xf32", "470", "192 128 80 16 20 64", "120"},
	{"segment_product", "4xi32 6xi32 6xf32 6xi64 9xi64 9xf32", "columns = 7, products = 8", "4xi32 25xi32 25xf32", "16", "16 24 24 48 64 32", "216"},
	{"segment_product", "4xi32 6xi32 6xf32 6xi64 9xi64 9xf32", "columns = 7, products = 8, kind = min, combine = add", "4xi32 25xi32 25xf32", "8", "16 24 24 48 64 32", "216"},
	{"segment_dense_product", "4xi32 6xi32 6xf32 6xi64 9xi64 9xf32", "columns = 7, products = 8", "3x7xf32", "16", "16 24 24 48 64 32", "84"},
	{"segment_dense_product", "4xi32 6xi32 6xf32 6xi64 9xi64 9xf32", "columns = 7", "3x7xf32", "54", "16 24 24 48 72 36", "84"},
	{"segment_sample", "4xi32 6xi32 6xi64 9xi64 4xi32 7xi32 6xf32 9xf32", "sampled = c, columns = 7, products = 8", "7xf32", "16", "16 24 48 64 16 28 24 32", "28"},
	{"segment_sample", "4xi32 6xi32 6xi64 9xi64 4xi32 7xi32 6xf32 7xf32", "sampled = b, columns = 7, products = 8", "9xf32", "16", "16 24 48 64 16 28 24 28", "36"},
	{"attention_grad", "1x4x3x8xf32 1x2x5x8xf32 1x2x5x6xf32 1x4x3x6xf32 1x4x3xf32 1x4x3x6xf32", "", "1x4x3x8xf32 1x2x5x8xf32 1x2x5x6xf32", "4824", "384 320 240 288 48 288", "944"},
	{"attention_grad", "1x4x3x8xf16 1x2x5x8xf16 1x2x5x6xf16 1x4x3x6xf16 1x4x3xf32 1x4x3x6xf16 3x5xf16", "dropout = 0.5", "1x4x3x8xf16 1x2x5x8xf16 1x2x5x6xf16 3x5xf16", "5004", "192 160 120 144 48 144 30", "502"},

	// Training.
	{"grad", "3xf32 2xi64", "callee = @f", "f32 3xf32", "0", "12 16", "16"},
	{"grad", "3xf32 4xf16 5xf32", "callee = @f, wrt = [1], cotangents = 1", "5xf32 4xf16", "0", "12 8 20", "28"},
	{"sgd", "4xf32 4xf16", "", "4xf32", "8", "16 8", "16"},
	{"sgd", "nxf32 nxf32 f32", "weight_decay = 0.1", "nxf32 nxbf16", "4*n", "4*n 4*n 4", "6*n"},
	{"momentum", "4xf32 4xf32 4xf32", "nesterov = true", "4xf32 4xf32", "24", "16 16 16", "32"},
	{"adam", "4xf32 4xf16 4xbf16 4xf32 i64", "", "4xf32 4xbf16 4xf32 4xf16", "56", "16 8 8 16 8", "48"},
	{"adam", "4xf32 4xf32 4xf32 4xf32 i64 f32", "weight_decay = 0.01", "4xf32 4xf32 4xf32", "64", "16 16 16 16 8 4", "48"},

	// Groups of values.
	{"pack", "4xf32 =tuple<tensor<i64>,tensor<2xf16>>", "", "=tuple<tensor<4xf32>,tuple<tensor<i64>,tensor<2xf16>>>", "0", "0 0", "0"},
	{"unpack", "=tuple<tensor<4xf32>,tuple<tensor<i64>,tensor<2xf16>>>", "", "4xf32 =tuple<tensor<i64>,tensor<2xf16>>", "0", "0", "0"},

	// Sparse tensors: 9 positions, and for each of e elements a coordinate and a value.
	{"matmul", "=tensor<8x6xf32,#dm.csr<nnz=e>> 6x4xf32", "", "8x4xf32", "8*e", "8*e + 36 16*e", "128"},
	{"einsum", "=tensor<8x6xf32,#dm.csr<nnz=e>> 6xf32", `equation = "ij,j->i"`, "8xf32", "2*e", "8*e + 36 4*e", "32"},
	{"einsum", "6xf32 =tensor<8x6xf32,#dm.csc<nnz=e>>", `equation = "j,ij->i"`, "8xf32", "2*e", "4*e 8*e + 28", "32"},
	{"reduce", "=tensor<8x6xf32,#dm.csr<nnz=9>>", `kind = "add", dims = [1]`, "8xf32", "9", "72", "32"},
	{"softmax", "=tensor<8x6xf32,#dm.csr<nnz=9>>", "dim = 1", "=tensor<8x6xf32,#dm.csr<nnz=9>>", "36", "72", "36"},
	{"relu", "=tensor<8x6xf32,#dm.csr<nnz=9>>", "", "=tensor<8x6xf32,#dm.csr<nnz=9>>", "0", "36", "36"},
	{"mul", "=tensor<8x6xf32,#dm.coo<nnz=e>> 6xf32", "", "=tensor<8x6xf32,#dm.coo<nnz=e>>", "e", "8*e + 4 4*e", "4*e"},
	{"transpose", "=tensor<8x6xf32,#dm.csr<nnz=e>>", "dims = [1, 0]", "=tensor<6x8xf32,#dm.csc<nnz=e>>", "0", "0", "0"},
	{"sample", "=tensor<8x6xf32,#dm.csr<nnz=e>> 8x4xf32 6x4xf32", `equation = "ik,jk->ij"`, "=tensor<8x6xf32,#dm.csr<nnz=e>>", "7*e", "4*e + 36 16*e 16*e", "4*e"},
	{"convert_format", "=tensor<8x6xf32,#dm.csr<nnz=e>>", "", "8x6xf32", "e", "8*e + 36", "192"},
	{"convert_format", "8x6xf32", "", "=tensor<8x6xf32,#dm.bsr<2x2,nnz=12>>", "0", "192", "260"},
	{"matmul", "=tensor<8x6xf32,#dm.csr<nnz=e>> =tensor<6x4xf32,#dm.csr<nnz=f>>", `products = "p"`, "8x4xf32", "2*p", "8*e + 36 4*e + 8*p", "128"},
	{"matmul", "=tensor<8x6xf32,#dm.csr<nnz=e>> =tensor<6x4xf32,#dm.csr<nnz=f>>", `products = "p"`, "=tensor<8x4xf32,#dm.csr<nnz=g>>", "2*p", "8*e + 36 4*e + 8*p", "8*g + 36"},
	{"einsum", "=tensor<8xf32,#dm.sparse_vector<nnz=e>> =tensor<8xf32,#dm.sparse_vector<nnz=f>>", `equation = "i,i->"`, "f32", "2*e", "8*e + 8 4*e + 4*f + 4", "4"},
	{"sample", "=tensor<8x4xf32,#dm.csr<nnz=e>> =tensor<8x6xf32,#dm.csr<nnz=f>> =tensor<6x4xf32,#dm.csr<nnz=g>>", `equation = "ik,kj->ij", products = "p"`, "=tensor<8x4xf32,#dm.csr<nnz=e>>", "2*p", "4*e + 36 8*f + 36 4*f + 8*p", "4*e"},
	{"slice", "=tensor<8x6xf32,#dm.csr<nnz=e>>", "dims = [0], start_indices = [2], limit_indices = [6]", "=tensor<4x6xf32,#dm.csr<nnz=e>>", "0", "8*e + 36", "8*e + 20"},
	{"concatenate", "=tensor<8x6xf32,#dm.csr<nnz=e>> =tensor<4x6xf32,#dm.csr<nnz=f>>", "dim = 0", "=tensor<12x6xf32,#dm.csr<nnz=e+f>>", "0", "8*e + 36 8*f + 20", "8*e + 8*f + 52"},
	{"mean", "=tensor<8x6xf32,#dm.csr<nnz=9>>", "dims = [1]", "8xf32", "17", "72", "32"},
	{"prune", "8x16xf32", "", "=tensor<8x16xf32,#dm.nm<2:4>>", "0", "512", "512"},
	{"merge", "=tensor<8x6xf32,#dm.csr<nnz=e>> =tensor<8x6xf32,#dm.csr<nnz=f>>", "kind = intersection", "=tensor<8x6xf32,#dm.csr<nnz=g>> =tensor<8x6xf32,#dm.csr<nnz=g>> =tensor<8x6xi8,#dm.csr<nnz=g>>", "0", "8*e + 36 4*e + 4*f + 36", "13*g + 36"},
	{"filter", "=tensor<8x6xf32,#dm.csr<nnz=e>> exi1", "", "=tensor<8x6xf32,#dm.coo<nnz=g>>", "0", "8*e + 36 e", "12*g + 8"},
	{"einsum", "=tensor<8x6xf32,#dm.sparse<map=(i,j)->(i:dense,j:loose_compressed),nnz=9>> 6x4xf32", `equation = "ij,jk->ik"`, "8x4xf32", "72", "136 144", "128"},
	{"reduce", "=tensor<8x6xf32,#dm.csr<nnz=e>>", "kind = max, dims = [1], over = stored", "8xf32", "0", "4*e + 36", "32"},

	// Movement.
	{"transpose", "2x3x4xf16", "dims = [2, 0, 1]", "4x2x3xf16", "0", "48", "48"},
	{"transpose", "nx3xi1", "dims = [1, 0]", "3xnxi1", "0", "3*n", "3*n"},
	{"reshape", "2x6xf32", "", "3x4xf32", "0", "0", "0"},
	{"reshape", "2xnx4xf32", "", "2*nx4xf32", "0", "0", "0"},
	{"reshape", "2x6xf32@columns", "", "12xf32", "0", "48", "48"},
	{"broadcast", "3xf32", "dims = [0]", "3x4xf32", "0", "12", "48"},
	{"broadcast", "4xf32", "", "nx4xf32", "0", "16", "16*n"},
	{"slice", "4x6xf32", "start_indices = [1, 0], limit_indices = [3, 6], strides = [1, 4]", "2x2xf32", "0", "16", "16"},
	{"slice", "4x6xf32", "start_indices = [3, 6], limit_indices = [4, 6], strides = [9223372036854775807, 1]", "1x0xf32", "0", "0", "0"},
	{"slice", "nx6xf32", "start_indices = [2], limit_indices = [4], dims = [1]", "nx2xf32", "0", "8*n", "8*n"},
	{"dynamic_slice", "4x6xf32 i64 i64", "slice_sizes = [2, -1]", "2x6xf32", "0", "48 8 0", "48"},
	{"dynamic_update_slice", "4x6xf32 1x6xf32 i64 i64", "", "4x6xf32", "0", "0 24 8 0", "24"},
	{"concatenate", "2x3xf32 2x1xf32", "dim = 1", "2x4xf32", "0", "24 8", "32"},
	{"concatenate", "bxnxf16 bxmxf16", "dim = -1", "bxm+nxf16", "0", "2*b*n 2*b*m", "2*b*m + 2*b*n"},
	{"pad", "2x3xf32 f32", "low = [1, 0], high = [1, 2], interior = [0, 1]", "4x7xf32", "0", "24 4", "112"},
	{"pad", "nxf32 f32", "low = [1]", "n+1xf32", "0", "4*n 4", "4*n + 4"},
	{"reverse", "2x3xf8E4M3FN", "dims = [1]", "2x3xf8E4M3FN", "0", "6", "6"},
	{"segment_reduce", "5x2xf32 4xi32", `kind = "add"`, "3x2xf32", "10", "40 16", "24"},
	{"segment_reduce", "2xexf16 n+1xi64", `kind = "max", dim = -1`, "2xnxf16", "0", "4*e 8*n + 8", "4*n"},
	{"segment_reduce", "5x2xi32 1xi32", `kind = "mul"`, "0x2xi32", "0", "40 4", "0"},
	{"segment_ids", "4xi32", "", "exi32", "0", "16", "4*e"},
	{"segment_ids", "4xi64", "", "5xi64", "0", "32", "40"},
	{"searchsorted", "4xf32 2x3xf32", "side = right", "2x3xi32", "0", "16 24", "24"},
	{"searchsorted", "nxi64 exi64", "", "exi64", "0", "8*n 8*e", "8*e"},
	{"gather", "4x3xf32 2x5xi64", "", "2x5x3xf32", "0", "120 80", "120"},
	{"gather", "2x4x3xf32 2x5xi64", "dim = 1, batch_dims = 1", "2x5x3xf32", "0", "120 80", "120"},
	{"scatter", "4x3xf32 2xi64 2x3xf32", "", "4x3xf32", "0", "0 16 24", "24"},
	{"scatter", "4x3xf32 2xi64 2x3xf32", `kind = "add"`, "4x3xf32", "6", "24 16 24", "24"},
	{"copy", "4x8xf16", "", "4x8xf16@host", "0", "64", "64"},
	{"copy", "4x8xf16", "", "4x8xf16@columns", "0", "64", "64"},
	{"embedding", "30522x1024xf16 8x512xi64", "", "8x512x1024xf16", "0", "8388608 32768", "8388608"},

	// Distribution. What collectives send is counted on the whole mesh, elsewhere.
	{"mesh", "", `sym_name = "pod", axes = ["data"], sizes = [2]`, "", "0", "", "0"},
	{"reshard", "4x8xf16", "", "4x8xf16", "0", "0", "0"},
	{"all_reduce", "4xnxf16", `reduction = add, axes = ["data"]`, "4xnxf16", "0", "8*n", "8*n"},
	{"reduce_scatter", "4x6xf32", `reduction = add, dim = -1, axes = ["data"]`, "4x2xf32", "0", "96", "32"},
	{"all_gather", "4x2xf8E4M3FN", `dim = 1, axes = ["data", "model:(1)2"]`, "4x6xf8E4M3FN", "0", "8", "24"},
	{"all_to_all", "4x6xf32", `split = 1, concat = 0, axes = ["data"]`, "8x3xf32", "0", "96", "96"},
	{"all_to_all", "4x6xf32", `split = 1, concat = -1, axes = ["data"]`, "4x6xf32", "0", "96", "96"},
	{"collective_permute", "4xi4", `pairs = [[0, 1], [1, 0]], axes = ["data"]`, "4xi4", "0", "2", "2"},
	{"send", "4xf32", `from = 0, to = 1, axes = ["data"]`, "", "0", "16", "0"},
	{"recv", "", `from = 0, to = 1, axes = ["data"]`, "4xf32", "0", "", "16"},
	{"partition_id", "", `axes = ["data"]`, "i64", "0", "", "0"},

	// Sources.
	{"constant", "", "value = dense<1.0> : tensor<4xf32>", "4xf32", "0", "", "0"},
	{"constant", "", "value = 2.0 : f32", "=f32", "0", "", "0"},
	{"empty", "", "", "2xnxf32", "0", "", "0"},
	{"iota", "", "dim = 1", "2x4xi64", "0", "", "64"},
	{"rng", "", `distribution = "normal"`, "2xnxf32", "0", "", "8*n"},
}

func TestInfer(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range goodOps {
		t.Run(fmt.Sprintf("%s %s %s", c.name, c.in, c.attrs), func(t *testing.T) {
			o := build(t, c.name, c.in, c.attrs, c.out)
			seen[c.name] = true
			ts, p := infer(o)
			if p != nil {
				t.Fatalf("%s: %s", p.Code, p.Msg)
			}
			var got []string
			for i, ty := range ts {
				got = append(got, shortText(ty))
				if !op.Compatible(ty, o.Results[i].Type) {
					t.Errorf("result %d: inferred %s does not stand for %s", i, ty, o.Results[i].Type)
				}
			}
			if len(ts) != len(o.Results) {
				t.Errorf("inferred %v, want %s", got, c.out)
			}
			if f := op.FLOP(o); f.String() != c.flop {
				t.Errorf("%s FLOP, want %s", f, c.flop)
			}
			read, written := op.Traffic(o)
			if c.read != "" && strings.Trim(fmt.Sprint(read), "[]") != c.read {
				t.Errorf("reads %v, want %s", read, c.read)
			}
			if written.String() != c.written {
				t.Errorf("writes %s, want %s", written, c.written)
			}
			checkMaps(t, o)
		})
	}
	for _, d := range op.All() {
		one := len(d.Regions) == 0 && !d.Is(op.Terminator)
		if one && !seen[d.Name] && d.FLOP == nil && d.Family != op.Elementwise {
			t.Errorf("no case for %s", d.Name)
		}
	}
}

// badOps are ops with a mistake: the code and a part of the message.
var badOps = []struct{ name, in, attrs, out, code, message string }{
	{"attention", "3x4xf16 5x4xf16 5x4xf16", `precision = "tf32"`, "3x4xf16", "DM115", "are of f16"},
	{"grad", "3xf32 2xi64", "callee = @f, wrt = [1]", "f32 2xi64", "DM115", "has no gradient"},
	{"grad", "3xf32 2xi64", "callee = @f, wrt = [2]", "f32 2xi64", "DM115", "lists argument 2"},
	{"grad", "3xf32", "callee = @f, cotangents = 2", "f32 3xf32", "DM115", "cotangents = 2"},
	{"grad", "3xf32 3xf32", "callee = @f", "f32", "DM125", "2 gradients"},
	{"sgd", "4xf32 5xf32", "", "4xf32", "DM122", "[4]"},
	{"sgd", "=tuple<tensor<4xf32>,tensor<2xf32>> =tuple<tensor<4xf32>,tensor<3xf32>>", "", "=tuple<tensor<4xf32>,tensor<2xf32>>", "DM122", "[3]"},
	{"sgd", "=tuple<tensor<4xf32>,tensor<2xf32>> =tuple<tensor<4xf32>>", "", "=tuple<tensor<4xf32>,tensor<2xf32>>", "DM130", "correspond"},
	{"convert", "=tuple<tensor<4xf32>,tensor<2xf32>>", "", "4xf16", "DM130", "is declared as tensor<4xf16>"},
	{"unpack", "4xf32", "", "4xf32", "DM183", "not a tuple"},
	{"grad", "=tuple<tensor<4xf32>,tensor<i64>>", "callee = @f, wrt = [0]", "f32 4xf32", "DM115", "has no gradient"},
	{"momentum", "4xf32 4xf32 3xf32", "", "4xf32 3xf32", "DM122", "[3]"},
	{"adam", "4xf32 4xf32 4xf32 4xf32 4xi64", "", "4xf32 4xf32 4xf32", "DM117", "step"},
	{"adam", "4xf32 4xf32 4xf32 4xf32 i64", "beta1 = 1.0", "4xf32 4xf32 4xf32", "DM115", "not in [0, 1)"},
	{"select_and_scatter", "4x4xf32 2x3xf32", `kind = "max", window_dimensions = [2, 2], window_strides = [2, 2]`, "4x4xf32", "DM122", "[2, 3]"},
	{"segment_attention", "2x3x8xf32 1x4x8xf32 1x4x5xf32 5xi32 5xi32", "", "2x3x5xf32", "DM122", "4 segments"},
	{"segment_attention", "2x4x8xf32 1x5x8xf32 1x5x5xf32 5xi32 5xi32", "block = [1, 2]", "2x4x5xf32", "DM123", "multiple"},
	{"segment_attention", "3x4x8xf32 2x5x8xf32 2x5x5xf32 5xi32 5xi32", "", "3x4x5xf32", "DM123", "heads"},
	{"segment_attention", "2x4x8xf32 1x5x8xf32 1x5x5xf32 5xi32 5xi32 2x5x1xf32", "", "2x4x5xf32", "DM122", "bias"},
	{"segment_attention", "4x8xf32 5x8xf32 5x5xf32 5xi32 5xi32", "", "4x5xf32", "DM117", "3 dimensions"},
	{"segment_attention", "2x4x8xf32 1x5x8xf32 1x5x5xf32 5xi32 5xi32", "scores = sum", "2x4x5xf32", "DM122", "have depth 1"},
	{"segment_attention", "2x4x8xf32 1x5x8xf32 1x5x5xf32 5xi32 5xi32", "scores = sum, leak = 0.2", "2x4x5xf32", "DM122", "weighted"},
	{"segment_attention", "2x4x8xf32 1x5x8xf32 1x5x5xf32 5xi32 5xi32 1x1x8xf32", "leak = 0.2", "2x4x5xf32", "DM122", "weighted"},
	{"segment_attention", "2x4x8xf32 1x5x8xf32 1x5x5xf32 5xi32 5xi32 1x1x7xf32", "scores = sum, leak = 0.2", "2x4x5xf32", "DM122", "the weights are"},
	{"segment_attention", "2x4x8xf32 1x5x8xf32 1x5x5xf32 5xi32 5xi32 1x3x8xf32", "scores = sum, leak = 0.2", "2x4x5xf32", "DM123", "rows of weights"},
	{"attention_grad", "3x8xf32 5x8xf32 5x8xf32 3x7xf32 3xf32 3x8xf32", "", "3x8xf32 5x8xf32 5x8xf32", "DM122", "3x7xf32"},
	{"attention_grad", "3x8xf16 5x8xf16 5x8xf16 3x8xf16 3xf64 3x8xf16", "", "3x8xf16 5x8xf16 5x8xf16", "DM122", "second result"},
	{"attention_grad", "3x8xf32 5x8xf32 5x8xf32 3x8xf32 3xf32 3x8xf32", "", "3x8xf32 5x8xf32 5x8xf32 3x5xf32", "DM125", "mask"},
	{"add", "2x3xf32 4xf32", "", "2x3xf32", "DM110", "[2, 3] and [4]"},
	{"add", "bx4xf32 nx4xf32", "", "bx4xf32", "DM110", "[b, 4] and [n, 4]"},
	{"add", "2x3xf32 3xf16", "", "2x3xf32", "DM111", "f32 and f16"},
	{"compare", "2xf32 2xi32", `direction = "lt"`, "2xi1", "DM111", "f32 and i32"},
	{"select", "2xi1 2xf32 2xf16", "", "2xf32", "DM111", "f32 and f16"},
	{"select", "3xi1 2xf32 2xf32", "", "2xf32", "DM110", "[3] and [2]"},
	{"clamp", "3xf32 2xf32 f32", "", "2xf32", "DM110", "[3] and [2]"},
	{"dropout", "2xf32", "rate = 1.0", "2xf32", "DM115", "rate = 1"},
	{"dropout", "2xf32", "rate = -0.5", "2xf32", "DM115", "rate = -0.5"},
	{"dropout", "2xf32 1xi64", "rate = 0.5", "2xf32", "DM117", "step has shape [1]"},
	{"dropout", "2xf32 i64 i64", "rate = 0.5", "2xf32", "DM124", "not the sizes of the whole"},
	{"dropout", "2xf32", "rate = 0.5, whole = [4]", "2xf32", "DM115", "not the number of the first element"},
	{"dropout", "2xf32 i64", "rate = 0.5, whole = [4, 2]", "2xf32", "DM114", "whole has 2 sizes"},
	{"dropout", "3x2xf32 i64", "rate = 0.5, whole = [2, 2]", "3x2xf32", "DM115", "[3, 2] is no part of a whole of the sizes [2 2]"},
	{"dropout", "2xf32 i64 2xi64", "rate = 0.5, whole = [4]", "2xf32", "DM117", "first has shape [2]"},
	{"attention", "2x3x8xf32 2x5x8xf32 2x5x8xf32 i64", "dropout = 0.5, whole = [2, 3, 5]", "2x3x8xf32", "DM114", "whole has 3 sizes"},
	{"rng", "2xi64", "distribution = uniform", "2xf32", "DM117", "step has shape [2]"},
	{"attention", "3x8xf32 5x8xf32 5x8xf32 3x5xi32", "", "3x8xf32", "DM117", "step has shape [3, 5]"},
	{"einsum", "2x3xf32 3x4xf32", `equation = "ij,jk"`, "2x4xf32", "DM120", "output is missing"},
	{"einsum", "5x2x3xf32 3x4xf32", `equation = "...ij,jk->ik"`, "2x4xf32", "DM120", "the output lacks"},
	{"einsum", "2x3xf32 3x4xf32", `equation = "..ij,jk->ik"`, "2x4xf32", "DM120", "three dots"},
	{"einsum", "2x3xf32 3x4xf32", `equation = "......ij,jk->...ik"`, "2x4xf32", "DM120", "once in a term"},
	{"einsum", "2x3xf32", `equation = "...ij,jk->...ik"`, "2x4xf32", "DM120", "2 inputs, the op 1 operand"},
	{"einsum", "3xf32 3x4xf32", `equation = "...ij,jk->...ik"`, "4xf32", "DM120", "names 2 dimensions, but operand 0 has 1"},
	{"einsum", "5x2x3xf32 4x3x4xf32", `equation = "...ij,...jk->...ik"`, "5x2x4xf32", "DM121", "sizes 5 and 4, which do not broadcast"},
	{"einsum", "2x3xf32", `equation = "ij,jk->ik"`, "2x4xf32", "DM120", "2 inputs, the op 1 operand"},
	{"einsum", "2x3xf32", `equation = "ij->iz"`, "2x3xf32", "DM120", "'z' is in no input"},
	{"einsum", "2xf32", `equation = "i->ii"`, "2x2xf32", "DM120", "twice"},
	{"einsum", "2x3xf32", `equation = "i1->i"`, "2xf32", "DM120", "not a letter"},
	{"einsum", "2x3xf32 4x5xf32", `equation = "ij,jk->ik"`, "2x5xf32", "DM121", "'j' is 3 in operand 0, of shape [2, 3], and 4 in operand 1, of shape [4, 5]"},
	{"einsum", "2x3xf32", `equation = "ijk->i"`, "2xf32", "DM121", "names 3 dimensions, but operand 0 has shape [2, 3]"},
	{"einsum", "2x3xf32 3x2xf16", `equation = "ij,jk->ik"`, "2x2xf32", "DM111", "f32 and f16"},
	{"einsum", "2x3xf32 3x2xf32", `equation = "ij,jk->ik"`, "2x2xf16", "DM128", "f32 cannot produce a result of f16"},
	{"einsum", "2x3xf32 3x2xf32", `equation = "ij,jk->ik", accumulate = "f16"`, "2x2xf32", "DM115", "f32"},
	{"einsum", "", `equation = "->"`, "f32", "DM124", "at least one"},
	{"matmul", "2x3xf32 4x5xf32", "", "2x5xf32", "DM122", "sizes 3 and 4"},
	{"matmul", "2x3xf32 4x3xf32", "", "2x4xf32", "DM122", "[2, 3] and [4, 3]"},
	{"matmul", "2x3xf16 3x4xf16", "", "2x4xf8E4M3FN", "DM128", "cannot produce a result of f8E4M3FN"},
	{"sample", "=tensor<8x6xf32,#dm.csr<nnz=e>>", `equation = "ik,jk->ij"`, "=tensor<8x6xf32,#dm.csr<nnz=e>>", "DM124", "at least one operand"},
	{"matmul", "3xf32 3x4xf32", "", "4xf32", "DM117", "at least 2 dimensions"},
	{"matmul", "2x2x3xf32 3x3x4xf32", "", "2x2x4xf32", "DM110", "batch dimensions"},
	{"segment_product", "4xi32 6xi32 5xf32 6xi32 9xi32 9xf32", "columns = 7, products = 8", "4xi32 25xi32 25xf32", "DM122", "6 coordinates"},
	{"segment_dense_product", "4xi32 6xi32 5xf32 6xi32 9xi32 9xf32", "columns = 7", "3x7xf32", "DM122", "6 coordinates"},
	{"segment_product", "4xi32 6xi32 6xf32 6xi32 9xi32 9xf16", "columns = 7, products = 8", "4xi32 25xi32 25xf32", "DM111", "differ"},
	{"segment_product", "4xi32 6xi32 6xf32 6xi32 9xi32 9xf32", "columns = 7, products = 8", "4xi32 25xi32 24xf32", "DM117", "elements"},
	{"segment_sample", "4xi32 6xi32 6xi32 9xi32 5xi32 7xi32 6xf32 9xf32", "sampled = c, columns = 7, products = 8", "7xf32", "DM122", "a has 4 positions and c has 5"},
	{"segment_sample", "4xi32 6xi32 6xi32 9xi32 4xi32 7xi32 6xf32 7xf32", "sampled = a, columns = 7, products = 8", "6xf32", "DM122", "b has 6 elements and 9 coordinates"},
	{"segment_sample", "4xi32 6xi32 6xi32 9xi32 4xi32 7xi32 6xf32 9xf64", "sampled = c, columns = 7, products = 8", "7xf32", "DM111", "differ"},
	{"structured_einsum", "8x16xf16 4x16xf16 8x1xui32", `equation = "mk,nk->nm"`, "4x8xf16", "DM121", "'k' is 32 in operand 0"},
	{"structured_einsum", "8x16xf16 4x32xf16 8x1xui32", `equation = "mk,nk->nk"`, "4x32xf16", "DM120", "does not sum over 'k'"},
	{"structured_einsum", "8x16xf16 4x8x32xf16 8x1xui32", `equation = "mk,nmk->n"`, "4xf16", "DM120", "has 'm' of operand 0 twice, or sums over it"},
	{"structured_einsum", "8x12xf16 4x24xf16 8x1xui32", `equation = "mk,nk->nm"`, "4x8xf16", "DM123", "12 stored elements are not a multiple of the 16"},
	{"structured_einsum", "8x16xf16 4x32xf16 8x2xui32", `equation = "mk,nk->nm"`, "4x8xf16", "DM122", "the metadata has shape [8, 2] where [8, 1] is expected"},
	{"structured_einsum", "8x16xf16 4x32xf32 8x1xui32", `equation = "mk,nk->nm"`, "4x8xf16", "DM111", "differ"},
	{"grouped_matmul", "5x3xf32 2x4x3xf32 3xi32", "", "5x4xf32", "DM122", "contracted dimensions of 3 and 4"},
	{"grouped_matmul", "5x3xf32 2x3x4xf32 2xi32", "", "5x4xf32", "DM122", "positions of 1 groups, and matrices of 2"},
	{"grouped_matmul", "5x3xf32 5x4xf32 3xi32", "block = 2", "2x3x4xf32", "DM123", "5 rows are not a multiple of the 2"},
	{"grouped_matmul", "5x3xf32 5x4xf32 3xi32", "block = 0", "2x3x4xf32", "DM115", "block = 0 is no number of rows"},
	{"grouped_matmul", "5x3xf32 6x4xf32 3xi32", "", "2x3x4xf32", "DM122", "numbers of rows of 5 and 6"},
	{"grouped_matmul", "5x3xf32 5x4xf32 3xi32", "transpose_b = true", "2x3x4xf32", "DM115", "has rows"},
	{"grouped_matmul", "5x3xf32 4xf32 3xi32", "", "5xf32", "DM117", "3 dimensions are expected, or 2"},
	{"grouped_matmul", "5x3xf32 2x3x4xf32 0xi32", "", "5x4xf32", "DM119", "no positions"},
	{"grouped_matmul", "5x3xf32 2x3x4xf16 3xi32", "", "5x4xf32", "DM111", "differ"},
	{"convolution", "1x3x5xf32 3x2x3xf32", "", "1x3x3xf32", "DM122", "3 channels"},
	{"convolution", "1x2x2xf32 3x2x3xf32", "", "1x3x1xf32", "DM116", "does not fit"},
	{"convolution", "1x2x5xf32 3x2x3xf32", "window_strides = [1, 1]", "1x3x3xf32", "DM114", "2 entries for 1 dimension"},
	{"convolution", "1x2x5xf32 3x1x3xf32", "feature_group_count = 2", "1x3x3xf32", "DM123", "3 output channels"},
	{"convolution", "1x2x5xf32 3x2x3xf32", "lhs_dilation = [0]", "1x3x3xf32", "DM115", "contains 0"},
	{"convolution", "1x2x5xf32 3x2x3xf32", "padding = [[-1, 0]]", "1x3x3xf32", "DM115", "never negative"},
	{"convolution", "1x2xf32 3x2xf32", "", "1x3xf32", "DM117", "spatial"},
	{"convolution", "1x2x5xf32 3x2x3xf32", "feature_group_count = 0", "1x3x3xf32", "DM115", "is 0"},
	{"convolution", "1x2x5xf32 3x2xf32", "", "1x3x3xf32", "DM117", "the filter has shape [3, 2]"},
	{"convolution", "1x2x5xf32 3x2x3xf16", "", "1x3x3xf32", "DM111", "f32 and f16"},
	{"convolution", "1x2x5xf32 3x2xnxf32", "", "1x3x3xf32", "DM116", "not known in numbers"},
	{"reduce", "2x3xf32", `kind = "add", dims = [2]`, "2xf32", "DM112", "dims = 2 is not a dimension of [2, 3]"},
	{"reduce", "2x3xf32", `kind = "add", dims = [1, -1]`, "2xf32", "DM113", "names dimension 1 of [2, 3] twice"},
	{"reduce", "2x3xf32", "", "f32", "DM129", "neither"},
	{"reduce", "2x3xf32 f32", `kind = "add"`, "f32", "DM129", "no initial value"},
	{"reduce", "2x3xi1", `kind = "add"`, "i1", "DM111", "i1"},
	{"reduce", "2x3xf32", `kind = "add", accumulate = "f16"`, "f32", "DM115", "accumulate"},
	{"softmax", "2x3xf32", "dim = 2", "2x3xf32", "DM112", "[2, 3]"},
	{"softmax", "f32", "", "f32", "DM112", "not a dimension of []"},
	{"layer_norm", "2x4xf32 3xf32", "", "2x4xf32", "DM122", "needs parameters [4]"},
	{"layer_norm", "2x4xf16 4xbf16", "", "2x4xf16", "DM111", "bf16"},
	{"rms_norm", "2x4xf32 4xf32", "dims = [0]", "2x4xf32", "DM122", "[2]"},
	{"batch_norm", "2x3xf32 2xf32 2xf32", "", "2x3xf32", "DM122", "[3]"},
	{"batch_norm", "2x3xf32 3xf32 3xf32 3xf32", "", "2x3xf32", "DM124", "without a variance"},
	{"batch_norm", "2x3xf32 3xf32 3xf32", "", "2x3xf32 3xf32", "DM125", "not have 2 results"},
	{"group_norm", "2x4xf32 4xf32 4xf32", "groups = 3", "2x4xf32", "DM123", "4 channels"},
	{"group_norm", "4xf32", "groups = 1", "4xf32", "DM117", "at least 2"},
	{"cross_entropy", "3x5xf32 4xi64", "", "f32", "DM122", "labels [3]"},
	{"cross_entropy", "3x5xf32 3xi64", "label_smoothing = 1.5", "f32", "DM115", "not between 0 and 1"},
	{"cumsum", "2x3xf32", "dim = -3", "2x3xf32", "DM112", "dim = -3"},
	{"cumsum", "2x3xi32", `dim = 0, accumulate = "f16"`, "2x3xi32", "DM115", "i32"},
	{"variance", "2x3xf32", "correction = -1", "f32", "DM115", "correction = -1 is negative"},
	{"mean", "2x3xf32", "dims = [2]", "2xf32", "DM112", "dims = 2"},
	{"roll", "2x3xf32", "shifts = [1]", "2x3xf32", "DM114", "for 2 dimensions"},
	{"one_hot", "3xi64", "classes = 0", "3x0xf32", "DM115", "the minimum is 1"},
	{"rope", "2x5xf32 2xf32 2xf32", "", "2x5xf32", "DM122", "a row of 5"},
	{"rope", "2x4xf32 3x2xf32 2xf32", "", "2x4xf32", "DM122", "the pairs [2, 2]"},
	{"rope", "4xf32 3x2xf32 2xf32", "", "4xf32", "DM122", "[3, 2] does not broadcast"},
	{"rope", "4xf32 2xf32 2xf16", "", "4xf32", "DM111", "f32 and f16"},
	{"rope", "f32 f32 f32", "", "f32", "DM117", "no dimension"},
	{"one_hot", "3xi64", "classes = 4, dim = 2", "3x4xf32", "DM112", "dim = 2"},
	{"iota", "", "step = 0.5", "4xi32", "DM115", "not a whole number"},
	{"argmax", "f32", "", "i64", "DM112", "[]"},
	{"reduce_window", "4xf32", `kind = "max", window_dimensions = [5]`, "1xf32", "DM116", "extent 5"},
	{"reduce_window", "4xf32", `kind = "max", window_dimensions = [2, 2]`, "3xf32", "DM114", "2 entries"},
	{"reduce_window", "4xf32", `kind = "max", window_dimensions = [0]`, "3xf32", "DM115", "contains 0"},
	{"top_k", "2x5xf32", "k = 6", "2x6xf32", "DM115", "which has 5 elements"},
	{"attention", "4x3x8xf32 4x5x7xf32 4x5x8xf32", "", "4x3x8xf32", "DM122", "depth 8"},
	{"attention", "4x3x8xf32 4x5x8xf32 4x6x8xf32", "", "4x3x8xf32", "DM122", "5 keys"},
	{"attention", "4x3x8xf32 3x5x8xf32 3x5x8xf32", "", "4x3x8xf32", "DM123", "4 heads"},
	{"attention", "2x4x3x8xf32 3x4x5x8xf32 2x4x5x8xf32", "", "2x4x3x8xf32", "DM122", "batch dimension 0"},
	{"attention", "4x3x8xf32 4x5x8xf32 4x5x8xf32 5x3xf32", "", "4x3x8xf32", "DM110", "[4, 3, 5]"},
	{"attention", "4x3x8xf32 5x8xf32 4x5x8xf32", "", "4x3x8xf32", "DM117", "3 dimensions are expected"},
	{"attention", "4x3x8xf32 4x5x8xf32 4x5x8xf32", "dropout = 1.5", "4x3x8xf32", "DM115", "dropout = 1.5"},
	{"transpose", "2x3xf32", "dims = [0]", "2xf32", "DM113", "names 1 of the 2 dimensions"},
	{"transpose", "2x3xf32", "dims = [0, 0]", "2x2xf32", "DM113", "twice"},
	{"reshape", "2x6xf32", "", "5xf32", "DM118", "[2, 6] has 12 elements, [5] has 5"},
	{"reshape", "nx6xf32", "", "mx6xf32", "DM118", "6*n"},
	{"broadcast", "3xf32", "dims = [1]", "3x4xf32", "DM118", "dimension 0 of [3]"},
	{"broadcast", "2x3xf32", "", "3xf32", "DM118", "more dimensions"},
	{"broadcast", "3xf32", "dims = [0, 1]", "3x4xf32", "DM114", "2 entries for the 1 dimension"},
	{"slice", "4x6xf32", "start_indices = [1], limit_indices = [3]", "2x6xf32", "DM114", "1 entries"},
	{"slice", "4xf32", "start_indices = [1], limit_indices = [5]", "4xf32", "DM119", "ends at 5"},
	{"slice", "4xf32", "start_indices = [3], limit_indices = [2]", "1xf32", "DM119", "from 3 to 2"},
	{"slice", "4xf32", "start_indices = [0], limit_indices = [2], strides = [0]", "1xf32", "DM115", "strides contains 0"},
	{"dynamic_slice", "4x6xf32 i64", "slice_sizes = [1, 1]", "1x1xf32", "DM124", "1 start position for the 2 dimensions"},
	{"dynamic_slice", "4xf32 1xi64", "slice_sizes = [1]", "1xf32", "DM117", "no dimensions are expected"},
	{"dynamic_slice", "4xf32 i64", "slice_sizes = [5]", "5xf32", "DM119", "slice of size 5"},
	{"dynamic_update_slice", "4x6xf32 5x6xf32 i64 i64", "", "4x6xf32", "DM119", "[5, 6] does not fit [4, 6]"},
	{"dynamic_update_slice", "4xf32 4xf16 i64", "", "4xf32", "DM111", "f32 and f16"},
	{"concatenate", "2x3xf32 3x3xf32", "dim = 1", "2x6xf32", "DM122", "[2, 3] and [3, 3]"},
	{"concatenate", "", "dim = 0", "2xf32", "DM124", "at least one"},
	{"pad", "2xf32 1xf32", "low = [1]", "3xf32", "DM117", "padding value"},
	{"pad", "2xf32 f32", "low = [-1]", "1xf32", "DM115", "-1"},
	{"reverse", "2xf32", "dims = [1]", "2xf32", "DM112", "[2]"},
	{"segment_reduce", "5x2xf32 4x1xi32", `kind = "add"`, "3x2xf32", "DM117", "the vector of positions"},
	{"segment_reduce", "5x2xf32 0xi32", `kind = "add"`, "3x2xf32", "DM119", "no positions"},
	{"segment_reduce", "5x2xf32 4xi32", `kind = "add", dim = 2`, "3x2xf32", "DM112", "dim = 2"},
	{"segment_ids", "4xi32", "", "5x1xi32", "DM117", "where 1 dimension is expected"},
	{"searchsorted", "2x3xf32 3xf32", "", "3xi32", "DM117", "what is searched"},
	{"searchsorted", "3xf32 3xi32", "", "3xi32", "DM111", "differ"},
	{"gather", "4x3xf32 2xi64", "dim = 1, batch_dims = 1", "4x2xf32", "DM122", "differ in their 1 batch dimension"},
	{"gather", "4x3xf32 2xi64", "dim = 0, batch_dims = 1", "4x2xf32", "DM115", "batch_dims = 1"},
	{"scatter", "4x3xf32 2xi64 3x3xf32", "", "4x3xf32", "DM122", "takes updates [2, 3]"},
	{"scatter", "4xi1 2xi64 2xi1", `kind = "add"`, "4xi1", "DM111", "i1"},
	{"embedding", "4x3x2xf32 2xi64", "", "2x3xf32", "DM117", "2 dimensions are expected"},
	{"constant", "", "value = 1.0", "4xf32", "DM115", "not dense"},
	{"constant", "", "value = dense<1.0> : tensor<f32>", "", "DM125", "result type of constant"},
	{"iota", "", "dim = 1", "4xi64", "DM112", "[4]"},
	{"all_reduce", "4xf32", `reduction = or, axes = ["data"]`, "4xf32", "DM115", "f32 are not reduced by or"},
	{"reduce_scatter", "4xi1", `reduction = add, dim = 0, axes = ["data"]`, "2xi1", "DM115", "i1 are not reduced by add"},
	{"reduce_scatter", "4xf32", `reduction = add, dim = 1, axes = ["data"]`, "2xf32", "DM112", "dim"},
	{"all_gather", "4xf32", `dim = -2, axes = ["data"]`, "8xf32", "DM112", "dim"},
	{"all_to_all", "4x6xf32", `split = 0, concat = 2, axes = ["data"]`, "2x6xf32", "DM112", "concat"},
	{"collective_permute", "4xf32", `pairs = [[0, 1], [2, 1]], axes = ["data"]`, "4xf32", "DM115", "[2, 1] is negative, or repeats"},
	{"collective_permute", "4xf32", `pairs = [[-1, 1]], axes = ["data"]`, "4xf32", "DM115", "[-1, 1]"},
	{"send", "4xf32", `from = 1, to = 1, axes = ["data"]`, "", "DM115", "to itself"},
	{"recv", "", `from = -1, to = 1, axes = ["data"]`, "4xf32", "DM115", "from = -1"},
	{"recv", "", `from = 0, to = 1, axes = ["data"]`, "", "DM125", "result"},
	{"rng", "", `distribution = "normal"`, "4xi32", "DM128", "i32"},
	{"rng", "", `distribution = "uniform", low = 1.0, high = 1.0`, "4xf32", "DM115", "not below high = 1"},
	{"map", "", "", "", "DM124", "at least one"},
	{"if", "2xi1", "", "", "DM117", "condition"},
	{"kernel", "", "", "f32", "DM127", "dm.yield"},
}

func TestProblems(t *testing.T) {
	for _, c := range badOps {
		t.Run(fmt.Sprintf("%s %s %s", c.name, c.in, c.attrs), func(t *testing.T) {
			o := build(t, c.name, c.in, c.attrs, c.out)
			_, p := infer(o)
			if p == nil {
				t.Fatalf("no problem; want %s", c.code)
			}
			if p.Code != c.code || !strings.Contains(p.Msg, c.message) {
				t.Errorf("%s %q, want %s with %q", p.Code, p.Msg, c.code, c.message)
			}
			if diag.Find(p.Code).Name == "" {
				t.Errorf("%s is not in the table", p.Code)
			}
			if p.Attr != "" && op.Of(o).Attr(p.Attr) == nil {
				t.Errorf("points at attribute %q, which the op has not", p.Attr)
			}
			if p.Operand >= len(o.Operands) || strings.HasSuffix(p.Msg, ".") {
				t.Errorf("operand %d, message %q", p.Operand, p.Msg)
			}
			op.FLOP(o)
			op.Traffic(o)
			if m := op.Of(o).Maps; m != nil {
				m(o)
			}
		})
	}
}
