package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dmir/cli"
	"dmir/gpu/emulator"
	"dmir/testkit/need"
)

// hostileCommands are run on each program of testdata/hostile; FILE stands for
// it and OUT for a file that is not there.
var hostileCommands = []string{
	"fmt --check FILE", "fmt --generic FILE", "lint FILE", "lint --fix --diff FILE", "lint --output-format json FILE",
	"cost FILE", "cost --output-format json FILE", "irdl FILE", "diff FILE FILE",
	"report --kind all --output-format json FILE", "report -o OUT FILE",
	"opt FILE", "opt --emit kernels FILE", "opt --emit schedule FILE", "opt --emit generic FILE", "opt --emit mlir FILE", "opt --emit stablehlo FILE", "opt --grad main FILE", "opt --passes none FILE",
	"compile --arch none FILE", "compile --arch none -o OUT FILE", "compile --arch none --emit cuda FILE",
	"compile --arch none --emit cuda -o OUT.cu FILE", "compile --arch none --grad main FILE",
	"run --device reference FILE", "run --device emulator FILE",
}

// For programs with extreme types, names and nesting every command returns its result
// or diagnostics.
func TestHostilePrograms(t *testing.T) {
	need.Long(t)
	files, err := filepath.Glob("testdata/hostile/*.dmir")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	ownCache(t)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".dmir"), func(t *testing.T) {
			for _, command := range hostileCommands {
				runs := strings.HasPrefix(command, "run ")
				if strings.Contains(command, "emulator") && emulator.Check() != nil || runs && strings.HasPrefix(filepath.Base(file), "long_") {
					continue // without a compiler; the program is valid and does not end
				}
				out := filepath.Join(t.TempDir(), "out")
				var args []string
				for _, a := range strings.Fields(command) {
					args = append(args, strings.NewReplacer("FILE", file, "OUT", out).Replace(a))
				}
				var stdout, stderr bytes.Buffer
				status := cli.Main(args, strings.NewReader(""), &stdout, &stderr) // a panic ends the test
				text := stderr.String()
				switch {
				case status < 0 || status > 2:
					t.Errorf("%s: exit status %d", command, status)
				case status == 2 && !strings.Contains(text, "error[DM"):
					t.Errorf("%s: it fails without a diagnostic that has a code: %s", command, text)
				case strings.Contains(text, "DM820") || strings.Contains(text, "DM616") || strings.Contains(text, "DM860"):
					t.Errorf("%s: the fault is dmir's own: %s", command, text)
				}
				if _, err := os.Stat(out); err == nil && status == 2 {
					t.Errorf("%s: it fails and leaves %s", command, out)
				}
			}
		})
	}
}
