package nvrtc

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"dmir/base/local"
)

// nvccRelease is in what nvcc --version prints: "release 12.8, V12.8.93".
var nvccRelease = regexp.MustCompile(`release (\d+\.\d+)`)

// FindNvcc finds the toolkit's compiler on PATH, in the toolkit's folder or
// among packages of it.
func FindNvcc() (*Compiler, error) {
	path, err := toolPath("nvcc")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("%s --version: %w", path, err)
	}
	version := "nvcc"
	if m := nvccRelease.FindSubmatch(out); m != nil {
		version += " " + string(m[1])
	}
	return &Compiler{Path: path, Version: version, Where: "CUDA toolkit"}, nil
}

// nvcc compiles with the toolkit's compiler, in a folder that is deleted after.
func (c *Compiler) nvcc(ctx context.Context, source string, headers []Header, arch string, opts Options) (*Result, error) {
	work, err := local.NewWork()
	if err != nil {
		return nil, err
	}
	defer work.Remove()
	dir := work.Dir
	name := filepath.Base(opts.Name)
	for _, f := range append([]Header{{Name: name, Text: source}}, headers...) {
		path, err := within(dir, f.Name)
		if err != nil {
			return nil, err
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, []byte(f.Text), 0o644); err != nil {
			return nil, err
		}
	}
	r := &Result{Arch: arch, Compiler: c.Version}
	for _, part := range []struct{ code, flag, file string }{{arch, "--cubin", "out.cubin"}, {virtual(arch), "--ptx", "out.ptx"}} {
		if part.flag == "--cubin" && opts.PTX {
			continue
		}
		log, err := c.call(ctx, dir, append(nvccFlags(virtual(arch), part.code, opts), "-I.", part.flag, "--output-file", part.file, name))
		if err != nil {
			messages := parseMessages(log)
			if len(messages) == 0 {
				return nil, &ArchError{arch, c.Version, firstLine(log)}
			}
			return nil, &CompileError{Arch: arch, Compiler: c.Version, Log: log, Messages: messages}
		}
		made, err := os.ReadFile(filepath.Join(dir, part.file))
		switch {
		case err != nil:
			return nil, err
		case part.flag == "--ptx":
			r.PTX = string(made)
			continue
		}
		r.Cubin, r.Log = made, log
		if r.Kernels, err = usage(made, log); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// nvccFlags name the architecture in two parts: by the short name alone nvcc
// also compiles for the architecture without its own features.
func nvccFlags(virtual, code string, opts Options) []string {
	return append([]string{"--gpu-architecture=" + virtual, "--gpu-code=" + code}, flags(code, opts)[1:]...)
}

func (c *Compiler) call(ctx context.Context, dir string, args []string) (log string, err error) {
	cmd := exec.CommandContext(ctx, c.Path, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TMPDIR="+dir) // temporary files of a killed nvcc are deleted with the folder
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	return out.String(), err
}

// within is the path of a header below dir. A name that leads out of it is
// an error.
func within(dir, name string) (string, error) {
	local := filepath.FromSlash(name)
	if !filepath.IsLocal(local) || strings.TrimSpace(name) == "" {
		return "", fmt.Errorf("%q is not a valid name for a header", name)
	}
	return filepath.Join(dir, local), nil
}
