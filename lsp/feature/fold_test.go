package feature_test

import (
	"fmt"
	"strings"
	"testing"

	"dmir/lsp/feature"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// Signatures and ops that take several lines fold, the body apart from them.
func TestFolds(t *testing.T) {
	for text, want := range map[string]string{
		"func.func @f(\n    %a: tensor<4xf32>,\n    %b: tensor<4xf32>)\n    -> tensor<4xf32> {\n  %c = dm.add %a, %b\n      : tensor<4xf32>\n  return %c : tensor<4xf32>\n}\n": "0-2 types, 3-6, 4-5 types",
		"func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {\n  return %a : tensor<4xf32>\n}\n":                                                                                 "0-1",
		"func.func @f(%a: tensor<4xf32>)\n    -> tensor<4xf32> {\n  return %a : tensor<4xf32>\n}\n":                                                                            "1-2",
		"func.func private @f(tensor<4xf32>,\n    tensor<4xf32>)\n":                                                                                                            "0-1 types",
		"// a\n// b\nfunc.func @f(\n": "0-1 comment",
		"":                            "",
	} {
		var got []string
		for _, f := range feature.Folds(parse.File(source.New("f.dmir", text))) {
			s := fmt.Sprintf("%d-%d", f.First, f.Last)
			if f.Types {
				s += " types"
			}
			if f.Comment {
				s += " comment"
			}
			got = append(got, s)
		}
		if g := strings.Join(got, ", "); g != want {
			t.Errorf("%s: %s, want %s", text, g, want)
		}
	}
}
