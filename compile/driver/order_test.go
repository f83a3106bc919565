package driver

import (
	"fmt"
	"strings"
	"testing"
)

// Orders in every element type, rising and falling, with many equal elements
// among the integers.
func TestOrders(t *testing.T) {
	t.Parallel()
	needEmulator(t)
	var args, body, results, values []string
	give := func(value, typ string) {
		values, results = append(values, value), append(results, typ)
	}
	for i, e := range []string{"f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "ui64", "ui32", "ui16", "ui8"} {
		args = append(args, fmt.Sprintf("%%x%d: tensor<4x40x3x%s>", i, e))
		for j, falling := range []bool{false, true} {
			text := strings.NewReplacer("@", fmt.Sprintf("%d_%d", i, j), "%x", fmt.Sprintf("%%x%d", i), "!x", "tensor<4x40x3x"+e+">", "!k", "tensor<4x7x3x"+e+">",
				"FALLING", fmt.Sprint(falling), "ELEM", e)
			body = append(body, text.Replace(`%s@, %i@ = dm.sort %x, dim = 1, descending = FALLING : (!x) -> (!x, tensor<4x40x3xi32>)
%k@, %p@ = dm.top_k %x, k = 7, dim = 1, largest = FALLING : (!x) -> (!k, tensor<4x7x3xi64>)`))
			give(text.Replace("%s@"), text.Replace("!x"))
			give(text.Replace("%i@"), "tensor<4x40x3xi32>")
			give(text.Replace("%k@"), text.Replace("!k"))
			give(text.Replace("%p@"), "tensor<4x7x3xi64>")
		}
		body = append(body, fmt.Sprintf("%%a%d = dm.argmax %%x%d, dim = 1 : (tensor<4x40x3x%s>) -> tensor<4x3xi32>", i, i, e))
		give(fmt.Sprintf("%%a%d", i), "tensor<4x3xi32>")
	}
	agree(t, loaded(t, "orders.dmir", fmt.Sprintf("func.func @all(%s) -> (%s) {\n%s\nreturn %s : %s\n}\n", strings.Join(args, ", "), strings.Join(results, ", "),
		strings.Join(body, "\n"), strings.Join(values, ", "), strings.Join(results, ", "))), "all")
}
