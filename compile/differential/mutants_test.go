package differential

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"dmir/gpu/artifact"
	"dmir/gpu/emulator"
	"dmir/gpu/prelude"
	"dmir/testkit/need"
)

// mutant is a mistake that a generator of code could make, made in the code of
// testdata/mutants/PROGRAM.dmir.
type mutant struct {
	name, program string
	at, with      string // what stands in the text, as a regular expression, and what instead
	nth           int    // which of the places; the first is 0
	arch          string
	plan          func(p *artifact.Program) // or what is wrong with the plan
	header        string                    // the text is that of a part of the prelude
}

var mutants = []mutant{
	// Loops and their bounds.
	{name: "the last chunk of a row is not read", program: "softmax_rows", at: `s < 3`, with: "s < 2"},
	{name: "the last chunk of a row is not summed", program: "softmax_rows", at: `s < 3`, with: "s < 2", nth: 2},
	{name: "the last chunk of a row is not stored", program: "softmax_rows", at: `s < 3`, with: "s < 2", nth: 4},
	{name: "a sum leaves the last column out", program: "softmax_rows", at: `col < 1025`, with: "col < 1024", nth: 2},
	{name: "a store goes one column too far", program: "softmax_rows", at: `col < 1025`, with: "col <= 1025", nth: 4},
	{name: "chunks are stored one element too close", program: "softmax_rows", at: `first \+ s \* 512`, with: "first + s * 511", nth: 4},
	{name: "the last chunk of a long row is lost", program: "long_row", at: `s < 1`, with: "s < 0"},
	{name: "the last vector of a long row is lost", program: "long_row", at: `col < 17500`, with: "col < 17499"},
	{name: "the last element of each vector is lost", program: "long_row", at: `j3 < 4`, with: "j3 < 3"},
	{name: "the last of the rows' lanes is lost", program: "columns", at: `p = 1; p < 8`, with: "p = 1; p < 7"},
	{name: "rows are stepped over", program: "columns", at: `row \+= 80`, with: "row += 88"},
	{name: "rows are counted twice", program: "columns", at: `row \+= 80`, with: "row += 72"},
	{name: "the last part of the columns' sums is lost", program: "columns", at: `p < 10; p \+= 16`, with: "p < 9; p += 16"},
	{name: "the last part of a split row is lost", program: "split_row", at: `p < 69`, with: "p < 68"},
	{name: "blocks of a split row lie too far apart", program: "split_row", at: `dm::block\(\) \* 256`, with: "dm::block() * 257"},
	{name: "the last update of a scatter is lost", program: "scatter", at: `k3 < 40`, with: "k3 < 39"},
	{name: "an argmax looks at every other element", program: "scan", at: `j \+= 32`, with: "j += 64"},
	{name: "half of a warp takes no part in an argmax", program: "scan", at: `m = 16`, with: "m = 8"},
	{name: "a window has too few rows", program: "window", at: `k2 < 3`, with: "k2 < 2"},
	{name: "the last element of a line is not sorted", program: "sort", at: `n = 37`, with: "n = 36"},
	{name: "a total leaves a row out", program: "cross_entropy", at: `p < 9`, with: "p < 8"},
	{name: "a reduction after a product leaves a part out", program: "matmul_f16", at: `p < 4`, with: "p < 3"},
	{name: "a product leaves the end of its sum out", program: "matmul_f32", at: `dm::Shape<1, 70, 66, 40`, with: "dm::Shape<1, 70, 66, 36"},
	{name: "an attention leaves keys out", program: "attention", at: `keys = 40`, with: "keys = 39"},
	{name: "the other mask in an attention", program: "attention", at: `causal = true`, with: "causal = false"},

	// Reductions read too early, or of the wrong thing.
	{name: "a sum is read before the block has joined it", program: "softmax_rows", at: `dm::block_sum\(f6, scratch_f32\)`, with: "f6"},
	{name: "a maximum is stored before the block has joined it", program: "softmax_rows", at: `dm::block_max\(f11, scratch_f32\)`, with: "f11"},
	{name: "a shift differs between threads", program: "softmax_rows", at: `dm::block_max\(f3, scratch_f32\)`, with: "f3"},
	{name: "a mean is read before the block has joined it", program: "variance_columns", at: `dm::block_sum\(f2, scratch_f32\)`, with: "f2"},
	{name: "an inner sum has the element at hand alone", program: "variance_columns", at: `dm::wide\(c1\[s\]\) - t4`, with: "dm::wide(c1[s]) - dm::wide(c1[s])"},
	{name: "a sum is joined as a maximum", program: "softmax_rows", at: `dm::block_sum\(f6`, with: "dm::block_max(f6"},
	{name: "a sum starts at 1", program: "softmax_rows", at: `float f6 = 0.0f`, with: "float f6 = 1.0f"},
	{name: "a maximum of small numbers starts at 1", program: "softmax_rows", at: `float f11 = -dm::infinity<float>\(\)`, with: "float f11 = 1.0f"},
	{name: "a minimum starts at 0 from above", program: "short_rows", at: `float f13 = dm::infinity<float>\(\)`, with: "float f13 = -9.0f"},
	{name: "a minimum is stored before it is joined", program: "short_rows", at: `dm::block_min\(f13, scratch_f32\)`, with: "f13"},
	{name: "another divisor of a mean", program: "short_rows", at: `0\.041666668f`, with: "0.04f"},
	{name: "a row of partial sums is started by all lanes alike", program: "columns", at: `dm::block_y\(\) \* 8 \+ lane_row`, with: "dm::block_y() * 8"},

	// Barriers.
	{name: "no barrier before the sums of other lanes are read", program: "columns", at: `dm::sync\(\);\n`, with: ""},
	{name: "no barrier in the second kernel", program: "columns", at: `dm::sync\(\);\n`, with: "", nth: 1},
	{name: "a barrier that some threads do not reach", program: "columns", at: `dm::sync\(\);\n`, with: "if (lane_row > 0) dm::sync();\n"},
	{name: "no barrier after a tile is loaded", program: "matmul_f32", header: "gemm_fma.cuh", at: `(?m)^    sync\(\);\n`, with: ""},
	{name: "no barrier between keys", program: "attention", header: "attention_fma.cuh", at: `(?m)^    sync\(\);\n`, with: ""},
	{name: "tiles are used before they have arrived", program: "matmul_f16", header: "gemm_mma.cuh", at: `cp_async_wait<Tile::stages - 2>\(\);`, with: ""},
	{name: "no barrier after the tiles have arrived", program: "matmul_f16", header: "gemm_mma.cuh", at: `(?m)^    sync\(\);\n`, with: ""},

	{name: "no barrier before the warps of a query are joined", program: "segment_attention", header: "segment_attention.cuh", at: `(?m)^    sync\(\);\n`, with: ""},
	{name: "the last keys of a segment are left out", program: "segment_attention", header: "segment_attention.cuh", at: `from < keys; from`, with: "from < keys - all; from"},
	{name: "a sum stays relative to an earlier maximum", program: "segment_attention", header: "segment_attention.cuh", at: `o\.sum \*= by;`, with: ""},
	{name: "positions behind the last entry are followed", program: "segment_attention", header: "segment_attention.cuh", at: `at > S::entries \? S::entries : at`, with: "at"},
	{name: "blocks of keys are used before they have arrived", program: "segment_attention_blocks", header: "segment_attention_mma.cuh", at: `cp_async_wait<0>\(\);\n    sync\(\);`, with: "sync();"},
	{name: "keys are replaced while warps read them", program: "segment_attention_blocks", header: "segment_attention_mma.cuh", at: `(?m)^    sync\(\);\n`, with: ""},
	{name: "the last keys of a row of blocks are left out", program: "segment_attention_blocks", header: "segment_attention_mma.cuh", at: `step < steps; step`, with: "step < steps - 1; step"},
	{name: "a part of a block of keys is that of the next one", program: "segment_attention_blocks", header: "segment_attention_mma.cuh", at: `step % parts \* BN\);|step % parts \* BN;`, with: "0;"},
	{name: "the bias of a block is that of the first queries", program: "segment_attention_blocks", header: "segment_attention_mma.cuh", at: `first % S::rows \+ row`, with: "row"},
	{name: "sums of earlier blocks stay relative to another maximum", program: "segment_attention_blocks", header: "segment_attention_mma.cuh", at: `total\[h\] \* factor`, with: "total[h]"},
	{name: "coordinates of no key are followed", program: "segment_attention", header: "segment_attention.cuh", at: `i64\(coordinate\) < S::blocks \?`, with: "true ?"},
	{name: "scores below 0 have no slope", program: "segment_attention", header: "segment_attention.cuh", at: `s < Acc\(0\)`, with: "false"},
	{name: "elements of weighted sums below 0 have no slope", program: "segment_attention", header: "segment_attention.cuh", at: `u < Acc\(0\)`, with: "false"},
	{name: "all queries have the weights of the first", program: "segment_attention", header: "segment_attention.cuh", at: `query / S::weights_queries`, with: "0"},
	{name: "a query has the next segment", program: "segment_attention", at: `rows = 2, columns = 2`, with: "rows = 1, columns = 2"},

	// Indices.
	{name: "a row is read at another stride", program: "softmax_rows", at: `x\[row \* 1025 \+ col\]`, with: "x[row * 1024 + col]"},
	{name: "a row is stored at another stride", program: "softmax_rows", at: `store\(row \* 1025 \+ col`, with: "store(row * 1024 + col"},
	{name: "a column is read as a row", program: "variance_columns", at: `x\[row \+ col \* 33\]`, with: "x[row * 33 + col]"},
	{name: "a column is read at another stride", program: "variance_columns", at: `col \* 33`, with: "col * 32"},
	{name: "the index of a chunk is forgotten", program: "softmax_rows", at: `y\[col\]`, with: "y[first]"},
	{name: "a vector is not aligned", program: "long_row", at: `load<4>\(col \* 4\)`, with: "load<4>(col * 4 + 1)"},
	{name: "a vector is stored at its number", program: "long_row", at: `store<4>\(col \* 4`, with: "store<4>(col"},
	{name: "parts of columns lie too close", program: "columns", at: `dm::i64\(dm::block_y\(\)\) \* 65`, with: "dm::i64(dm::block_y()) * 64"},
	{name: "parts of rows lie too close", program: "split_row", at: `store\(row \* 69`, with: "store(row * 68"},
	{name: "a transpose is none", program: "pointwise", at: `\(step9 \+ step20\) \+ \(line8 \+ line19\) \* 33`, with: "(step9 + step20) * 17 + (line8 + line19)"},
	{name: "a tile is read before it is written", program: "pointwise", at: `dm::sync\(\);`, with: ""},
	{name: "a tile has a line too many", program: "pointwise", at: `line14 < 17`, with: "line14 < 18"},
	{name: "a tile is read elsewhere than it is written", program: "pointwise", at: `k16, k16 / 32\)`, with: "k16, k16 / 64)"},
	{name: "an index is taken from the next row", program: "pointwise", at: `i_2\[\(i / 17\)\]`, with: "i_2[(i / 18)]"},
	{name: "an operand that repeats does not", program: "pointwise", at: `y\[\(i % 17\)\]`, with: "y[(i % 16)]"},
	{name: "a scan starts in the row before", program: "scan", at: `dm::i64\(r\) \* 700`, with: "dm::i64(r) * 699"},
	{name: "random numbers of another place", program: "dropout", at: `row \* 40 \+ col, 2147483648ull`, with: "row * 41 + col, 2147483648ull"},
	{name: "rows of scores of another head of the whole", program: "dropout_of_a_part", at: `dm::i64\(head / 2\) \* 35`, with: "dm::i64(head / 2) * 14"},
	{name: "rows of scores of the first part of the whole", program: "dropout_of_a_part", header: "attention.cuh", at: `u64\(wide\(part\.first\[0\]\)\) \+ `, with: ""},
	{name: "a reversed row ends one too early", program: "moves", at: ` \+ 34\]`, with: " + 33]"},
	{name: "a stride of a slice is forgotten", program: "moves", at: `\(i % 6\) \* 6`, with: "(i % 6) * 2"},
	{name: "an operand of a product is read at another stride", program: "matmul_f32", at: `m \* 40`, with: "m * 41"},
	{name: "a product is stored at another stride", program: "matmul_f32", at: `m \* 66`, with: "m * 64"},
	{name: "a copied tile of a product lies elsewhere", program: "matmul_f16", at: `r \* 96`, with: "r * 88"},
	{name: "a bulk copy takes its coordinates in another order", program: "matmul_wgmma", arch: "sm_90a", at: `full, i, k, m\)`, with: "full, i, m, k)"},
	{name: "a bulk store takes its coordinates in another order", program: "matmul_wgmma", arch: "sm_90a", at: `from, at, n, m\)`, with: "from, at, m, n)"},
	{name: "rows of a stored box are exchanged otherwise than by the map", program: "matmul_wgmma", arch: "sm_90a", header: "gemm_wgmma.cuh", at: `r / 2 & 3`, with: "r & 3"},
	{name: "a group's tiles are counted from its second", program: "grouped", header: "gemm.cuh", at: `shuffle\(sum - tiles, at\)`, with: "shuffle(sum, at)"},
	{name: "rows of the next group are stored", program: "grouped", header: "gemm.cuh", at: `m \+ r < below`, with: "m + r < S::m"},
	{name: "a group's sum goes on behind it", program: "grouped", header: "gemm.cuh", at: `return \{begin, end\}`, with: "return {begin, end + 1}"},
	{name: "groups behind the 32nd are not found", program: "grouped", header: "gemm.cuh", at: `tile -= shuffle\(sum, 31\);`, with: ""},
	{name: "a row of blocks begins a block late", program: "blocks", at: `dm::wide\(p_2\[z\]\)`, with: "dm::wide(p_2[z]) + 1"},
	{name: "a row of blocks begins at rows as if they were blocks", program: "blocks", at: `return dm::i64\(t2\) \* 16;`, with: "return dm::i64(t2);"},
	{name: "all blocks meet the rows of the first one", program: "blocks", at: `c_\[\(k / 16\)\]`, with: "c_[0]"},
	{name: "blocks meet the rows of another one", program: "blocks", at: `dm::i64\(t2\) \* 1152`, with: "dm::i64(t2) * 72"},
	{name: "the columns of a block are those of the next row", program: "blocks", at: `\(k & -16\) \* 32`, with: "(k & -16)"},
	{name: "rows in front of the first group have no block", program: "grouped", header: "gemm.cuh", at: `own == 0 \? 0 : `, with: ""},
	{name: "the blocks of a cluster have the same part of k", program: "matmul_cluster", arch: "sm_90a", header: "gemm.cuh", at: `number % parts :`, with: "number % 2 :"},
	{name: "sums of another block are read before it has them", program: "columns", arch: "sm_90a", at: `dm::cluster_sync\(\);\n`, with: "dm::sync();\n"},
	{name: "a block ends before its sums are read", program: "columns", arch: "sm_90a", at: `dm::cluster_sync\(\);\n`, with: "", nth: 1},
	{name: "the sums of one block for those of all", program: "columns", arch: "sm_90a", at: `given4, k\)`, with: "given4, 0)"},
	{name: "each block of a cluster stores its columns", program: "columns", arch: "sm_90a", at: `rank == 0 && `, with: ""},
	{name: "blocks of a cluster have the same rows", program: "columns", arch: "sm_90a", at: `row = rank \* 8`, with: "row = rank / 2 * 8"},
	{name: "the first block's sums are left out", program: "matmul_cluster", arch: "sm_90a", header: "gemm_cluster.cuh", at: `int s = 0; s < S::splits; s\+\+\) acc`, with: "int s = 1; s < S::splits; s++) acc"},
	{name: "sums of the row beside", program: "matmul_cluster", arch: "sm_90a", header: "gemm_cluster.cuh", at: `slab_at<pitch>\(r, `, with: "slab_at<pitch>(r ^ 1, "},
	{name: "a cluster leaves out a tile's last row", program: "matmul_cluster", arch: "sm_90a", header: "gemm_cluster.cuh", at: `run < rows \* runs`, with: "run < (rows - 1) * runs"},

	{name: "a bulk copy takes queries of another head", program: "attention_wgmma", arch: "sm_90a", at: `full, i, col, matrix \+ 1, row\)`, with: "full, i, col, matrix, row)"},

	// Attention by warpgroups.
	{name: "values are read as keys are", program: "attention_wgmma", arch: "sm_90a", header: "attention_wgmma.cuh", at: `V::padded, true>`, with: "V::padded, false>"},
	{name: "values of other keys", program: "attention_wgmma", arch: "sm_90a", header: "attention_wgmma.cuh", at: `u32\(row \* 128\)`, with: "u32(row * 64)"},
	{name: "columns of queries and keys are read twice", program: "attention_wgmma", arch: "sm_90a", header: "attention_wgmma.cuh", at: `col % 64 \* 2`, with: "col % 32 * 2"},
	{name: "the panels of values lie too close", program: "attention_wgmma", arch: "sm_90a", header: "attention_wgmma.cuh", at: `0, Rows \* 128, 1024`, with: "0, Rows * 64, 1024"},
	{name: "sums of earlier keys are not scaled", program: "attention_wgmma", arch: "sm_90a", header: "attention_wgmma.cuh", at: `sums\[e\] \*= factor.*\n`, with: ";\n"},
	{name: "scores are used before they are there", program: "attention_wgmma", arch: "sm_90a", header: "attention_wgmma.cuh", at: `products_wait<1>\(\);`, with: ""},
	{name: "probabilities are replaced while they are multiplied", program: "attention_wgmma", arch: "sm_90a", header: "attention_wgmma.cuh", at: `(?s)softmax\(step\);(\s*)products_wait<0>\(\);`, with: "softmax(step);"},
	{name: "neighbours exchange the wrong halves", program: "attention_wgmma", arch: "sm_90a", header: "attention_wgmma.cuh", at: `odd \? left : right`, with: "odd ? right : left"},
	{name: "a warpgroup passes no turn on", program: "attention_wgmma", arch: "sm_90a", header: "attention_wgmma.cuh", at: `(?m)^          pass\(\);`, with: ""},

	// Guards.
	{name: "the last element is not computed", program: "pointwise", at: `i < 561`, with: "i < 560"},
	{name: "threads behind the last element store", program: "pointwise", at: `i < 561`, with: "i < 600"},
	{name: "columns behind the last are stored", program: "columns", at: `col >= 65\) return`, with: "col >= 96) return"},
	{name: "no thread stores a row's result", program: "softmax_rows", at: `if \(first == 0\)`, with: "if (first == 600)"},
	{name: "an index is not held inside", program: "pointwise", at: `dm::min\(dm::max\(t4, dm::i64\(0ll\)\), dm::i64\(32ll\)\)`, with: "t4 + 28"},
	{name: "the boundary of a concatenation is one too low", program: "moves", at: `\* 2 < 35\) \{`, with: "* 2 < 34) {"},
	{name: "the border of a padding is one too wide", program: "moves", at: `/ 19\) - 1 >= 0`, with: "/ 19) - 1 > 0"},
	{name: "a segment ends one element early", program: "segments", at: `k36 < end35`, with: "k36 < end35 - 1"},
	{name: "lanes of a team begin at one element", program: "segments", at: `from34 \+ sub2`, with: "from34"},
	{name: "half of a team is not added up", program: "segments", at: `dm::shuffle_xor\(f32\[j43\], 4\)`, with: "0.0f"},
	{name: "a team adds up what two columns have", program: "segments", at: `dm::shuffle_xor\(f32\[j43\], 2\)`, with: "dm::shuffle_xor(f32[j43], 1)"},
	{name: "no block takes a long segment", program: "segments", at: `f17\[j28\] \+ parts15`, with: "f17[j28]; (void) parts15"},
	{name: "a team takes a long segment as well", program: "segments", at: ` && !long4`, with: ""},
	{name: "a warp's part of a long segment is lost", program: "segments", at: `w29 < 8`, with: "w29 < 7"},
	{name: "threads of a long segment meet", program: "segments", at: `k21 \+= 128`, with: "k21 += 127"},
	{name: "the parts of a long segment are read too early", program: "segments", at: `dm::sync\(\);`, with: ";", nth: 1},
	{name: "the parts of a long segment are overwritten too early", program: "segments", at: `dm::sync\(\);`, with: ";", nth: 2},
	{name: "warps look for long segments too early", program: "segments", at: `dm::sync\(\);`, with: ";"},
	{name: "a search takes the element in front", program: "segment_ids", at: `t6 \? j4 \+ 1 : from2`, with: "t6 ? j4 + 2 : from2"},
	{name: "a search leaves the first position out", program: "segment_ids", at: `j4 \+ 1\)`, with: "j4)"},
	{name: "an update goes to two places", program: "scatter", at: `< 1\)`, with: "< 2)"},
	{name: "the last update is in no group", program: "scatter_groups", at: `<600, 540, 300`, with: "<600, 539, 300"},
	{name: "a strip of rows has no groups", program: "scatter_groups", at: `dm::block\(\) % 2`, with: "0"},
	{name: "the updates of a row are those of two", program: "scatter_groups", at: `starts\[\(i / 3\) \+ 1\]`, with: "starts[dm::min(i / 3 + 2, 600)]"},
	{name: "the last update of a row is lost", program: "scatter_groups", at: `j5 < rest6.count`, with: "j5 < rest6.count - 1"},
	{name: "the last but one update of a row stays", program: "scatter_groups", at: `to5 - 1`, with: "to5 - 2"},
	{name: "the sum of a piece is that of another column", program: "scatter_groups", at: `dm::i32\(i % 3\)`, with: "dm::i32(i % 2)"},
	{name: "a piece is left out", program: "scatter_groups", at: `j9 < to4`, with: "j9 < to4 - 1"},
	{name: "the updates of pieces count twice", program: "scatter_groups", header: "scatter.cuh", at: `r.gap = \(to - from\) \* EACH`, with: "r.gap = 0"},
	{name: "updates behind pieces are those in them", program: "scatter_groups", header: "scatter.cuh", at: `from \+ n \+ gap`, with: "from + n"},
	{name: "updates of rows before a strip are not counted", program: "scatter_groups", header: "scatter.cuh", at: `below\+\+`, with: ";"},
	{name: "updates of one row go to one place", program: "scatter_groups", header: "scatter.cuh", at: `end - behind \+ before`, with: "end - behind"},
	{name: "updates are not in their order", program: "scatter_groups", header: "scatter.cuh", at: `end - behind \+ before`, with: "end - behind + same - 1 - before"},
	{name: "a warp places its updates where another one does", program: "scatter_groups", header: "scatter.cuh", at: `sum \+= n;`, with: "sum = n;"},
	{name: "the updates of the last row have no end", program: "scatter_groups", header: "scatter.cuh", at: `(?m)^  if \(low \+ rows == ROWS.*\n`, with: ""},
	{name: "rows are counted before their counters are zero", program: "scatter_groups", header: "scatter.cuh", at: `(?m)^  sync\(DM_HERE_ONLY\);\n`, with: "", nth: 2},
	{name: "updates are placed before they are listed", program: "scatter_groups", header: "scatter.cuh", at: `(?m)^    sync\(DM_HERE_ONLY\);\n`, with: ""},
	{name: "a row's place is read while it moves on", program: "scatter_groups", header: "scatter.cuh", at: `(?m)^        sync_warp\(DM_HERE_ONLY\);\n`, with: "", nth: 2},
	{name: "the border of an image is one too wide", program: "convolution", at: `dm::u32\(c\[1\]\) < 6`, with: "dm::u32(c[1]) < 7"},
	{name: "outputs of a phase lie elsewhere", program: "convolution", at: `0x5ull >> z`, with: "0x6ull >> z"},
	{name: "a tap of a phase is at another element", program: "convolution", at: `0x1ecull`, with: "0x1edull"},
	{name: "a tap of a phase has the next one's weight", program: "convolution", at: `0x453718620ull`, with: "0x453718602ull"},
	{name: "a phase begins with another one's taps", program: "convolution", at: `0x8d0ull`, with: "0x8d8ull"},
	{name: "a phase ends before its last tap", program: "convolution", at: ` \* 16 \+ 64;`, with: " * 16 + 48;"},
	{name: "outputs that a phase does not have", program: "convolution", at: `if \(\(m % 7\) \* 2 \+ [^<]*< 13\)`, with: "if (m >= 0)"},
	{name: "elements lie between those of a gradient", program: "convolution_zeros", at: `c\[1\] % 2 == 0`, with: "c[1] % 2 >= 0"},
	{name: "taps are those of a step's first chunk", program: "convolution", header: "gemm.cuh", at: `x\.tap\(tap, ki\)`, with: "x.tap(tap, k)"},
	{name: "all lines of a step have the first one's k", program: "convolution", header: "gemm.cuh", at: `i == 0 \|\| !X::along_k`, with: "i == 0"},
	{name: "a position is not divided by a gradient's stride", program: "convolution_zeros", header: "gemm.cuh", at: ` \+ x\.far\(sum\)`, with: ""},
	{name: "what lies outside of an image is read", program: "convolution", header: "gemm.cuh", at: `ki < depth && x\.inside\(sum\)`, with: "ki < depth"},
	{name: "a window leaves the border out", program: "window", at: `k2 - 1 >= 0`, with: "k2 - 1 > 0"},
	{name: "another class is the label", program: "cross_entropy", at: ` == `, with: " > "},
	{name: "a row that is ignored counts", program: "cross_entropy", at: ` != `, with: " == "},
	{name: "a product's operand has a row too many", program: "matmul_f32", at: `r < 70`, with: "r < 71"},

	// Sorts.
	{name: "neighbours are exchanged in one direction", program: "sort", header: "sort.cuh", at: `rising == lower`, with: "lower"},
	{name: "a network has a step too few", program: "sort", header: "sort.cuh", at: `a <= steps`, with: "a < steps"},
	{name: "lines are sorted before they are read", program: "sort", header: "sort.cuh", at: `(?m)^  sync\(DM_HERE_ONLY\);\n`, with: ""},
	{name: "lines are stored before they are sorted", program: "sort", header: "sort.cuh", at: `(?m)^  sync\(DM_HERE_ONLY\);\n`, with: "", nth: 1},
	{name: "what lies behind a line comes in front", program: "sort", header: "sort.cuh", at: `key = ~typename detail::KeyOf<sizeof\(T\)>::type\(0\)`, with: "key = 0"},
	{name: "negative numbers fall", program: "sort_block", header: "sort.cuh", at: `all \^ k : size`, with: "k & (top - 1) : size"},
	{name: "zeros have an order", program: "sort_block", header: "sort.cuh", at: `size != 0 && `, with: ""},
	{name: "NaN come first", program: "sort_block", header: "sort.cuh", at: `nan_first \? K\(0\) : all`, with: "nan_first ? all : K(0)"},
	{name: "equal digits of a warp have one place", program: "sort_block", header: "sort.cuh", at: `count \+ earlier`, with: "count"},
	{name: "equal digits of a warp lie in the opposite order", program: "sort_block", header: "sort.cuh", at: `count \+ earlier`, with: "count + popcount(same) - 1 - earlier"},
	{name: "a digit's count is read while it moves on", program: "sort_block", header: "sort.cuh", at: `(?m)^      sync_warp\(DM_HERE_ONLY\);\n`, with: ""},
	{name: "a digit's count is added before it is there", program: "sort_block", header: "sort.cuh", at: `(?m)^      sync_warp\(DM_HERE_ONLY\);\n`, with: "", nth: 1},
	{name: "digits of other warps are not counted yet", program: "sort_block", header: "sort.cuh", at: `(?m)^    sync\(DM_HERE_ONLY\);\n`, with: ""},
	{name: "elements are read before they have moved", program: "sort_block", header: "sort.cuh", at: `(?m)^      sync\(DM_HERE_ONLY\);\n`, with: ""},
	{name: "the greatest digit is skipped", program: "sort_block", header: "sort.cuh", at: `sizeof\(T\)\) \* 8; shift`, with: "sizeof(T)) * 8 - 8; shift"},
	{name: "a digit that differs is skipped", program: "sort_block", header: "sort.cuh", at: `u32\(both >> 32\) & u32\(both\)`, with: "u32(both >> 32) & u32(both) & 0xffffff"},
	{name: "chunks begin where the line does", program: "sort_digits", header: "sort_long.cuh", at: `if \(c < chunk\) start`, with: "if (c < 0) start"},
	{name: "places of a tile are those of the line", program: "sort_digits", header: "sort_long.cuh", at: `start - before\[0\]`, with: "start"},
	{name: "each pass sorts by the least digit", program: "sort_digits", header: "sort_long.cuh", at: `sort_key<G>\(v\[i\]\) >> PASS \* 8 & 255`, with: "sort_key<G>(v[i]) & 255"},
	{name: "tiles are written before they are in order", program: "sort_digits", header: "sort_long.cuh", at: `(?m)^    sync\(DM_HERE_ONLY\);\n`, with: ""},
	{name: "counts are stored before all have counted", program: "sort_digits", header: "sort_long.cuh", at: `(?m)^  sync\(DM_HERE_ONLY\);\n`, with: "", nth: 1},
	{name: "counts of the first warp are those of all", program: "sort_scan", header: "sort_long.cuh", at: `if \(w < warp\(\)\) before \+= n;`, with: ""},
	{name: "counts are added up before they are there", program: "sort_scan", header: "sort_long.cuh", at: `(?m)^  sync\(DM_HERE_ONLY\);\n`, with: "", nth: 2},
	{name: "a selection is compared with one of its first", program: "top_k", header: "sort_long.cuh", at: `held - 1`, with: "held / 50"},
	{name: "a selection grows over what it has", program: "top_k", header: "sort_long.cuh", at: `slot \+= G::most - held;`, with: ""},
	{name: "a warp counts its elements before others have read", program: "top_k", header: "sort_long.cuh", at: `turn \^= warps`, with: "turn ^= 0"},
	{name: "what is selected is compared before all have stored it", program: "top_k", header: "sort_long.cuh", at: `(?m)^      sync\(DM_HERE_ONLY\);\n`, with: ""},
	{name: "parts of a line overlap", program: "top_k", header: "sort_long.cuh", at: `G::n\) \* \(part \+ 1\)`, with: "G::n) * PARTS"},
	{name: "places are those in what was selected", program: "top_k", header: "sort_long.cuh", at: `e_place\[i\] = places_ahead\[i\];`, with: ";"},

	// The plan.
	{name: "the last block is not launched", program: "pointwise", plan: func(p *artifact.Program) { p.Steps[0].Launch.Grid[0]-- }},
	{name: "the last row is not launched", program: "softmax_rows", plan: func(p *artifact.Program) { p.Steps[0].Launch.Grid[0]-- }},
	{name: "a row too many is launched", program: "softmax_rows", plan: func(p *artifact.Program) { p.Steps[0].Launch.Grid[0]++ }},
	{name: "a part of the rows is not launched", program: "columns", plan: func(p *artifact.Program) { p.Steps[0].Launch.Grid[1]-- }},
	{name: "the second kernel runs first", program: "columns", plan: func(p *artifact.Program) { slices.Reverse(p.Steps) }},
	{name: "a step is lost", program: "split_row", plan: func(p *artifact.Program) { p.Steps = p.Steps[:len(p.Steps)-1] }},
	{name: "results are exchanged", program: "columns", plan: func(p *artifact.Program) {
		a := p.Steps[len(p.Steps)-1].Launch.Args
		a[2], a[3] = a[3], a[2]
	}},
	{name: "partial sums lie over one another", program: "columns", plan: func(p *artifact.Program) {
		a := p.Steps[0].Launch.Args
		p.Buffers[a[2].Buffer].Offset = p.Buffers[a[1].Buffer].Offset
	}},
	{name: "a loop's condition is not computed", program: "loop", plan: func(p *artifact.Program) {
		for i := range p.Steps {
			if s := &p.Steps[i]; s.Kind == artifact.StepLoop {
				n := s.Decision.Parts[0]
				s.Decision.Parts[0] = 0
				p.Steps = slices.Delete(p.Steps, i+1, i+1+n)
				return
			}
		}
	}},
}

// apply makes the mistake in p; ok is false where the text has no place for it.
func (m *mutant) apply(p *artifact.Program) (ok bool) {
	if m.plan != nil {
		m.plan(p)
		return true
	}
	text := &p.Source
	if m.header != "" {
		for _, f := range prelude.Files() {
			if f.Name == m.header {
				p.Headers = []artifact.Header{{Name: f.Name, Text: f.Text}}
				text = &p.Headers[0].Text
			}
		}
	}
	at := regexp.MustCompile(m.at)
	n := 0
	*text = at.ReplaceAllStringFunc(*text, func(found string) string {
		n++
		if n-1 != m.nth {
			return found
		}
		ok = true
		return m.with
	})
	return ok
}

// copied is p with steps and buffers of its own.
func copied(p *artifact.Program) *artifact.Program {
	c := *p
	c.Buffers, c.Steps = slices.Clone(p.Buffers), slices.Clone(p.Steps)
	for i := range c.Steps {
		c.Steps[i].Launch.Args = slices.Clone(c.Steps[i].Launch.Args)
	}
	return &c
}

// Mistakes of a generator of code are found: by other numbers or by what the
// emulator checks. Without them the same programs agree.
func TestMutants(t *testing.T) {
	need.Long(t)
	needEmulator(t)
	ready := map[string]*prepared{}
	prepare := func(program, arch string) *prepared {
		key := program + "/" + arch
		if ready[key] == nil {
			text, err := os.ReadFile("testdata/mutants/" + program + ".dmir")
			if err != nil {
				t.Fatal(err)
			}
			p := &prepared{c: Case{Name: key, Text: string(text), Seed: 7, Arch: arch}}
			if f := p.reference(t.Context()); f != nil {
				t.Fatal(f)
			}
			if f := p.build(t.Context()); f != nil {
				t.Fatal(f)
			}
			ready[key] = p
		}
		return ready[key]
	}
	type try struct {
		p    *prepared
		name string // "": nothing is wrong with it
	}
	var tries []try
	var jobs []emulator.Job
	run := func() {
		outcomes, err := emulator.RunBatch(t.Context(), jobs, emulator.Options{Timeout: limit})
		if err != nil {
			t.Fatal(err)
		}
		for i, o := range outcomes {
			var outputs [][]byte
			if o.Err == nil {
				outputs = o.Result.Outputs
			}
			f := tries[i].p.judge(t.Context(), outputs, o.Err)
			switch {
			case tries[i].name == "" && f != nil:
				t.Error(f)
			case tries[i].name == "":
			case f == nil:
				t.Errorf("not found: %s (%s)", tries[i].name, tries[i].p.c.Name)
			case f.Kind == Text:
				t.Errorf("%s (%s): the mutant does not compile: %s", tries[i].name, tries[i].p.c.Name, f.Msg)
			default:
				t.Logf("%s (%s): %s: %.100s", tries[i].name, tries[i].p.c.Name, f.Kind, f.Msg)
			}
		}
		tries, jobs = nil, nil
	}
	headers := 0
	for _, m := range mutants {
		if m.header != "" { // each is compiled alone, since programs of a batch share headers
			if headers++; !need.Turn(t, headers, 9) {
				continue
			}
		}
		p := prepare(m.program, m.arch)
		built := copied(p.built)
		if !m.apply(built) {
			t.Errorf("%s: the code of %s has no %s", m.name, m.program, m.at)
			continue
		}
		tries, jobs = append(tries, try{p, m.name}), append(jobs, emulator.Job{Program: built, Inputs: p.inputs})
		if m.header != "" {
			last := len(tries) - 1
			keptTries, keptJobs := tries[:last:last], jobs[:last:last]
			tries, jobs = tries[last:], jobs[last:]
			run()
			tries, jobs = keptTries, keptJobs
		}
	}
	for _, p := range ready {
		tries, jobs = append(tries, try{p, ""}), append(jobs, emulator.Job{Program: p.built, Inputs: p.inputs})
	}
	run()
	if len(mutants) < 40 {
		t.Errorf("%d mutants", len(mutants))
	}
}
