package program_test

import (
	"regexp"
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/dialect/op"
	"dmir/syntax/source"
)

// hollow matches a message in which a name is missing.
var hollow = regexp.MustCompile("``|  |^ | $|\\b(no|unknown) op( ?[:,;]|$)|\\bof ?([:,;]|$)|@( |$|,|:)|\\bdm\\.( |$|,|:)|^ ?(has|needs|takes|returns|is|contains|cannot) ")

// quoted is text of the program in a message.
var quoted = regexp.MustCompile(`"([^"\\]|\\.)*"`)

// TestMessagesNameWhatTheyAreAbout: no message about a broken text, such as an op
// without a name, leaves a name out.
func TestMessagesNameWhatTheyAreAbout(t *testing.T) {
	const sig = " : (tensor<4xf32>) -> tensor<4xf32>"
	lines := []string{
		`""(%x)` + sig, `"dm."(%x)` + sig, `"."(%x)` + sig, `" "(%x)` + sig, `"\00"(%x)` + sig, `"func."(%x)` + sig, `"dm. exp"(%x)` + sig,
		"dm. %x" + sig, ". %x" + sig, "dm %x" + sig, `"dm.exp(%x)`, "(%x)" + sig, "dm.. %x" + sig, "func. %x" + sig, ".exp %x" + sig, "", "= dm.exp %x" + sig,
		`dm.reduce "" %x` + sig, `"dm.reduce"(%x) <{kind = ""}>` + sig, `"dm.grad"(%x) <{callee = @""}>` + sig, `"dm.grad"(%x) <{callee = ""}>` + sig,
		`func.call @""(%x)` + sig, "call @(%x)" + sig, `"func.call"(%x) <{callee = ""}>` + sig, `"func.call"(%x)` + sig,
		"dm.exp %x, = 3" + sig, `dm.softmax %x {"" = 3}` + sig, "dm.exp %" + sig, "dm.exp %x : ", "dm.exp %x : !", "dm.exp %x : #",
		"dm.exp %x : tensor<4x>", "dm.exp %x : tensor<>", "dm.exp %x, : tensor<4xf32>", "dm.exp %x#" + sig, `"dm.exp"(%x)[^]` + sig, `"dm.exp"()`, "dm.add -, %x" + sig,
		"dm.constant dense<> : tensor<4xf32>", `dm.constant "" : tensor<4xf32>`, `dm.einsum "" %x` + sig, "dm.copy %x : (tensor<4xf32>) -> tensor<4xf32, #dm.at<>>",
		"dm.copy %x : (tensor<4xf32>) -> tensor<4xf32, #dm.at<dims = [\"\"]>>",
	}
	// Every op without its operands, attributes and types, and every prefix of its example.
	for _, d := range op.All() {
		lines = append(lines, d.FullName(), d.FullName()+" : ()", `"`+d.FullName()+`"() : () -> ()`, `"`+d.FullName()+`"(%x)`+sig, d.FullName()+" %x"+sig)
	}
	check := func(text string) {
		p := program.Load(source.New("in.dmir", text), program.Options{})
		for _, d := range p.Diags {
			texts := append([]string{d.Message, d.Help}, d.Notes...)
			for _, r := range d.Related {
				texts = append(texts, r.Message)
			}
			for _, s := range texts {
				if bare := quoted.ReplaceAllString(s, "…"); s != "" && hollow.MatchString(bare) {
					t.Errorf("%s: %q about\n%s", d.Code, s, text)
				}
			}
		}
	}
	for _, line := range lines {
		check("func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %y = " + line + "\n  return %x : tensor<4xf32>\n}\n")
		check(line)
		for _, around := range []string{
			"  %y = dm.kernel -> tensor<4xf32> {\n    %a = LINE\n    dm.yield %a : tensor<4xf32>\n  }\n",
			"  %y = dm.map %x : (tensor<4xf32>) -> tensor<4xf32> {\n  ^bb0(%a: f32):\n    %b = LINE\n    dm.yield %b : f32\n  }\n",
			"  %y = dm.while %x : (tensor<4xf32>) -> tensor<4xf32> {\n  ^bb0(%a: tensor<4xf32>):\n    LINE\n  } do {\n  ^bb0(%a: tensor<4xf32>):\n    LINE\n  }\n",
			"  %y = \"other.op\"(%x) ({\n    LINE\n  })" + sig + "\n",
			"  LINE\n  LINE\n",
			"  return %x : tensor<4xf32>\n}\nfunc.func @g(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %l, %y = dm.grad @f %x : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)\n  LINE\n",
		} {
			check("func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n" + strings.ReplaceAll(around, "LINE", line) + "  return %x : tensor<4xf32>\n}\n")
		}
	}
	if testing.Short() {
		return
	}
	for _, d := range op.All() {
		for i := 0; i < len(d.Example); i += 5 {
			check(d.Example[:i])
			if at := strings.IndexByte(d.Example[i:], ' '); at > 0 {
				check(d.Example[:i] + d.Example[i+at:])
			}
		}
	}
}
