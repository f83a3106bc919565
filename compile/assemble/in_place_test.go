package assemble

import (
	"fmt"
	"strings"
	"testing"

	"dmir/analysis/program"
	"dmir/compile/kernel"
	"dmir/syntax/source"
)

// A kernel may overwrite a value only if each thread reads only the elements that it
// writes.
func TestOwnElement(t *testing.T) {
	for _, c := range []struct {
		name, body, out string
		want            bool
	}{
		{"itself", "%y = dm.relu %x : !x", "%y", true},
		{"twice, beside another", "%p = dm.mul %x, %z : !x\n%y = dm.add %p, %x : !x", "%y", true},
		{"a part", "%y = dm.dynamic_update_slice %x, %row, %i, %i : (!x, tensor<1x8xf32>, tensor<i64>, tensor<i64>) -> !x", "%y", true},
		{"where updates meet it", `%y = dm.scatter add %x, %at, %rows, dim = 0 : (!x, tensor<3xi64>, tensor<3x8xf32>) -> !x`, "%y", true},
		{"transposed", "%p = dm.transpose %x, dims = [1, 0] : !x\n%y = dm.add %p, %x : !x", "%y", false},
		{"backwards", "%y = dm.reverse %x, dims = [0] : !x", "%y", false},
		{"its row's sum", "%s = dm.reduce add %x, dims = [1] : (!x) -> tensor<8xf32>\n%b = dm.broadcast %s, dims = [0] : (tensor<8xf32>) -> !x\n%y = dm.sub %x, %b : !x", "%y", false},
		{"a product", "%y = dm.matmul %x, %z : !x", "%y", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.ReplaceAll(fmt.Sprintf("func.func @f(%%x: !x, %%z: !x, %%row: tensor<1x8xf32>, %%i: tensor<i64>, %%at: tensor<3xi64>, %%rows: tensor<3x8xf32>) -> !x {\n%s\nreturn %s : !x\n}\n", c.body, c.out), "!x", "tensor<8x8xf32>")
			p := program.Load(source.New("f.dmir", text), program.Options{})
			for _, d := range p.Diags {
				t.Fatalf("%s %s\n%s", d.Code, d.Message, text)
			}
			fn := p.Modules[0].Funcs[0]
			last := fn.Body.Terminator()
			f, err := kernel.Of(fn.Body.Ops[:len(fn.Body.Ops)-1], last.Operands)
			if err != nil {
				t.Fatal(err)
			}
			if got := readsOwnElements(f, 0, fn.Args[0]); got != c.want {
				t.Errorf("a kernel of class %s: %t", f.Class, got)
			}
		})
	}
}
