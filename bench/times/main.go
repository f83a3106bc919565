// Command times compares predicted times with published ones: of kernels, collectives and layers. The figures, with
// their sources, are the files of a folder. Constants of machine files come from one half of the rows, which a hash of
// the name chooses; errors are stated for the other half.
//
//	go run ./bench/times [-fit] [-kind REGEXP] [-machine REGEXP] [-update docs/TIMES.md] [FOLDER]
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// predictable are the kinds of rows that are predicted; the others are where constants come from.
var predictable = regexp.MustCompile("^(gemm|attention|layer_norm|rms_norm|softmax|cross_entropy|gelu|relu|silu|exp|scale|triad|fill|read|dot|add_rms_norm|relu_squared|swiglu|geglu|add|copy|transpose|reduce|all_reduce|all_gather|reduce_scatter|all_to_all|send_recv)$")

func main() {
	fit := flag.Bool("fit", false, "only the half of the rows that constants are fitted to, each with its error")
	kind := flag.String("kind", "", "the rows whose kind this regular expression matches")
	on := flag.String("machine", "", "the rows whose machine this regular expression matches")
	page := flag.String("update", "", "the page in which to replace the tables")
	flag.Parse()
	folder := "bench/times/published"
	if flag.NArg() > 0 {
		folder = flag.Arg(0)
	}
	if err := run(folder, *kind, *on, *page, *fit); err != nil {
		fmt.Fprintln(os.Stderr, "times:", err)
		os.Exit(1)
	}
}

func run(folder, kind, on, page string, fit bool) error {
	kinds, err := regexp.Compile(kind)
	if err != nil {
		return err
	}
	machines, err := regexp.Compile(on)
	if err != nil {
		return err
	}
	f, all, left, err := predictAll(folder)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(p prediction) bool {
		return !kinds.MatchString(p.row.Kind) || !machines.MatchString(p.row.Machine) || fit && p.row.held()
	})
	if fit {
		printFit(all)
		return nil
	}
	return report(f, all, left, page)
}

// predictAll predicts the rows of a folder: of several implementations of the same work the fastest. left counts why the others
// are left out.
func predictAll(folder string) (f *file, all []prediction, left map[string]int, err error) {
	if f, err = load(folder); err != nil {
		return nil, nil, nil, err
	}
	left = map[string]int{}
	best := map[string]prediction{}
	for _, r := range f.Rows {
		if !predictable.MatchString(r.Kind) {
			continue
		}
		if r.Out != "" {
			left[r.Out]++
			continue
		}
		p, err := predict(r)
		if errors.Is(err, errKind) {
			left[err.Error()]++
			continue
		} else if err != nil {
			return nil, nil, nil, err
		}
		if b, ok := best[r.same()]; ok {
			left["another implementation of the same work is faster"]++
			if b.published <= p.published {
				continue
			}
		}
		best[r.same()] = p
	}
	for _, r := range f.Rows {
		if p, ok := best[r.same()]; ok && p.row == r {
			all = append(all, p)
		}
	}
	return f, all, left, nil
}

func printFit(all []prediction) {
	slices.SortStableFunc(all, func(a, b prediction) int {
		return cmp.Or(strings.Compare(a.row.Kind, b.row.Kind), strings.Compare(a.row.Machine, b.row.Machine))
	})
	var group []prediction
	for i, p := range all {
		fmt.Printf("%+5.0f %%  %9.2f %9.2f µs  %-8s %s\n", 100*p.error(), 1e6*p.predicted, 1e6*p.published, p.bound, p.row.name())
		group = append(group, p)
		if i+1 == len(all) || all[i+1].row.Kind != p.row.Kind || all[i+1].row.Machine != p.row.Machine {
			fmt.Printf("== %s on %s: %s\n\n", p.row.Kind, p.row.Machine, summary(group))
			group = nil
		}
	}
	fmt.Println("== all:", summary(all))
}
