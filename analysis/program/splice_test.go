package program

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"dmir/analysis/cost"
	"dmir/syntax/parse"
	"dmir/syntax/source"
	"dmir/testkit/need"

	"github.com/google/go-cmp/cmp"
)

const mixed = `func.func @main(%x: tensor<8x4xf32>, %w: tensor<4x4xf32>, %u: tensor<4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %0 = dm.einsum "ij,jk->ik" %x, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %1 = dm.kernel -> tensor<8x4xf32> {
    %a = dm.add %0, %u : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
    %b = dm.relu %a : tensor<8x4xf32>
    dm.yield %b : tensor<8x4xf32>
  }
  %2 = "other.op"(%1) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %3 = dm.softmax %2, dims = [1] : tensor<8x4xf32>
  %c = dm.constant dense<true> : tensor<i1>
  %4 = dm.if %c : (tensor<i1>) -> tensor<8x4xf32> {
    %t = dm.exp %3 : tensor<8x4xf32>
    dm.yield %t : tensor<8x4xf32>
  } else {
    dm.yield %3 : tensor<8x4xf32>
  }
  %5 = dm.add %4, %3 : tensor<8x4xf32>
  return %5, %1 : tensor<8x4xf32>, tensor<8x4xf32>
}
func.func @calls(%x: tensor<?x4xf32, #dm.at<dims = [n]>>) -> tensor<?x4xf32, #dm.at<dims = [n]>> {
  %0 = func.call @twice(%x) : (tensor<?x4xf32, #dm.at<dims = [n]>>) -> tensor<?x4xf32, #dm.at<dims = [n]>>
  %1 = dm.exp %0 : tensor<?x4xf32, #dm.at<dims = [n]>>
  return %1 : tensor<?x4xf32, #dm.at<dims = [n]>>
}
func.func private @twice(%x: tensor<?x4xf32, #dm.at<dims = [n]>>) -> tensor<?x4xf32, #dm.at<dims = [n]>> {
  %0 = dm.add %x, %x : tensor<?x4xf32, #dm.at<dims = [n]>>
  return %0 : tensor<?x4xf32, #dm.at<dims = [n]>>
}
` + sharded

// sharded has a mesh, a function of whole tensors and one that a device runs.
const stated = `dm.mesh @pod {data = 4, model = 2}
func.func @global(%x: tensor<8x4xf32> {dm.sharding = #dm.at<split = @pod[{data}, {}]>}, %p: tuple<tensor<4x8xf32>, tensor<8xf32>> {dm.sharding = [#dm.at<split = @pod[{}, {model}]>, unit]}) -> (tensor<8x8xf32> {dm.sharding = #dm.at<split = @pod[{}, {data}]>}) {
  %w, %b = dm.unpack %p : (tuple<tensor<4x8xf32>, tensor<8xf32>>) -> (tensor<4x8xf32>, tensor<8xf32>)
  %0 = dm.matmul %x, %w : (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %1 = dm.add %0, %b {dm.sharding = #dm.at<split = @pod[{data}, {model}]>} : (tensor<8x8xf32>, tensor<8xf32>) -> tensor<8x8xf32>
  %2 = dm.exp %1 : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}
`

const sharded = `dm.mesh @pod {data = 4, model = 2}
func.func @global(%x: tensor<8x4xf32, #dm.at<split = @pod[{data}, {}]>>) -> tensor<8x4xf32> {
  %0 = dm.reshard %x : (tensor<8x4xf32, #dm.at<split = @pod[{data}, {}]>>) -> tensor<8x4xf32, #dm.at<split = @pod[{data:(1)2}, {model}]>>
  %1 = dm.exp %0 : (tensor<8x4xf32, #dm.at<split = @pod[{data:(1)2}, {model}]>>) -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}
func.func @device(%x: tensor<2x4xf32> {dm.global = tensor<8x4xf32, #dm.at<split = @pod[{data}, {}]>>}) -> tensor<8x4xf32> attributes {dm.mesh = @pod} {
  %0 = dm.all_reduce add %x, axes = ["model"] : tensor<2x4xf32>
  %1 = dm.all_gather %0, dim = 0, axes = ["data"] : (tensor<2x4xf32>) -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}
`

// layered has functions that call others, in a loop and a branch too.
const layered = `func.func @main(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = func.call @layer(%x) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = dm.exp %0 : tensor<8x4xf32>
  %2 = dm.scan %1, carries = 1, length = 3 : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%t: tensor<8x4xf32>):
    %s = func.call @layer(%t) : (tensor<8x4xf32>) -> tensor<8x4xf32>
    dm.yield %s : tensor<8x4xf32>
  }
  %3 = func.call @layer(%2) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %c = dm.constant dense<true> : tensor<i1>
  %4 = dm.if %c : (tensor<i1>) -> tensor<8x4xf32> {
    %a = func.call @leaf(%3) : (tensor<8x4xf32>) -> tensor<8x4xf32>
    dm.yield %a : tensor<8x4xf32>
  } else {
    dm.yield %3 : tensor<8x4xf32>
  }
  return %4 : tensor<8x4xf32>
}
func.func private @layer(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = dm.softmax %x, dims = [1] : tensor<8x4xf32>
  %1 = func.call @leaf(%0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = func.call @twice(%1) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}
func.func private @leaf(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = dm.mul %x, %x : tensor<8x4xf32>
  %1 = dm.exp %0 : tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}
func.func private @twice(%x: tensor<?x4xf32, #dm.at<dims = [n]>>) -> tensor<?x4xf32, #dm.at<dims = [n]>> {
  %0 = dm.add %x, %x : tensor<?x4xf32, #dm.at<dims = [n]>>
  return %0 : tensor<?x4xf32, #dm.at<dims = [n]>>
}
`

// TestSpliceEqualsLoad edits programs at random: where a program can follow a
// change, everything that is known about it is what loading the text finds.
func TestSpliceEqualsLoad(t *testing.T) {
	need.Long(t)
	files := []*source.File{source.New("layered", layered), source.New("layered", layered), source.New("mixed", mixed), source.New("mixed", mixed), source.New("mixed", mixed), source.New("mixed", mixed)}
	paths, _ := filepath.Glob("../../examples/*.dmir")
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, source.New(path, string(text)))
	}
	rounds := uint64(2)
	if n, err := strconv.Atoi(os.Getenv("DMIR_ROUNDS")); err == nil {
		rounds = uint64(n)
	}
	for seed := range rounds {
		rnd := rand.New(rand.NewPCG(seed, 4))
		followed, whole, all := 0, 0, 0
		for _, file := range files {
			src, p := file, Load(file, Options{})
			var done []string
			for range 80 {
				text := src.Text()
				at, cut, in := randomChange(rnd, text)
				next := src.Edit(at, cut, in)
				done = append(done, fmt.Sprintf("[%d,%d) %q by %q", at, cut, text[at:cut], in))
				all++
				change := parse.Change{Start: at, End: cut, Length: len(in)}
				of, planned := parse.Replan(p.Tree, next, change)
				if !p.Splice(next, change) {
					if rnd.IntN(4) > 0 {
						next = src
						done = done[:len(done)-1]
					}
					src, p = next, Load(next, Options{})
					continue
				}
				followed++
				if planned && of.Whole {
					whole++
				}
				src = next
				if diff := cmp.Diff(known(t, Load(source.New(src.Path, src.Text()), Options{})), known(t, p)); diff != "" {
					t.Fatalf("seed %d, %s (-want +got):\n%s\nchanges:\n%s\n--- before\n%s\n--- after\n%s", seed, file.Path, diff, strings.Join(done, "\n"), text, src.Text())
				}
				if len(done)%25 == 0 {
					src, p, done = file, Load(file, Options{}), nil
				}
			}
		}
		t.Logf("%d of %d changes were followed, %d of whole functions", followed, all, whole)
		if whole == 0 {
			t.Error("no function was replaced as a whole")
		}
	}
}

func randomChange(rnd *rand.Rand, text string) (at, cut int, in string) {
	pieces := []string{
		"", "", "0", "1", "2", "3", "%0", "%1", "%x", "%t", " ", "\n", "16", "f16", "dm.", "add", "relu", "4", "8", "(", ")", "// ",
		"%1 = dm.exp %0 : tensor<8x4xf32>\n", "\n  %9 = dm.add %3, %3 : tensor<8x4xf32>\n", "\n  \"other.op\"() : () -> ()\n", "\n  return\n",
		"\n  %2 = dm.kernel -> tensor<8x4xf32> {\n    %1 = dm.exp %0 : tensor<8x4xf32>\n    dm.yield %1 : tensor<8x4xf32>\n  }\n",
		"\n  %8 = func.call @twice(%5) : (tensor<8x4xf32>) -> tensor<8x4xf32>\n",
		"{", "}", "\n}\n", "@pod", "data", "{model}", "axes = [\"data\"]", "dm.mesh @pod {data = 4, x = 2}\n", " attributes {dm.mesh = @pod} ", "@calls", "@twice", "private ", "%v: f32, ", "\nfunc.func @fresh(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %0 = other.op %y : tensor<4xf32>\n  return %x : tensor<4xf32>\n}\n",
		"\n!t = tensor<4xf32>\n", "!t", ", 2.0", "-1.5, ", "\n  %7 = dm.mul %0, 0.5 : tensor<8x4xf32>\n", "dm.sigmoid", "dm.sum", ", axis = 1", "-inf",
		"\n  %l, %d = dm.grad @loss %w : (tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>)\n",
		"\nfunc.func @loss(%w: tensor<4xf32>) -> tensor<f32> {\n  %0 = other.op %w : (tensor<4xf32>) -> tensor<f32>\n  return %0 : tensor<f32>\n}\n",
	}
	at = rnd.IntN(len(text) + 1)
	if heads := regexp.MustCompile(`func\.func[^\n]*\n|\n}`).FindAllStringIndex(text, -1); len(heads) > 0 && rnd.IntN(3) == 0 {
		head := heads[rnd.IntN(len(heads))] // or behind a body
		at = head[0] + rnd.IntN(head[1]-head[0]+1)
	}
	cut = at
	switch rnd.IntN(5) {
	case 0:
		cut = min(len(text), at+1+rnd.IntN(3))
	case 1: // a word
		for cut < len(text) && !strings.ContainsRune(" ,:\n()#<>", rune(text[cut])) {
			cut++
		}
	case 2: // a line
		at = strings.LastIndexByte(text[:at], '\n') + 1
		cut = min(at+strings.IndexByte(text[at:]+"\n", '\n')+1, len(text))
		if rnd.IntN(2) == 0 {
			return at, at, text[at:cut] // twice
		}
		return at, cut, ""
	}
	for at > 0 && at < len(text) && !utf8.RuneStart(text[at]) {
		at--
	}
	for cut < len(text) && !utf8.RuneStart(text[cut]) {
		cut++
	}
	return at, cut, pieces[rnd.IntN(len(pieces))]
}

// known is what there is to know about a program.
func known(t *testing.T, p *Program) map[string]any {
	t.Helper()
	raw, err := json.MarshalIndent(cost.JSON(p.Target, p.Funcs), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	if err := cost.Table(&table, p.Target, p.Funcs, cost.TableOptions{}); err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, n := range p.Names().Names() {
		names = append(names, fmt.Sprint(n.Kind, n.Text, n.Defs(), n.Uses()))
	}
	return map[string]any{"diagnostics": p.Diags, "cost": string(raw), "table": table.String(), "names": names}
}
