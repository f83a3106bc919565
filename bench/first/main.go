// Command first measures how long people wait for the first answer of a program, and for the second.
//
//	go run ./bench/first [-runs 3] build/dmir PROGRAM...
//
// Each row is a program: dmir run with an empty cache, on the device that it chooses, beside the reference
// executor; then on the processor with what the run before has left in the cache, and how much of that is
// no execution. Measurements are whole processes, the shortest of several in turn. The command fails where a
// first answer comes more than 20 % later than the reference executor's.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"dmir/bench/peak"
)

const (
	// later is how many times as long as the reference executor a first answer may take, and slack what
	// two processes differ by that do the same: with an empty cache one asks the compiler for its version.
	later = 1.2
	slack = 50 * time.Millisecond
)

func main() {
	runs := flag.Int("runs", 3, "runs of each kind, of which the shortest counts")
	flag.Parse()
	if flag.NArg() < 2 || *runs < 1 {
		fail(errors.New("name the dmir to measure and programs: go run ./bench/first build/dmir examples/ffn.dmir"))
	}
	fmt.Println("| program | reference, s | first answer, s | ratio | by | compiled for the CPU, s | again, s | of it execution, s | the rest, ms | peak memory, MB |")
	fmt.Println("|---|--:|--:|--:|---|--:|--:|--:|--:|--:|")
	late := 0
	for _, path := range flag.Args()[1:] {
		ok, err := row(flag.Arg(0), path, *runs)
		if err != nil {
			fail(fmt.Errorf("%s: %w", path, err))
		}
		if !ok {
			late++
		}
	}
	if late > 0 {
		fail(fmt.Errorf("%d programs answer later than the reference executor by more than 20 %%", late))
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "first:", err)
	os.Exit(1)
}

// answer is a run: its whole time, what of it was execution, where, and the most memory.
type answer struct {
	wall, elapsed time.Duration
	device        string
	memory        int64
}

// run is a process. cache is its folder for what it keeps.
func run(dmir, path, device, cache string) (a answer, err error) {
	cmd := exec.Command(dmir, "run", "--output-format", "json", "--device", device, path)
	cmd.Env = append(os.Environ(), "DMIR_CACHE="+cache)
	var out, messages strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &messages
	start := time.Now()
	err = cmd.Run()
	a.wall = time.Since(start)
	if err != nil {
		return a, fmt.Errorf("%w: %s", err, messages.String())
	}
	var said struct {
		Device    string `json:"device"`
		ElapsedNs int64  `json:"elapsed_ns"`
	}
	err = json.Unmarshal([]byte(out.String()), &said)
	a.elapsed, a.device, a.memory = time.Duration(said.ElapsedNs), said.Device, peak.Of(cmd)
	return a, err
}

// row measures a program. ok is false where its first answer is late.
func row(dmir, path string, runs int) (ok bool, err error) {
	var reference, first, compiled, again answer
	shortest := func(best *answer, device, cache string) error {
		a, err := run(dmir, path, device, cache)
		if err == nil && (best.wall == 0 || a.wall < best.wall) {
			*best = a
		}
		return err
	}
	cache, err := os.MkdirTemp("", "dmir-first")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(cache)
	if err := shortest(&compiled, "cpu", filepath.Join(cache, "kept")); err != nil {
		return false, err
	}
	for n := range runs {
		if err := shortest(&reference, "reference", filepath.Join(cache, "reference")); err != nil {
			return false, err
		}
		if err := shortest(&first, "auto", filepath.Join(cache, fmt.Sprint("first", n))); err != nil {
			return false, err
		}
		if err := shortest(&again, "cpu", filepath.Join(cache, "kept")); err != nil {
			return false, err
		}
	}
	ratio := first.wall.Seconds() / reference.wall.Seconds()
	fmt.Printf("| %s | %.2f | %.2f | %.2f | %s | %.2f | %.3f | %.3f | %.0f | %d |\n", strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)),
		reference.wall.Seconds(), first.wall.Seconds(), ratio, first.device, compiled.wall.Seconds(),
		again.wall.Seconds(), again.elapsed.Seconds(), (again.wall-again.elapsed).Seconds()*1e3, again.memory>>20)
	return ratio <= later || first.wall-reference.wall <= slack, nil
}
