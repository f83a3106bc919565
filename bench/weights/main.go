// Command weights compares the time and the memory that a program with large constants
// takes: dmir cost and mlir-opt read the same text in generic form, whose weights are
// hexadecimal in the ops or in a section of resources. The third form, weights in a .npz
// file beside the text, mlir-opt does not have.
//
//	go run ./bench/weights [-mb 50,200] build/dmir
//
// Each measurement is a whole process, the smallest of three in turn.
package main

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"dmir/bench/peak"
	"dmir/compile/tensor"
	"dmir/dialect/types"
)

const (
	layers = 10
	runs   = 3
)

func main() {
	sizes := flag.String("mb", "50,200", "megabytes of weights")
	peer := flag.String("peer", "mlir-opt-22", "the peer")
	form := flag.String("write", "", "write the program in this form into the folder named by the argument (used by this program itself)")
	flag.Parse()
	var err error
	if *form != "" {
		err = write(flag.Arg(0), *form, *sizes)
	} else {
		err = measure(flag.Arg(0), *sizes, *peer)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "weights:", err)
		os.Exit(1)
	}
}

func measure(dmir, sizes, peer string) error {
	if dmir == "" {
		return errors.New("name the dmir to measure: go run ./bench/weights build/dmir")
	}
	dir, err := os.MkdirTemp("", "dmir-weights")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Println("| MB of weights | form | dmir cost | memory | mlir-opt | memory | time, ratio | memory, ratio |")
	fmt.Println("|--:|---|--:|--:|--:|--:|--:|--:|")
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for mb := range strings.SplitSeq(sizes, ",") {
		for _, form := range []string{"hexadecimal", "resource", ".npz"} {
			// A process of its own: a child's peak is at least the memory of its parent.
			if out, err := exec.Command(self, "-write", form, "-mb", mb, dir).CombinedOutput(); err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			file := path(dir, form)
			commands := [][]string{{dmir, "cost", file}}
			if form != ".npz" {
				commands = append(commands, []string{peer, "--allow-unregistered-dialect", file, "-o", os.DevNull})
			}
			var seconds, memory [2]float64
			for range runs {
				for i, c := range commands {
					cmd := exec.Command(c[0], c[1:]...)
					began := time.Now()
					if out, err := cmd.CombinedOutput(); err != nil {
						return fmt.Errorf("%s: %w: %.500s", c[0], err, out)
					}
					took := time.Since(began).Seconds()
					if seconds[i] == 0 || took < seconds[i] {
						seconds[i] = took
					}
					memory[i] = max(memory[i], float64(peak.Of(cmd))/1e6)
				}
			}
			row := fmt.Sprintf("| %s | %s | %.2f s | %.0f MB |", mb, form, seconds[0], memory[0])
			if seconds[1] > 0 {
				row += fmt.Sprintf(" %.2f s | %.0f MB | %.2f | %.2f |", seconds[1], memory[1], seconds[0]/seconds[1], memory[0]/memory[1])
			} else {
				row += " – | – | – | – |"
			}
			fmt.Println(row)
		}
	}
	return nil
}

func path(dir, form string) string {
	if form == ".npz" {
		return filepath.Join(dir, "program.dmir")
	}
	return filepath.Join(dir, "program.mlir")
}

// write makes a program of layers whose weights take size megabytes.
func write(dir, form, size string) error {
	mb, err := strconv.Atoi(size)
	if err != nil {
		return err
	}
	rows := mb * 1_000_000 / layers / 1024 / 4
	weights := fmt.Sprintf("tensor<%dx1024xf32>", rows)
	var b, blobs strings.Builder
	dialect, archive := "stablehlo", (*tensor.Writer)(nil)
	if form == ".npz" {
		dialect = "dm"
		f, err := os.Create(filepath.Join(dir, "program.weights.npz"))
		if err != nil {
			return err
		}
		defer f.Close()
		archive = tensor.NewWriter(f)
	}
	fmt.Fprintf(&b, "func.func @main(%%x: %s) -> %[1]s {\n", weights)
	last := "%x"
	for i := range layers {
		name, value := fmt.Sprintf("w%d", i), ""
		x := tensor.Random(types.F32, []int{rows, 1024}, rand.Uint64(), 0)
		switch form {
		case "hexadecimal":
			value = fmt.Sprintf(`dense<"0x%X"> : %s`, tensor.Pack(x), weights)
		case "resource":
			value = fmt.Sprintf("dense_resource<%s> : %s", name, weights)
			fmt.Fprintf(&blobs, ",\n      %s: \"0x04000000%X\"", name, tensor.Pack(x))
		default:
			value = fmt.Sprintf(`#dm.file<"program.weights.npz", %q>`, name)
			if err := archive.Array(name, x); err != nil {
				return err
			}
		}
		fmt.Fprintf(&b, "  %%%s = \"%s.constant\"() {value = %s} : () -> %s\n", name, dialect, value, weights)
		fmt.Fprintf(&b, "  %%y%d = \"%s.add\"(%s, %%%s) : (%s, %[5]s) -> %[5]s\n", i, dialect, last, name, weights)
		last = fmt.Sprintf("%%y%d", i)
	}
	fmt.Fprintf(&b, "  return %s : %s\n}\n", last, weights)
	if blobs.Len() > 0 {
		fmt.Fprintf(&b, "\n{-#\n  dialect_resources: {\n    builtin: {%s\n    }\n  }\n#-}\n", blobs.String()[1:])
	}
	if archive != nil {
		if err := archive.Close(); err != nil {
			return err
		}
	}
	return os.WriteFile(path(dir, form), []byte(b.String()), 0o644)
}
