package pipeline_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/compile/driver"
	"dmir/syntax/source"
	"dmir/testkit/canceltest"
)

// Compiling ends soon after its context has, wherever it is: it asks a few times
// more on its way out, and gives the context's error.
func TestCancel(t *testing.T) {
	calls := strings.Builder{} // a function that grows to 3·2¹² ops
	calls.WriteString("func.func private @f0(%x: tensor<64xf32>) -> tensor<64xf32> {\n  %0 = dm.relu %x : tensor<64xf32>\n  %1 = dm.exp %0 : tensor<64xf32>\n  return %1 : tensor<64xf32>\n}\n")
	names := "0123456789abc"
	for i := 1; i < len(names); i++ {
		body := "func.func private @fI(%x: tensor<64xf32>) -> tensor<64xf32> {\n  %0 = func.call @fJ(%x) : (tensor<64xf32>) -> tensor<64xf32>\n  %1 = func.call @fJ(%0) : (tensor<64xf32>) -> tensor<64xf32>\n  return %1 : tensor<64xf32>\n}\n"
		calls.WriteString(strings.NewReplacer("I", names[i:i+1], "J", names[i-1:i]).Replace(body))
	}
	calls.WriteString("func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {\n  %0 = func.call @fc(%x) : (tensor<64xf32>) -> tensor<64xf32>\n  return %0 : tensor<64xf32>\n}\n")
	texts := map[string]string{"calls": calls.String()}
	files, err := filepath.Glob("../../testdata/programs/*_train.dmir")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(file)] = string(b)
	}
	m, _ := machine.Lookup("h200")
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			p := program.Load(source.New(name, text), program.Options{Target: m})
			mod, fn, err := driver.Pick(p, "")
			if err != nil {
				t.Fatal(err)
			}
			for steps := 1; steps < 5000; steps = steps*3 + 1 {
				ctx := &canceltest.Context{Context: t.Context(), Left: steps}
				_, err := driver.Build(ctx, mod, fn, driver.BuildOptions{Machine: m})
				if err == nil && ctx.After == 0 {
					return // it was done before
				}
				if !errors.Is(err, context.Canceled) {
					t.Errorf("ended at step %d: %v", steps, err)
				}
				if ctx.After > 20 {
					t.Errorf("ended at step %d, it asks %d times more", steps, ctx.After)
				}
			}
		})
	}
}
