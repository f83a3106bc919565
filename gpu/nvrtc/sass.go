package nvrtc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// ErrNoDisassembler says that the tools that print machine code are not here.
var ErrNoDisassembler = errors.New("neither nvdisasm nor cuobjdump is installed here")

// DisassemblerHint says how to get them.
const DisassemblerHint = "install the CUDA toolkit, or its package cuda-nvdisasm or cuda-cuobjdump, and put its bin folder on PATH"

// disassembler finds a program that prints the machine code of a cubin, and the
// flags that it takes before the file.
func disassembler() (path string, flags []string, err error) {
	for _, tool := range []struct {
		name  string
		flags []string
	}{{"nvdisasm", []string{"--print-code"}}, {"cuobjdump", []string{"--dump-sass"}}} {
		if path, err := exec.LookPath(tool.name); err == nil {
			return path, tool.flags, nil
		}
		for _, root := range []string{os.Getenv("CUDA_HOME"), os.Getenv("CUDA_PATH"), "/usr/local/cuda"} {
			if root == "" {
				continue
			}
			if path, err := exec.LookPath(filepath.Join(root, "bin", tool.name)); err == nil {
				return path, tool.flags, nil
			}
		}
	}
	return "", nil, ErrNoDisassembler
}

// Disassemble is the machine code of a cubin as text. Without a tool for that
// the error is ErrNoDisassembler.
func Disassemble(ctx context.Context, cubin []byte) (string, error) {
	tool, flags, err := disassembler()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "dmir-sass-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "kernels.cubin")
	if err := os.WriteFile(file, cubin, 0o600); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, tool, append(flags, file)...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", fmt.Errorf("%s: %s", filepath.Base(tool), firstLine(said.String()))
	}
	return out.String(), nil
}
