// Mutate measures what a package's own tests notice: it plants small faults, mutants, in the package, one at a time, and runs the
// tests. It prints a line for each mutant: killed, with the test that failed, or survived, which asks for a test, or for less code.
//
// usage: go run ./testkit/mutate [-n N] [-seed S] [-only K,K] [-tests PACKAGE] PACKAGE [FLAGS OF THE TEST BINARY]
//
// All mutants are compiled into one test binary, in which a variable of the environment turns one on; the tree stays as it is. The
// same seed draws the same mutants while their functions stay the same.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/tools/go/packages"
)

func main() {
	log.SetFlags(0)
	n := flag.Int("n", 17, "number of mutants")
	seed := flag.Uint64("seed", 1, "draws the mutants")
	tests := flag.String("tests", "", "the package whose tests run, PACKAGE itself without it")
	only := flag.String("only", "", "numbers of the mutants to run, all without it")
	flag.Parse()
	if flag.NArg() == 0 {
		log.Fatal("usage: mutate [-n N] [-seed S] [-only K,K] [-tests PACKAGE] PACKAGE [FLAGS OF THE TEST BINARY]")
	}
	if err := run(os.Stdout, flag.Arg(0), *n, *seed, *only, *tests, flag.Args()[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(w io.Writer, path string, n int, seed uint64, only, tests string, flags []string) error {
	pkgs, err := packages.Load(&packages.Config{Mode: packages.LoadSyntax}, path)
	if err != nil {
		return err
	}
	if len(pkgs) != 1 || len(pkgs[0].Errors) > 0 {
		return fmt.Errorf("%s is no single package that compiles: %v", path, pkgs[0].Errors)
	}
	pkg := pkgs[0]
	mutants, err := draw(pkg, n, seed)
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	binary, err := build(pkg, mutants, cmp.Or(tests, path), temp)
	if err != nil {
		return err
	}
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", cmp.Or(tests, path)).Output()
	if err != nil {
		return err
	}
	b := bench{binary: binary, dir: strings.TrimSpace(string(dir)), reached: filepath.Join(temp, "reached"), flags: flags, limit: 10 * time.Minute}
	start := time.Now()
	if out, err := b.test("reach"); err != nil {
		return fmt.Errorf("the tests fail without a mutant: %w\n%s", err, out)
	}
	b.limit = 30*time.Second + 5*time.Since(start)
	reached, err := os.ReadFile(b.reached)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	ran, killed := 0, 0
	for i, m := range mutants {
		number := strconv.Itoa(i)
		if only != "" && !slices.Contains(strings.Split(only, ","), number) {
			continue
		}
		verdict := "survived, its function is never called"
		if slices.Contains(strings.Fields(string(reached)), number) {
			verdict = b.verdict(number)
		}
		ran++
		if strings.HasPrefix(verdict, "killed") {
			killed++
		}
		fmt.Fprintf(w, "%s %s:%d: %s: %s → %s: %s\n", number, filepath.Base(m.file), m.line, m.operator, oneLine(m.old), oneLine(m.text), verdict)
	}
	fmt.Fprintf(w, "%s: %d of %d killed\n", pkg.PkgPath, killed, ran)
	return nil
}

func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > 100 {
		return string(r[:100]) + "…"
	}
	return text
}

// build compiles the tests of the package with all mutants in it.
func build(pkg *packages.Package, mutants []mutant, tests, temp string) (binary string, err error) {
	replace := map[string]string{}
	add := func(name, text string) error {
		to := filepath.Join(temp, strconv.Itoa(len(replace))+".go")
		replace[name] = to
		return os.WriteFile(to, []byte(text), 0o600)
	}
	for _, name := range pkg.CompiledGoFiles {
		text, err := planted(name, mutants)
		if err == nil && text != "" {
			err = add(name, text)
		}
		if err != nil {
			return "", err
		}
	}
	if err := add(filepath.Join(filepath.Dir(pkg.GoFiles[0]), "planted_mutants.go"), fmt.Sprintf(runtimePart, pkg.Name)); err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	at := filepath.Join(temp, "overlay.json")
	if err := os.WriteFile(at, overlay, 0o600); err != nil {
		return "", err
	}
	binary = filepath.Join(temp, "test")
	out, err := exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-w", "-overlay", at, "-o", binary, tests).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go test -c: %w\n%s", err, out)
	}
	return binary, nil
}

// runtimePart is added to the package. With MUTANT=reach no mutant is on, and the numbers of those whose functions are called go
// to a file.
const runtimePart = `package %s

import (
	"fmt"
	"os"
	"sync"
)

var (
	plantedOn      = os.Getenv("MUTANT")
	plantedReached sync.Map
)

func planted(number string) bool {
	if plantedOn == "reach" {
		if _, again := plantedReached.LoadOrStore(number, true); !again {
			f, err := os.OpenFile(os.Getenv("MUTANTS_REACHED"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				panic(err)
			}
			fmt.Fprintln(f, number)
			f.Close()
		}
	}
	return plantedOn == number
}
`

// A bench runs the test binary.
type bench struct {
	binary, dir, reached string
	flags                []string
	limit                time.Duration
}

// test runs the tests with a mutant on. What is wrong may allocate or loop for ever, so memory and time have a limit.
func (b bench) test(mutant string) (output []byte, err error) {
	args := append([]string{"-c", `ulimit -t 60; ulimit -d 8000000 2>/dev/null; exec "$0" "$@"`, b.binary, "-test.failfast", "-test.timeout", b.limit.String()}, b.flags...)
	cmd := exec.Command("sh", args...)
	cmd.Dir = b.dir
	cmd.Env = append(os.Environ(), "MUTANT="+mutant, "MUTANTS_REACHED="+b.reached)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	return out.Bytes(), err
}

var failed = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)|^(panic: .*|fatal error: .*)`)

func (b bench) verdict(mutant string) string {
	start := time.Now()
	out, err := b.test(mutant)
	took := time.Since(start).Round(100 * time.Millisecond)
	if err == nil {
		return fmt.Sprintf("survived (%v)", took)
	}
	by := err.Error()
	if m := failed.FindSubmatch(out); m != nil {
		by = string(m[1]) + string(m[2])
	}
	return fmt.Sprintf("killed by %s (%v)", oneLine(by), took)
}
