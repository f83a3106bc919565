package cli

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"dmir/analysis/attribution"
	"dmir/analysis/cost"
	"dmir/analysis/program"
	"dmir/internal/regular"
)

// maxTrace is the largest description of a trace that is read: it holds the text of the files that were traced.
const maxTrace = 64 << 20

// trace is the description at path, nil if path is no description of a trace.
func (a *app) trace(path string) (*attribution.Trace, error) {
	if filepath.Ext(path) != ".json" {
		return nil, nil
	}
	f, err := regular.OpenNamed(path)
	if err != nil {
		return nil, cannotRead(path, err)
	}
	defer f.Close()
	data, err := readAll(a.ctx, io.LimitReader(f, maxTrace), maxTrace)
	if err != nil {
		return nil, cannotRead(path, err)
	}
	if !strings.Contains(string(data), `"dmir_trace"`) {
		return nil, nil
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, cannotRead(path, err)
	}
	t, err := attribution.ReadTrace(absolute, data)
	if err != nil {
		return nil, &failure{"DM625", path, err.Error(), "trace the program again: python -m dmir trace MODULE:FUNCTION"}
	}
	return t, nil
}

// sources are the person's own files for the program at path: those that its trace describes, else those below the
// current folder.
func (a *app) sources(path string, unfold []string) (*attribution.Sources, error) {
	s := &attribution.Sources{Unfold: unfold}
	description := path
	if ext := filepath.Ext(path); ext != ".json" {
		description = strings.TrimSuffix(path, ext) + ".json"
	}
	t, err := a.trace(description)
	var f *failure
	switch {
	case errors.As(err, &f) && f.code == "DM601" && description != path:
		if _, err := os.Lstat(description); errors.Is(err, fs.ErrNotExist) {
			break
		}
		return nil, err
	case err != nil:
		return nil, err
	}
	if s.Trace = t; t != nil {
		s.Root = t.Root()
		return s, nil
	}
	s.Root, err = os.Getwd()
	return s, err
}

// attribute prints what functions cost by lines, functions or modules.
func (c costCmd) attribute(a *app, p *program.Program, funcs []*cost.Func) error {
	sources, err := a.sources(c.File, c.Unfold)
	if err != nil {
		return err
	}
	l := &attribution.Listing{By: attribution.By(c.By), Target: p.Target.Title, Level: "as written", Sources: sources, Top: c.Top, Color: styleOf(a.stdout).Color}
	level := "written"
	if c.Planned {
		l.Level, level = "as compiled", "planned"
	}
	_, err = await(a.ctx, func() (any, error) {
		for _, f := range funcs {
			if f.Func.Private && c.Func == "" {
				continue // part of those that call it
			}
			x, err := attribution.Of(f, p.Target, nil)
			if err != nil {
				return nil, &failure{"DM605", "--by " + c.By, "@" + f.Func.Name + ": " + err.Error(), "give sizes with --bind"}
			}
			l.Functions = append(l.Functions, x)
		}
		sources.Look(l.Functions...)
		switch c.OutputFormat {
		case "json":
			return nil, writeJSON(a.stdout, l.JSON(filepath.Base(c.File), p.Target.Name, level))
		case "html":
			return nil, l.HTML(untilDone{a.ctx, a.stdout}, filepath.Base(c.File))
		}
		return nil, l.Text(untilDone{a.ctx, a.stdout})
	})
	return err
}
