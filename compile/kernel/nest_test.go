package kernel

import (
	"fmt"
	"strings"
	"testing"
)

// dependent are groups whose reductions read other reductions, with their nests:
// the class, the passes along a row, the sums of columns and those of all rows; ""
// where no form can order the reductions.
var dependent = []struct{ name, body, results, want string }{
	{"softmax", "%1 = dm.softmax %x : tensor<8x16xf32>", "%1 : tensor<8x16xf32>", "row: 2 passes, 0 columns, 0 totals"},
	{
		"two sums of columns", "%0 = dm.reduce add %x, dims = [0] : (tensor<8x16xf32>) -> tensor<16xf32>\n%1 = dm.reduce max %x, dims = [0] : (tensor<8x16xf32>) -> tensor<16xf32>",
		"%0, %1 : tensor<16xf32>, tensor<16xf32>", "columns: 0 passes, 2 columns, 0 totals",
	},
	// The sum of columns is complete behind all rows, so the second cannot be one
	// in the same pass: columns are the rows of the kernel instead.
	{"a variance over the first dimension", `%0 = dm.reduce add %x, dims = [0] : (tensor<8x16xf32>) -> tensor<16xf32>
%2 = dm.sub %x, %0 : (tensor<8x16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
%3 = dm.abs %2 : tensor<8x16xf32>
%1 = dm.reduce add %3, dims = [0] : (tensor<8x16xf32>) -> tensor<16xf32>`, "%1 : tensor<16xf32>", "row: 2 passes, 0 columns, 0 totals"},
	{
		"sums of columns of a softmax of rows", "%0 = dm.softmax %x : tensor<8x16xf32>\n%1 = dm.reduce add %0, dims = [0] : (tensor<8x16xf32>) -> tensor<16xf32>",
		"%0, %1 : tensor<8x16xf32>, tensor<16xf32>", "row: 2 passes, 1 columns, 0 totals",
	},
	{
		"a softmax of columns, summed over rows", "%0 = dm.softmax %x, dim = 0 : tensor<8x16xf32>\n%1 = dm.reduce add %0, dims = [1] : (tensor<8x16xf32>) -> tensor<8xf32>",
		"%1 : tensor<8xf32>", "row: 2 passes, 1 columns, 0 totals",
	},
	{"rows of what depends on sums of columns", `%0 = dm.reduce add %x, dims = [0] : (tensor<8x16xf32>) -> tensor<16xf32>
%2 = dm.sub %x, %0 : (tensor<8x16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
%3 = dm.reduce max %2, dims = [1] : (tensor<8x16xf32>) -> tensor<8xf32>
%4 = dm.broadcast %3, dims = [0] : (tensor<8xf32>) -> tensor<8x16xf32>
%1 = dm.reduce add %4, dims = [0] : (tensor<8x16xf32>) -> tensor<16xf32>`, "%1 : tensor<16xf32>", ""},
	{"a total of totals", `%0 = dm.reduce add %x, dims = [0, 1] : (tensor<8x16xf32>) -> tensor<f32>
%2 = dm.sub %x, %0 : (tensor<8x16xf32>, tensor<f32>) -> tensor<8x16xf32>
%1 = dm.reduce max %2, dims = [0, 1] : (tensor<8x16xf32>) -> tensor<f32>`, "%1 : tensor<f32>", "row: 2 passes, 0 columns, 0 totals"},
	{"a total of the norms of rows", `%0 = dm.mul %x, %x : tensor<8x16xf32>
%2 = dm.reduce add %0, dims = [1] : (tensor<8x16xf32>) -> tensor<8xf32>
%3 = dm.sqrt %2 : tensor<8xf32>
%1 = dm.reduce max %3, dims = [0] : (tensor<8xf32>) -> tensor<f32>`, "%2, %1 : tensor<8xf32>, tensor<f32>", "row: 1 passes, 0 columns, 1 totals"},
}

func dependentForm(t *testing.T, body, results string) (*Form, error) {
	_, types, _ := strings.Cut(results, " : ")
	fn := load(t, "func.func @f(%x: tensor<8x16xf32>) -> ("+types+") {\n"+body+"\nreturn "+results+"\n}\n")
	return Of(fn.Body.Ops[:len(fn.Body.Ops)-1], fn.Body.Terminator().Operands)
}

func TestNest(t *testing.T) {
	for _, c := range dependent {
		t.Run(c.name, func(t *testing.T) {
			form, err := dependentForm(t, c.body, c.results)
			got := ""
			if err == nil {
				n := form.Nest
				got = fmt.Sprintf("%s: %d passes, %d columns, %d totals", form.Class, len(n.Passes), len(n.Columns), len(n.Totals))
			}
			if got != c.want {
				t.Errorf("%q, want %q (%v)", got, c.want, err)
			}
		})
	}
}

// Every nest in another order than its dependences allow is refused.
func TestVerify(t *testing.T) {
	form := func(body, results string) *Form {
		f, err := dependentForm(t, body, results)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	softmax := func() *Form {
		return form(dependent[3].body, dependent[3].results)
	}
	for _, c := range []struct {
		name   string
		mutate func(f *Form)
		want   string
	}{
		{"passes swapped", func(f *Form) { f.Nest.Passes[0], f.Nest.Passes[1] = f.Nest.Passes[1], f.Nest.Passes[0] }, "before it is complete"},
		{"one pass for two", func(f *Form) { f.Nest.Passes = [][]*Expr{append(f.Nest.Passes[0], f.Nest.Passes[1]...)} }, "before it is complete"},
		{"a pass lost", func(f *Form) { f.Nest.Passes = f.Nest.Passes[1:] }, "before it is complete"},
		{"sums of columns lost", func(f *Form) { f.Nest.Columns = nil }, "before it is complete"},
		{"a reduction of columns as one along the row", func(f *Form) { f.Nest.Passes[0] = append(f.Nest.Passes[0], f.Nest.Columns[0]) }, "is listed among"},
		{"sums of columns stored for each element", func(f *Form) { f.Outs[1].Level = PerElement }, "before it is complete"},
		{"elements stored for each row", func(f *Form) { f.Outs[0].Level = PerRow }, "no value for each row"},
		{"a place of another level", func(f *Form) { f.Outs[1].At = f.Outs[0].At }, "no value for each column"},
	} {
		f := softmax()
		c.mutate(f)
		if err := f.Verify(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	f := form("%1 = dm.abs %x : tensor<8x16xf32>", "%1 : tensor<8x16xf32>")
	f.Outs[0].Loops = nil
	if err := f.Verify(); err == nil {
		t.Error("an element without its loop passes")
	}
}

// Sums that are computed in the pass of what they are relative to, and such as look
// like them.
func TestOnline(t *testing.T) {
	exps := func(m, d, e string) string {
		return "%m = " + m + "\n%d = " + d + "\n%e = " + e + "\n%1 = dm.reduce add %e, dims = [1] : (tensor<8x16xf32>) -> tensor<8xf32>"
	}
	const (
		greatest = "dm.reduce max %x, dims = [1], keep_dims = true : (tensor<8x16xf32>) -> tensor<8x1xf32>"
		apart    = "dm.sub %x, %m : (tensor<8x16xf32>, tensor<8x1xf32>) -> tensor<8x16xf32>"
		exp      = "dm.exp %d : tensor<8x16xf32>"
	)
	squares := func(by, of string) string {
		return "%c = dm.constant dense<" + by + "> : tensor<f32>\n" + `%s = dm.reduce add ` + of + `, dims = [1], keep_dims = true : (tensor<8x16xf32>) -> tensor<8x1xf32>
%m = dm.mul %s, %c : (tensor<8x1xf32>, tensor<f32>) -> tensor<8x1xf32>
%d = dm.sub %x, %m : (tensor<8x16xf32>, tensor<8x1xf32>) -> tensor<8x16xf32>
%q = dm.mul %d, %d : tensor<8x16xf32>
%1 = dm.reduce add %q, dims = [1] : (tensor<8x16xf32>) -> tensor<8xf32>`
	}
	const row, all = "%1 : tensor<8xf32>", "%1 : tensor<8x16xf32>"
	for _, c := range []struct {
		name, body, results string
		passes, sums        int
	}{
		{"exponentials", exps(greatest, apart, exp), row, 1, 1},
		{"relative to the least", exps(strings.Replace(greatest, "max", "min", 1), apart, exp), row, 2, 0},
		{"relative to the greatest of others", "%y = dm.abs %x : tensor<8x16xf32>\n" + exps(strings.Replace(greatest, "%x", "%y", 1), apart, exp), row, 2, 0},
		{"the other way round", exps(greatest, "dm.sub %m, %x : (tensor<8x1xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>", exp), row, 2, 0},
		{"of another function", exps(greatest, apart, "dm.tanh %d : tensor<8x16xf32>"), row, 2, 0},
		{"scaled", exps(greatest, "dm.mul %x, %m : (tensor<8x16xf32>, tensor<8x1xf32>) -> tensor<8x16xf32>", exp), row, 2, 0},
		{"squares", squares("0.0625", "%x"), row, 1, 1},
		{"squares relative to no mean", squares("0.0624", "%x"), row, 2, 0},
		{"squares relative to the mean of others", "%y = dm.abs %x : tensor<8x16xf32>\n" + squares("0.0625", "%y"), row, 2, 0},
		{"a norm", "%1 = dm.layer_norm %x, %b : (tensor<8x16xf32>, tensor<16xf32>) -> tensor<8x16xf32>", all, 1, 1},
		{"a softmax", "%1 = dm.softmax %x : tensor<8x16xf32>", all, 1, 1},
		{"a softmax of a softmax", "%0 = dm.softmax %x : tensor<8x16xf32>\n%1 = dm.softmax %0 : tensor<8x16xf32>", all, 2, 2},
		{"a softmax of a norm", "%0 = dm.layer_norm %x, %b : (tensor<8x16xf32>, tensor<16xf32>) -> tensor<8x16xf32>\n%1 = dm.softmax %0 : tensor<8x16xf32>", all, 2, 2},
	} {
		_, types, _ := strings.Cut(c.results, " : ")
		fn := load(t, "func.func @f(%x: tensor<8x16xf32>, %b: tensor<16xf32>) -> "+types+" {\n"+c.body+"\nreturn "+c.results+"\n}\n")
		f, err := Of(fn.Body.Ops[:len(fn.Body.Ops)-1], fn.Body.Terminator().Operands)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if o := f.Online(); len(o.Passes) != c.passes || len(o.Base) != c.sums {
			t.Errorf("%s: %d passes and %d sums with their base, not %d and %d", c.name, len(o.Passes), len(o.Base), c.passes, c.sums)
		}
	}
}

// A sum that waits for nothing is computed where its elements are read anyway.
func TestPostponed(t *testing.T) {
	fn := load(t, `func.func @f(%x: tensor<8x16xf32>, %g: tensor<8x16xf32>) -> (tensor<8x1xf32>, tensor<8x1xf32>, tensor<8xf32>) {
  %y = dm.softmax %x : tensor<8x16xf32>
  %p = dm.mul %y, %g : tensor<8x16xf32>
  %a = dm.reduce add %p, dims = [1], keep_dims = true : (tensor<8x16xf32>) -> tensor<8x1xf32>
  %b = dm.reduce add %g, dims = [1], keep_dims = true : (tensor<8x16xf32>) -> tensor<8x1xf32>
  %c = dm.reduce min %x, dims = [1] : (tensor<8x16xf32>) -> tensor<8xf32>
  return %a, %b, %c : tensor<8x1xf32>, tensor<8x1xf32>, tensor<8xf32>
}
`)
	f, err := Of(fn.Body.Ops[:len(fn.Body.Ops)-1], fn.Body.Terminator().Operands)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, pass := range f.Online().Passes {
		for _, x := range pass {
			got = append(got, x.Kind)
		}
		got = append(got, "|")
	}
	if want := "max min add | add add |"; strings.Join(got, " ") != want {
		t.Errorf("%s, want %s", strings.Join(got, " "), want)
	}
}
