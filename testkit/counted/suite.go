package counted

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"dmir/analysis/program"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/syntax/source"
	"dmir/testkit/randprog"
)

// Program is a text of the suite.
type Program struct {
	Name, Text string
	Arrays     types.Arrays // of constants in files
}

// Suite are the programs below root, the folder of the repository: the examples
// with small sizes, the small training steps, those of
// testdata/counted, the examples of the ops in one function, and random ones.
func Suite(root string, random int) ([]Program, error) {
	var out []Program
	for _, dir := range []string{"examples", "testdata/programs", "testdata/counted"} {
		paths, err := filepath.Glob(filepath.Join(root, dir, "*.dmir"))
		if err != nil || len(paths) == 0 {
			return nil, fmt.Errorf("%s: no programs (%w)", dir, err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			name := strings.TrimSuffix(filepath.Base(path), ".dmir")
			p := Program{Name: dir + "/" + name, Text: string(text)}
			if dir == "examples" {
				if small[name] != "" {
					continue
				}
				p.Text = shrink(p.Text)
			}
			out = append(out, p)
		}
	}
	ops, err := Ops()
	if err != nil {
		return nil, err
	}
	out = append(out, ops)
	for seed := range uint64(random) {
		out = append(out, Program{Name: fmt.Sprintf("random/%d", seed), Text: randprog.Messy(seed, 12)})
	}
	return out, nil
}

// small are the examples that shrink does not handle, with a smaller program for
// each.
var small = map[string]string{
	"cnn":                    "testdata/programs/cnn_forward",
	"block_sparse_attention": "testdata/counted/sparse_attention", // nnz does not shrink with the sizes
	"gcn_train":              "testdata/counted/sparse_train",
	"pruned_mlp":             "testdata/counted/sparse_train",
}

var (
	large  = regexp.MustCompile(`tensor<[0-9?x]+|\[[0-9, ]+\]`)
	number = regexp.MustCompile(`[0-9]+`)
)

// shrink makes the large dimensions of a text a 64th, so that it runs quickly.
func shrink(text string) string {
	return large.ReplaceAllStringFunc(text, func(s string) string {
		return number.ReplaceAllStringFunc(s, func(s string) string {
			n, _ := strconv.Atoi(s)
			if n >= 512 && n%64 == 0 {
				n /= 64
			}
			return strconv.Itoa(n)
		})
	})
}

// apart are the ops whose examples no function of others calls.
var apart = map[string]string{
	"grad":  "a pass writes it out",
	"yield": "it ends a region",
}

var head = regexp.MustCompile(`(?s)func\.func @example\((.*?)\)\s*->\s*(.*?) \{\n`)

// Ops is the program @all, which calls the example of every op of the registry
// on arguments of its own.
func Ops() (Program, error) {
	var text, calls strings.Builder
	var args, results, values []string
	for _, d := range op.All() {
		if apart[d.Name] != "" || d.Family == op.Distribution { // these are for several devices
			continue
		}
		if head.FindStringIndex(d.Example) == nil {
			return Program{}, fmt.Errorf("%s: no example", d.Name)
		}
		name := "op_" + d.Name
		text.WriteString(strings.Replace(d.Example, "@example", "@"+name, 1) + "\n")
		fn := program.Load(source.New(name, d.Example), program.Options{}).Modules[0].Func("example")
		var operands, in, out, names []string
		for i, a := range fn.Args {
			operands = append(operands, fmt.Sprintf("%%%s_%d", d.Name, i))
			in = append(in, a.Type.String())
			args = append(args, fmt.Sprintf("%%%s_%d: %s", d.Name, i, a.Type))
		}
		for _, r := range fn.Results {
			names = append(names, fmt.Sprintf("%%r%d", len(values)))
			values = append(values, names[len(names)-1])
			out = append(out, r.String())
			results = append(results, r.String())
		}
		fmt.Fprintf(&calls, "  %s = func.call @%s(%s) : (%s) -> (%s)\n", strings.Join(names, ", "), name, strings.Join(operands, ", "), strings.Join(in, ", "), strings.Join(out, ", "))
	}
	fmt.Fprintf(&text, "func.func @all(%s) -> (%s) {\n%s  return %s : %s\n}\n", strings.Join(args, ", "), strings.Join(results, ", "), calls.String(), strings.Join(values, ", "), strings.Join(results, ", "))
	return Program{Name: "ops", Text: strings.ReplaceAll(text.String(), "func.func @op_", "func.func private @op_")}, nil
}
