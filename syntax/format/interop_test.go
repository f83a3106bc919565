package format_test

import (
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"dmir/syntax/format"
	"dmir/syntax/parse"
	"dmir/syntax/source"
	"dmir/testkit/need"
)

const mlirOpt = "mlir-opt-22"

// unlike are the corpus files that mlir-opt reads differently once formatted,
// each with the reason. There are none.
var unlike = map[string]string{}

// TestMeaning holds that MLIR's own tool prints the same for a file before and
// after formatting or, where it rejects the file because it lacks a dialect,
// rejects both in the same words.
func TestMeaning(t *testing.T) {
	need.Long(t)
	if testing.Short() {
		t.Skip("starts mlir-opt hundreds of times")
	}
	need.Tool(t, mlirOpt, "apt-get install mlir-22-tools")
	files := append(corpusFiles(t), accepted(t)...)
	work := make(chan *source.File)
	var (
		wg                             sync.WaitGroup
		mu                             sync.Mutex
		same, accepted, rejected, fail int
	)
	for range min(2, runtime.NumCPU()) {
		wg.Go(func() {
			for src := range work {
				formatted := format.File(parse.File(src))
				if formatted == src.Text() {
					mu.Lock()
					same++
					mu.Unlock()
					continue
				}
				before, after := run(src.Text()), run(formatted)
				mu.Lock()
				switch reason := unlike[src.Path]; {
				case before != after && reason != "":
					t.Logf("%s: %s", src.Path, reason)
				case before != after:
					fail++
					t.Errorf("%s means something else once formatted:\n%s\n%s", src.Path,
						format.Diff("printed", before.printed, after.printed), format.Diff("messages", before.messages, after.messages))
				case before.ok:
					accepted++
				default:
					rejected++
				}
				mu.Unlock()
			}
		})
	}
	for _, src := range files {
		work <- src
	}
	close(work)
	wg.Wait()
	t.Logf("equal meaning: %d formatted already, %d accepted and %d rejected alike of %d; %d differ", same, accepted, rejected, len(files), fail)
}

// reading is what mlir-opt makes of a text.
type reading struct {
	ok                bool
	printed, messages string
}

var messages = regexp.MustCompile(`(?m)^.*?:\d+:\d+: (.*)$`)

func run(text string) reading {
	args := []string{"--allow-unregistered-dialect"}
	if strings.Contains(text, "// -----") {
		args = append(args, "--split-input-file")
	}
	cmd := exec.Command(mlirOpt, args...)
	var out, errs strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(text), &out, &errs
	r := reading{ok: cmd.Run() == nil, printed: out.String()}
	for _, m := range messages.FindAllStringSubmatch(errs.String(), -1) {
		r.messages += m[1] + "\n"
	}
	return r
}
