import * as assert from "node:assert/strict";
import { holdsStableHLO } from "../../src/mlir";

describe("an MLIR text", () => {
  const texts: [boolean, string][] = [
    [true, "module @jit_f attributes {mhlo.num_partitions = 1 : i32} {\n  %0 = stablehlo.add %a, %b : tensor<4xf32>"],
    [true, '%0 = "stablehlo.add"(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>'],
    [true, '%0 = "mhlo.add"(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>'],
    [true, "%0 = mhlo.add %a, %b : tensor<4xf32>"],
    [true, "  chlo.erf %a : tensor<4xf32> -> tensor<4xf32>"],
    [false, "module attributes {mhlo.num_partitions = 1 : i32} {\n  %0 = arith.addi %a, %b : i32\n}"],
    [false, "%0 = linalg.matmul ins(%a, %b : tensor<4x4xf32>, tensor<4x4xf32>)"],
    [false, "%0 = dm.add %a, %b : tensor<4xf32> // was stablehlo.add"],
    [false, ""],
  ];
  for (const [holds, text] of texts) {
    it(`${holds ? "is" : "is not"} in StableHLO: ${text.slice(0, 40).replaceAll("\n", " ")}`, () => {
      assert.equal(holdsStableHLO(text), holds);
    });
  }
});
