package devices_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dmir/compile/devices"
	"dmir/compile/pass"
	"dmir/compile/pass/passtest"
)

const perDevice = `dm.mesh @pod {x = 2, y = 2}
func.func @f(%a: tensor<4x4xf32>, %n: tensor<3x5xi4>) -> (tensor<4x16xf32>, tensor<2x4xf32>, tensor<4x4xf32>, tensor<6x5xi4>, tensor<i64>, tensor<4x4xf32>) attributes {dm.mesh = @pod} {
  %0 = dm.all_gather %a, dim = 1, axes = ["y", "x"] : (tensor<4x4xf32>) -> tensor<4x16xf32>
  %1 = dm.reduce_scatter max %a, dim = 0, axes = ["x"] : (tensor<4x4xf32>) -> tensor<2x4xf32>
  dm.send %a, from = 1, to = 2, axes = ["y", "x"] : (tensor<4x4xf32>) -> ()
  %2 = dm.recv from = 1, to = 2, axes = ["y", "x"] : tensor<4x4xf32>
  %3 = dm.all_gather %n, dim = 0, axes = ["y"] : (tensor<3x5xi4>) -> tensor<6x5xi4>
  %4 = dm.partition_id axes = ["y"] : tensor<i64>
  %5 = dm.all_reduce add %a, axes = [] : tensor<4x4xf32>
  return %0, %1, %2, %3, %4, %5 : tensor<4x16xf32>, tensor<2x4xf32>, tensor<4x4xf32>, tensor<6x5xi4>, tensor<i64>, tensor<4x4xf32>
}
`

// TestCollectives: collectives are along the first dimension and in the order of the devices,
// transposes arrange what is along others, and a position is an argument.
func TestCollectives(t *testing.T) {
	u := passtest.Unit(t, perDevice, "f", nil)
	if err := pass.Run(u, []pass.Pass{devices.Collectives()}, nil); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(golden, passtest.Text(t, u)); d != "" {
		t.Error(d)
	}
}

const golden = `dm.mesh @pod {x = 2, y = 2}
func.func @f(%a: tensor<4x4xf32>, %n: tensor<3x5xi4>, %position: tensor<i64> {dm.position = ["y"]}) -> (tensor<4x16xf32>, tensor<2x4xf32>, tensor<4x4xf32>, tensor<6x5xi4>, tensor<i64>, tensor<4x4xf32>) attributes {dm.mesh = @pod} {
  %0 = dm.reshape %a : (tensor<4x4xf32>) -> tensor<1x4x4xf32>
  %1 = dm.all_gather %0, dim = 0, axes = ["x", "y"] : (tensor<1x4x4xf32>) -> tensor<4x4x4xf32>
  %2 = dm.reshape %1 : (tensor<4x4x4xf32>) -> tensor<2x2x4x4xf32>
  %3 = dm.transpose %2, dims = [2, 1, 0, 3] : (tensor<2x2x4x4xf32>) -> tensor<4x2x2x4xf32>
  %4 = dm.reshape %3 : (tensor<4x2x2x4xf32>) -> tensor<4x16xf32>
  %5 = dm.reshape %a : (tensor<4x4xf32>) -> tensor<2x2x4xf32>
  %6 = dm.reduce_scatter max %5, dim = 0, axes = ["x"] : (tensor<2x2x4xf32>) -> tensor<1x2x4xf32>
  %7 = dm.reshape %6 : (tensor<1x2x4xf32>) -> tensor<2x4xf32>
  %8 = dm.collective_permute %a, pairs = [[2, 1]], axes = ["x", "y"] : tensor<4x4xf32>
  %9 = dm.convert %n : (tensor<3x5xi4>) -> tensor<3x5xi8>
  %10 = dm.reshape %9 : (tensor<3x5xi8>) -> tensor<1x3x5xi8>
  %11 = dm.all_gather %10, dim = 0, axes = ["y"] : (tensor<1x3x5xi8>) -> tensor<2x3x5xi8>
  %12 = dm.reshape %11 : (tensor<2x3x5xi8>) -> tensor<6x5xi8>
  %13 = dm.convert %12 : (tensor<6x5xi8>) -> tensor<6x5xi4>
  return %4, %7, %8, %13, %position, %a : tensor<4x16xf32>, tensor<2x4xf32>, tensor<4x4xf32>, tensor<6x5xi4>, tensor<i64>, tensor<4x4xf32>
}
`

func TestUnmatched(t *testing.T) {
	for name, change := range map[string][2]string{
		"a send alone":       {`%2 = dm.recv from = 1, to = 2, axes = ["y", "x"] : tensor<4x4xf32>`, `%2 = dm.neg %a : tensor<4x4xf32>`},
		"a recv alone":       {`dm.send %a, from = 1, to = 2, axes = ["y", "x"] : (tensor<4x4xf32>) -> ()`, ``},
		"another channel":    {`to = 2, axes = ["y", "x"] : (`, `to = 2, channel = 4, axes = ["y", "x"] : (`},
		"a tensor of others": {`dm.send %a, from`, `dm.send %1, from`},
	} {
		text := strings.Replace(perDevice, change[0], change[1], 1)
		if name == "a tensor of others" {
			text = strings.Replace(text, `"x"] : (tensor<4x4xf32>) -> ()`, `"x"] : (tensor<2x4xf32>) -> ()`, 1)
		}
		err := pass.Run(passtest.Unit(t, text, "f", nil), []pass.Pass{devices.Collectives()}, nil)
		var at *pass.Error
		if !errors.As(err, &at) || at.Code != "DM833" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
