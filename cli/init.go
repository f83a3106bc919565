package cli

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"dmir/analysis/config"
	"dmir/analysis/machine"
	"dmir/base/escape"
	"dmir/syntax/diag"
)

//go:embed init
var initFiles embed.FS

type initCmd struct {
	Folder string   `arg:"" optional:"" default:"." complete:"dir" help:"The folder, the root of a repository (default: the current one); it is made where there is none."`
	Target string   `complete:"machine" help:"Machine to predict for, in dmir.toml (default: this one's GPU, else h200)." placeholder:"NAME"`
	Python string   `complete:"file:py" help:"Trace a model of JAX or PyTorch instead of writing a program: the file, and behind a colon the function or class where several have @dmir.trace_with or none." placeholder:"FILE.py[:NAME]"`
	Shapes []string `help:"Arguments to trace with, where the model states none." placeholder:"f32[8,64]" sep:"none"`
}

// Help is what --help adds.
func (initCmd) Help() string {
	return "Writes dmir.toml, the hooks in .pre-commit-config.yaml, a GitHub workflow, and first.dmir, a program to begin with, unless the\n" +
		"folder has one. A file that exists is left as it is; an existing .pre-commit-config.yaml gets the hooks added. Hooks and\n" +
		"workflow are for the root of a repository: below it they are left out. --python runs python3 -m dmir trace, and so the model's file.\n" +
		"Exit status: 0 all that was missing is written, 2 something could not be."
}

// setup is what init does to one folder.
type setup struct {
	*app
	folder string
	lines  []string // what was written, with what it is for
	kept   []string // paths of files that exist and are others
	same   []string // paths of files that exist as they would be written
}

// Run writes what is missing, and reports once what was there.
func (c initCmd) Run(a *app) error {
	if c.Target == "" {
		c.Target = localCard()
	}
	if _, known := machine.Lookup(c.Target); !known {
		return unknownTarget(c.Target, &config.Config{})
	}
	if len(c.Shapes) > 0 && c.Python == "" {
		return &failure{"DM612", "--shapes", "is for a model that is traced", "name it with --python FILE.py:NAME"}
	}
	target := ""
	if c.Python != "" {
		var err error
		if target, err = c.traced(); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(c.Folder, 0o777); err != nil {
		return cannotWrite(c.Folder, err)
	}
	s := &setup{app: a, folder: c.Folder}
	steps := []func() error{
		func() error {
			return s.file("dmir.toml", strings.Replace(initFile("dmir.toml"), "TARGET", c.Target, 1), "the machine that times are for")
		},
		func() error { return s.trace(target, c.Shapes) },
	}
	if root := repository(c.Folder); root == "" || sameFile(root, c.Folder) {
		steps = append(steps, s.hooks, func() error {
			return s.file(filepath.Join(".github", "workflows", "dmir.yml"), workflow(), "annotates pull requests")
		})
	} else {
		escape.Fprintf(a.stderr, "dmir: the hooks and the workflow belong to the root of the repository: dmir init %s\n", root)
	}
	steps = append(steps, func() error { return s.program(target) })
	var err error
	for _, step := range steps {
		if err = step(); err != nil {
			break
		}
	}
	for _, line := range s.lines {
		escape.Fprintf(a.stdout, "%s\n", line)
	}
	if err != nil {
		return err
	}
	if len(s.same) > 0 {
		escape.Fprintf(a.stdout, "%s: there already\n", strings.Join(s.same, ", "))
	}
	if target == "" {
		s.models()
	}
	if len(s.kept) > 0 {
		kept := &failure{"DM626", strings.Join(s.kept, ", "), "there already, not changed", diag.Find("DM626").Help}
		kept.printAs(diag.Warning, a.stderr, styleOf(a.stderr))
	}
	return nil
}

// localCard is the machine that this one's GPU is, else the machine that dmir predicts for unasked.
func localCard() string {
	if d, _, err := find("cuda"); err == nil && d != nil {
		if m := machine.OfCard(d.Title()); m != nil {
			return m.Name
		}
	}
	return machine.Default
}

// initFile is the text of a file that is written.
func initFile(name string) string {
	text, err := initFiles.ReadFile("init/" + name)
	if err != nil {
		panic(err) // it is embedded
	}
	return string(text)
}

// file writes a file that does not exist.
func (s *setup) file(name, text, about string) error {
	path := filepath.Join(s.folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return cannotWrite(filepath.Dir(path), err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		if is, err := os.ReadFile(path); err == nil && string(is) == text {
			s.same = append(s.same, path)
		} else {
			s.kept = append(s.kept, path)
		}
		return nil
	}
	if err != nil {
		return cannotWrite(path, err)
	}
	_, err = io.WriteString(f, text)
	if err := errors.Join(err, f.Close()); err != nil {
		return cannotWrite(path, err)
	}
	s.wrote(path, about)
	return nil
}

func (s *setup) wrote(path, about string) { s.lines = append(s.lines, path+": "+about) }

// program writes the first program, unless there is one or a model is traced.
func (s *setup) program(target string) error {
	if target != "" {
		return nil
	}
	if found, err := expand([]string{s.folder}); err == nil && !slices.Equal(found, []string{filepath.Join(s.folder, "first.dmir")}) {
		return nil
	}
	return s.file("first.dmir", initFile("first.dmir"), "a program to begin with: dmir cost "+filepath.Join(s.folder, "first.dmir"))
}

// traced is what --python names, FILE.py:NAME with an absolute path. Without a name it
// is the only definition of the file that states the arguments to trace it with.
func (c initCmd) traced() (string, error) {
	file, name := c.Python, ""
	if i := strings.LastIndexByte(file, ':'); i > 1 { // no drive of Windows
		file, name = file[:i], file[i+1:]
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", cannotRead(file, err)
	}
	if name == "" {
		var names []string
		for _, m := range decorated.FindAllSubmatch(text, -1) {
			names = append(names, string(m[1]))
		}
		if len(names) != 1 {
			why := fmt.Sprintf("has %s with the decorator @dmir.trace_with", diag.Count(len(names), "function"))
			return "", &failure{"DM627", file, why, fmt.Sprintf("name what to trace: --python %s:NAME", file)}
		}
		name = names[0]
	}
	if own := strings.TrimSuffix(name, "()"); len(c.Shapes) == 0 && !bytes.Contains(text, []byte("trace_with")) {
		return "", &failure{
			"DM627", file, own + " states no arguments to trace it with",
			fmt.Sprintf("add their shapes: --python %s:%s --shapes f32[8,64], with --shapes once for each argument", file, name),
		}
	}
	file, err = filepath.Abs(file)
	return file + ":" + name, err
}

// module matches a class of PyTorch's modules.
var module = regexp.MustCompile(`(?m)^class (\w+)\((?:[\w.]*\.)?(?:Module|LightningModule|PreTrainedModel)\):`)

// models says how the models in the folder's own files are traced.
func (s *setup) models() {
	files, err := filepath.Glob(filepath.Join(s.folder, "*.py"))
	if err != nil {
		return
	}
	for _, file := range files[:min(len(files), mostModels)] {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		shapes := " --shapes f32[8,64]"
		if bytes.Contains(text, []byte("trace_with")) {
			shapes = ""
		}
		if all := module.FindAllSubmatch(text, -1); len(all) > 0 { // the last is made of those before it
			escape.Fprintf(s.stdout, "%s: has a model; to trace it: dmir init --python %s:%s%s\n", file, file, all[len(all)-1][1], shapes)
		}
	}
}

// mostModels bounds the files that init looks into.
const mostModels = 20

// decorated matches a definition that states the arguments to trace it with.
var decorated = regexp.MustCompile(`(?m)^@dmir\.trace_with\b(?:.*\n)+?(?:async )?(?:def|class) (\w+)`)

// trace has Python trace target into the folder's .dmir/traces. Where that fails nothing of this setup stays.
func (s *setup) trace(target string, shapes []string) (err error) {
	if target == "" {
		return nil
	}
	defer func() {
		if err == nil || len(s.lines) == 0 {
			return
		}
		s.lines = nil // dmir.toml, which makes the folder that of the trace
		if e := os.Remove(filepath.Join(s.folder, "dmir.toml")); e != nil {
			err = errors.Join(err, e)
		}
	}()
	const missing, help = "pip install dmir where the model's framework is", "python3 -m dmir trace --help tells what can be traced"
	python, err := exec.LookPath("python3")
	if err != nil {
		if python, err = exec.LookPath("python"); err != nil {
			return &failure{"DM627", "--python", "there is no python3 on PATH", missing}
		}
	}
	args := []string{"-m", "dmir", "trace", target}
	if len(shapes) > 0 {
		args = append(append(args, "--shapes"), shapes...)
	}
	c := exec.CommandContext(s.ctx, python, args...)
	c.Dir = s.folder
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		if s.ctx.Err() != nil {
			return s.ctx.Err()
		}
		said := strings.TrimSpace(errs.String())
		last := said[strings.LastIndexByte(said, '\n')+1:]
		if before := strings.TrimSpace(said[:len(said)-len(last)]); before != "" { // the traceback of the model's code
			fmt.Fprintln(s.stderr, escape.Lines(before))
		}
		f := &failure{"DM627", target, strings.TrimPrefix(last, "dmir: error: "), help}
		switch why, _, states := strings.Cut(f.msg, " to trace it with; "); {
		case strings.HasSuffix(f.msg, "No module named dmir"):
			f.help = missing
		case states:
			f.msg, f.help = why+" to trace it with", "add their shapes: --shapes f32[8,64], once for each argument"
		}
		return f
	}
	path := filepath.Join(s.folder, strings.TrimSpace(out.String()))
	s.wrote(path, "what the lines of the model cost: dmir cost --by line "+path)
	return nil
}

// workflow is the text of the GitHub workflow. It pins the release that has written it.
func workflow() string {
	text := initFile("dmir.yml")
	if released() {
		text = strings.Replace(text, "pip install dmir\n", "pip install dmir=="+version+"\n", 1)
	}
	return text
}

// released reports whether this is a release, whose wheel has the same version.
func released() bool {
	return regexp.MustCompile(`^\d+\.\d+\.\d+$`).MatchString(version)
}

// repository is the root of the git repository that a folder is in, or "".
func repository(folder string) string {
	at, err := filepath.Abs(folder)
	for err == nil {
		if _, err := os.Stat(filepath.Join(at, ".git")); err == nil {
			return at
		}
		parent := filepath.Dir(at)
		if parent == at {
			break
		}
		at = parent
	}
	return ""
}
