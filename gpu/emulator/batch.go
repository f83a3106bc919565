package emulator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"dmir/gpu/artifact"
)

// Job is a program of a batch with the elements of its arguments.
type Job struct {
	Program *artifact.Program
	Inputs  [][]byte
}

// Outcome is the result of Run for a job.
type Outcome struct {
	Result *Result
	Err    error
}

// RunBatch runs each job as Run does, but compiles all of them in one call of
// the compiler and without optimising, in which a small program costs some
// hundredths of a second instead of one. It is for tests. An error of a job is in its outcome; err is an error that affects all.
func RunBatch(ctx context.Context, jobs []Job, opt Options) (outcomes []Outcome, err error) {
	tools, err := newToolchain(ctx, opt, true)
	if err != nil {
		return nil, err
	}
	b := batch{ctx: ctx, tools: tools, opt: opt, jobs: jobs, outcomes: make([]Outcome, len(jobs))}
	var list []int
	for i, j := range jobs {
		if b.outcomes[i].Err = checkNames(j.Program); b.outcomes[i].Err == nil {
			list = append(list, i)
		}
	}
	if err := b.run(list); err != nil {
		return nil, err
	}
	return b.outcomes, ctx.Err()
}

type batch struct {
	ctx      context.Context
	tools    *toolchain
	opt      Options
	jobs     []Job
	outcomes []Outcome
}

// run compiles and runs the jobs of the list. Those that do not compile are left
// out; if the messages do not show which, each half is compiled separately.
func (b *batch) run(list []int) error {
	var exe string
	for len(list) > 0 {
		files, err := batchFiles(b.jobs, list)
		if err == nil {
			exe, _, err = b.tools.executable(b.ctx, "-O0", files)
		}
		if err == nil {
			break
		}
		if b.ctx.Err() != nil {
			return b.ctx.Err()
		}
		var text *CompileError
		bad := map[int]error{}
		if errors.As(err, &text) {
			bad = blame(text)
		}
		switch {
		case len(bad) > 0:
			for i, e := range bad {
				b.outcomes[i].Err = e
			}
			list = slices.DeleteFunc(list, func(i int) bool { return bad[i] != nil })
		case len(list) == 1:
			b.outcomes[list[0]].Err = err
			return nil
		default:
			if err := b.run(list[:len(list)/2]); err != nil {
				return err
			}
			return b.run(list[len(list)/2:])
		}
	}
	for _, i := range list {
		r, err := run(b.ctx, b.jobs[i].Program, b.jobs[i].Inputs, b.opt, exe, strconv.Itoa(i))
		if errors.Is(err, fs.ErrNotExist) { // another process has emptied the cache meanwhile
			r, err = Run(b.ctx, b.jobs[i].Program, b.jobs[i].Inputs, b.opt)
		}
		b.outcomes[i] = Outcome{r, err}
	}
	return nil
}

// batchFiles are the texts of the jobs' programs, each in a
// namespace, and a main function that runs the one named by its first argument.
func batchFiles(jobs []Job, list []int) (map[string]string, error) {
	files := map[string]string{}
	included := map[string]bool{}
	var head, body, table strings.Builder
	for _, i := range list {
		j := jobs[i]
		own, err := headers(j.Program)
		if err != nil {
			return nil, err
		}
		for name, text := range own {
			if other, ok := files[name]; ok && other != text {
				return nil, fmt.Errorf("programs of a batch have different versions of %s", name)
			}
		}
		maps.Copy(files, own)
		source := withoutLines(j.Program.Source)
		for _, m := range includes.FindAllStringSubmatch(source, -1) {
			if !included[m[1]] {
				included[m[1]] = true
				fmt.Fprintf(&head, "#include \"%s\"\n", m[1])
			}
		}
		name := fmt.Sprintf("p%d", i) // as batchName has it
		files[name+".cu"] = includes.ReplaceAllString(source, "")
		fmt.Fprintf(&body, "namespace %[1]s {\n#include \"%[1]s.cu\"\nstatic const dm::emu::Kernel kernels[] = {\n%[2]s  {}};\n}\n", name, kernelTable(j.Program))
		fmt.Fprintf(&table, "    case %d: return dm::emu::run(n - 1, a + 1, %s::kernels, %d);\n", i, name, len(j.Program.Kernels))
	}
	files["main.cc"] = fmt.Sprintf("#include \""+kernelHeader+"\"\n%s"+noAssembly+"%sint main(int n, char** a) {\n  switch (n > 1 ? atoi(a[1]) : -1) {\n%s  }\n  return 2;\n}\n", head.String(), body.String(), table.String())
	return files, nil
}

// batchName is the file name of a program's text in a batch.
var (
	batchName = regexp.MustCompile(`^p(\d+)\.cu$`)
	inProgram = regexp.MustCompile(`(?m)^p(\d+)\.cu:\d+:`)
)

// blame splits the compiler's messages by program. The lines from the first line of
// an error to the first one about another program belong to that program.
func blame(e *CompileError) map[int]error {
	out := map[int]error{}
	places := inProgram.FindAllStringSubmatchIndex(e.Output, -1)
	texts := map[int]*strings.Builder{}
	for k, at := range places {
		i, _ := strconv.Atoi(e.Output[at[2]:at[3]])
		end := len(e.Output)
		if k+1 < len(places) {
			end = places[k+1][0]
		}
		if texts[i] == nil {
			texts[i] = &strings.Builder{}
		}
		texts[i].WriteString(e.Output[at[0]:end])
	}
	for i, t := range texts {
		if text := t.String(); strings.Contains(text, "error:") {
			out[i] = &CompileError{Compiler: e.Compiler, Output: strings.ReplaceAll(text, fmt.Sprintf("p%d.cu", i), programName)}
		}
	}
	return out
}
