package feature_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/dialect/op"
	"dmir/lsp/feature"
	"dmir/syntax/source"
)

const around = `!act = tensor<4x8xf32>
func.func @f(%%x: !act, %%w: tensor<8x16xf32>, %%i: tensor<4xi32>, %%p: tensor<4x8xi1>) -> !act {
  %%h = dm.exp %%x : !act
  %s
  return %%x : !act
}
`

// completeAt completes at the mark in a text.
func completeAt(text string) (p *program.Program, off int, c feature.Completions) {
	off = strings.Index(text, "‸")
	p = program.Load(source.New("in.dmir", strings.Replace(text, "‸", "", 1)), program.Options{})
	return p, off, feature.Complete(p, off)
}

// The holes of an op hold the nearest operands that fit and the type that follows from them: what
// is inserted is right as it stands, for every op whose attributes are known.
func TestFilled(t *testing.T) {
	whole := 0
	for _, d := range op.All() {
		if d.FullName() == op.Yield { // it has no place here
			continue
		}
		left := make([]string, len(d.Results))
		for i := range left {
			left[i] = fmt.Sprintf("%%new%d", i)
		}
		results := strings.Join(left, ", ")
		if results != "" {
			results += " = "
		}
		text := fmt.Sprintf(around, results+d.FullName()+"‸")
		_, off, c := completeAt(text)
		for _, it := range c.Items {
			if it.Label != d.FullName() || it.Filter != "" || it.Snippet == "" {
				continue
			}
			if strings.Contains(it.Snippet, "{\n") || strings.Contains(it.Snippet, ":type}") || empty.MatchString(it.Snippet) {
				break // the rest is for people to write
			}
			filledIn := filled.ReplaceAllString(choice.ReplaceAllString(it.Snippet, "$1"), "$1")
			filledIn = regexp.MustCompile(`\\(.)`).ReplaceAllString(filledIn, "$1")
			plain := strings.Replace(text, "‸", "", 1)
			p := program.Load(source.New("in.dmir", plain[:c.Span.Start]+filledIn+plain[off:]), program.Options{})
			for _, diagnostic := range p.Diags {
				t.Errorf("%s: %s", filledIn, diagnostic.Message)
			}
			whole++
		}
	}
	if whole < 60 {
		t.Errorf("%d ops are whole", whole)
	}
}

// What is offered at the places that a snippet leaves, and inside of words.
func TestCompletionAtHoles(t *testing.T) {
	for _, c := range []struct {
		line, label, snippet, filter string
		replaced                     string
	}{
		{"%y = dm.softm‸", "dm.softmax", "dm.softmax ${1|%h,%w,%x|} : ${2|!act,tensor<8x16xf32>|}", "", "dm.softm"},
		{"%y = dm.so‸fmax", "dm.softmax", "dm.softmax ${1|%h,%w,%x|} : ${2|!act,tensor<8x16xf32>|}", "", "dm.sofmax"},
		{"%y = dm.so‸ftmax %x : !act", "dm.softmax", "", "", "dm.softmax"},
		{"%y = dm.matm‸", "dm.matmul", `dm.matmul ${1|%h,%w,%x|} , `, "", "dm.matm"},
		{"%y = dm.softmax %x : type‸", "!act", "", "type", "type"},
		{"%y = dm.softmax %x‸ : !act", "%h", "", "%x", "%x"},
		{"%y = dm.softmax %x‸ : !act", "%x", "", "", "%x"},
		{"return‸", "return", "return ${1|%h,%x|} : ${2:!act}", "", "return"},
	} {
		p, _, got := completeAt(fmt.Sprintf(around, c.line))
		if text := p.Src.Slice(source.Span{Start: got.Span.Start, End: got.End}); text != c.replaced {
			t.Errorf("%s: %q is replaced", c.line, text)
		}
		found := false
		for _, it := range got.Items {
			if it.Label != c.label || found {
				continue
			}
			found = true
			if it.Filter != c.filter || c.snippet != it.Snippet && !strings.HasSuffix(c.snippet, " , ") {
				t.Errorf("%s: %+v", c.line, it)
			}
			if c.label == "dm.matmul" && !strings.Contains(it.Snippet, "(!act, tensor<8x16xf32>) -> tensor<4x16xf32>") {
				t.Errorf("%s: %+v", c.line, it)
			}
		}
		if !found {
			t.Errorf("%s: %s is not offered", c.line, c.label)
		}
	}
}
