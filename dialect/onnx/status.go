package onnx

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Why an op has no conversion.
const (
	fromData  = "sizes that only the data decides about"
	optionals = "optional values"
	texts     = "tensors of strings"
	ofKnown   = "of sequences whose members are known, which are no input or output of the model"
)

// lacking says for each op of ONNX that has no conversion why.
var lacking = map[string]string{
	"ImageDecoder": "files of images",
	"Optional":     optionals, "OptionalGetElement": optionals, "OptionalHasElement": optionals,
	"RegexFullMatch": texts,
	"SequenceMap":    "a graph for each member of a sequence",
	"StringConcat":   texts, "StringNormalizer": texts, "StringSplit": texts, "TfIdfVectorizer": texts,
	"Unique":             fromData,
	preview + "Gradient": "differentiate the function in the dialect (`dm.grad`)",
}

// partly says of what an op's conversion needs, or leaves out.
var partly = map[string]string{
	"Attention":          "`dm.attention` where nothing is masked but what is later, otherwise written out",
	"Bernoulli":          "with numbers of `dm.rng`",
	"Compress":           "of a known condition",
	"ConvTranspose":      "a result of `output_shape` that is larger than the natural one ends in zeros",
	"DFT":                "by a product with a table, up to 1,024 elements",
	"DeformConv":         "of images",
	"Dropout":            "in training with numbers of `dm.dropout`",
	"Loop":               "`dm.scan` where the number of iterations is known, otherwise `dm.while`, which stacks no results",
	"LinearAttention":    "`dm.scan` over the tokens",
	"Multinomial":        "with numbers of `dm.rng`",
	"NonMaxSuppression":  "with a known bound on boxes (`max_output_boxes_per_class`); rows of -1 follow those of the selected boxes up to it",
	"NonZero":            "of known values",
	"RandomNormal":       "with numbers of `dm.rng`",
	"RandomNormalLike":   "with numbers of `dm.rng`",
	"RandomUniform":      "with numbers of `dm.rng`",
	"RandomUniformLike":  "with numbers of `dm.rng`",
	"Resize":             "without antialiasing and `tf_crop_and_resize`",
	"RoiAlign":           "with a number of samples (`sampling_ratio`)",
	"ConcatFromSequence": ofKnown, "SequenceAt": ofKnown, "SequenceConstruct": ofKnown, "SequenceEmpty": ofKnown,
	"SequenceErase": ofKnown, "SequenceInsert": ofKnown, "SequenceLength": ofKnown, "SplitToSequence": ofKnown,
	"STFT":                            "by a product with a table",
	"Scan":                            "from version 9 on",
	microsoft + "Attention":           "without rotary embeddings and shared buffers",
	microsoft + "GroupQueryAttention": "without quantized caches, sinks and norms of queries and keys; rows of padding have values of their own",
	microsoft + "MatMulNBits":         "of 2, 4 and 8 bits, without `g_idx`",
	microsoft + "MultiHeadAttention":  "of queries, keys and values apart",
}

// Status is a table, in Markdown, of all ops that the importer knows of, and what becomes
// of them.
func Status() string {
	var b strings.Builder
	b.WriteString("| op | |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(schemas())) {
		what := "works"
		if why, lacks := lacking[name]; lacks {
			what = "no: " + why
		} else if note := partly[name]; note != "" {
			what = note
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, what)
	}
	return b.String()
}
