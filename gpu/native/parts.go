package native

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"dmir/base/parallel"
)

// partBytes is the text that is worth a process of its own.
const partBytes = 48 << 10

// global is the name of a function or variable of IR.
var global = regexp.MustCompile(`@("[^"]*"|[-a-zA-Z$._0-9]+)`)

// function is a definition of IR.
type function struct {
	name, text string
	uses       []string
	group      int // functions of one group stay together
	part       int
}

// declaration is what another module needs to call it.
func (f *function) declaration() string {
	head, _, _ := strings.Cut(f.text, "\n")
	head = strings.TrimSuffix(strings.TrimSuffix(head, "{"), " ")
	if at := strings.LastIndex(head, " !dbg "); at >= 0 {
		head = head[:at]
	}
	return strings.Replace(strings.Replace(head, "define internal ", "define hidden ", 1), "define ", "declare ", 1) + "\n"
}

// split divides IR as package code prints it into at most n modules of about the same length, which make the
// same program: clang compiles one module on one core. What several functions call is shared between modules
// where its name, with a dot in it, is none of C's.
func split(text string, n int) []string {
	if n = min(n, len(text)/partBytes); n <= 1 {
		return []string{text}
	}
	functions, common, ok := functionsOf(text)
	if !ok {
		return []string{text}
	}
	byName := map[string]*function{}
	callers := map[string]int{}
	for _, f := range functions {
		byName[f.name] = f
		for _, name := range f.uses {
			callers[name]++
		}
	}
	for _, f := range functions { // a group is a number that its functions lead to
		for _, name := range f.uses {
			if g := byName[name]; g != nil && (callers[name] == 1 || !strings.Contains(name, ".")) {
				functions[rootOf(functions, g.group)].group = rootOf(functions, f.group)
			}
		}
	}
	distribute(functions, n)
	parts := make([]strings.Builder, n)
	for k := range parts {
		parts[k].WriteString(common)
		declared := map[string]bool{}
		for _, f := range functions {
			if f.part != k {
				continue
			}
			for _, name := range f.uses {
				if g := byName[name]; g != nil && g.part != k && !declared[name] {
					declared[name] = true
					parts[k].WriteString(g.declaration())
				}
			}
		}
	}
	outside := map[string]bool{}
	for _, f := range functions {
		for _, name := range f.uses {
			if g := byName[name]; g != nil && g.part != f.part {
				outside[name] = true
			}
		}
	}
	for _, f := range functions {
		if outside[f.name] {
			f.text = strings.Replace(f.text, "define internal ", "define hidden ", 1)
		}
		parts[f.part].WriteString(f.text)
	}
	var out []string
	for k := range parts {
		if slices.ContainsFunc(functions, func(f *function) bool { return f.part == k }) {
			out = append(out, parts[k].String())
		}
	}
	return out
}

// functionsOf are the definitions of a module, and the rest of its text; ok is false where that has data,
// which modules would not share.
func functionsOf(text string) (list []*function, common string, ok bool) {
	var rest, body strings.Builder
	for line := range strings.Lines(text) {
		switch {
		case body.Len() > 0 || strings.HasPrefix(line, "define "):
			body.WriteString(line)
			if strings.TrimRight(line, "\r\n") != "}" {
				continue
			}
			f := &function{text: body.String(), group: len(list)}
			names := global.FindAllString(f.text, -1)
			f.name = names[0]
			names = names[1:]
			slices.Sort(names)
			f.uses = slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == f.name })
			list = append(list, f)
			body.Reset()
		case strings.HasPrefix(line, "@"):
			return nil, "", false
		default:
			rest.WriteString(line)
		}
	}
	return list, rest.String(), body.Len() == 0
}

func rootOf(list []*function, group int) int {
	for list[group].group != group {
		group = list[group].group
	}
	return group
}

// distribute gives groups, the longest first, to the part of n with the shortest text.
func distribute(functions []*function, n int) {
	size := make([]int, len(functions))
	for i, f := range functions {
		size[rootOf(functions, i)] += len(f.text)
	}
	var groups []int
	for i := range functions {
		if rootOf(functions, i) == i {
			groups = append(groups, i)
		}
	}
	slices.SortStableFunc(groups, func(a, b int) int { return cmp.Compare(size[b], size[a]) })
	load := make([]int, n)
	part := make([]int, len(functions))
	for _, g := range groups {
		least := slices.Index(load, slices.Min(load))
		load[least] += size[g]
		part[g] = least
	}
	for i, f := range functions {
		f.part = part[rootOf(functions, i)]
	}
}

// compileParts makes the shared object at path as compile does, with parts of the kernels in processes of their own, as many
// at once as there are cores; more parts than these even out how long they take. The runtime comes from the cache.
func (u *unit) compileParts(ctx context.Context, dir, path string) error {
	cores := runtime.GOMAXPROCS(0)
	parts := split(string(u.files[kernelsFile]), cores*min(cores, 2))
	if err := u.write(dir); err != nil {
		return err
	}
	inputs := []string{tableFile}
	for i, text := range parts {
		name := fmt.Sprintf("kernels.%d.ll", i)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
		inputs = append(inputs, name)
	}
	objects, failed := make([]string, len(inputs)), make([]error, len(inputs)+1)
	var common *product
	parallel.Each(cores, len(failed), func(i int) {
		if i == len(inputs) {
			common, failed[i] = u.runtimeObject(ctx)
			return
		}
		objects[i] = fmt.Sprintf("part.%d.o", i)
		failed[i] = u.object(ctx, dir, inputs[i], objects[i])
	})
	if common != nil {
		defer common.remove()
	}
	if !slices.ContainsFunc(failed, func(err error) bool { return err != nil }) && u.run(ctx, dir, path, sharing(append(objects, common.path))...) == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return u.compile(ctx, dir, path, shared()...) // whose messages have the lines of the whole text
}

// object compiles one file in dir.
func (u *unit) object(ctx context.Context, dir, file, object string) error {
	_, err := command(ctx, dir, u.clang.Path, slices.Concat(u.flags, []string{"-c", file, "-o", object})...)
	return err
}

// runtimeObject is the runtime, compiled or from the cache.
func (u *unit) runtimeObject(ctx context.Context) (*product, error) {
	var files []string
	for name := range u.files {
		if name == runtimeFile || filepath.Ext(name) == ".h" {
			files = append(files, name)
		}
	}
	slices.Sort(files)
	made, _, err := produce(ctx, "runtime-"+u.hash([]string{"-c"}, files)+".o", func(dir, path string) error {
		if err := u.write(dir); err != nil {
			return err
		}
		return u.object(ctx, dir, runtimeFile, path)
	})
	return made, err
}
