package nvrtc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"dmir/base/local"
	"dmir/gpu/artifact"
)

// ErrNoDisassembler reports that the tools that print machine code are not installed.
var ErrNoDisassembler error = noDisassembler{}

type noDisassembler struct{}

func (noDisassembler) Error() string { return "neither nvdisasm nor cuobjdump is installed" }
func (noDisassembler) Failure() artifact.Failure {
	return artifact.Failure{Reason: artifact.MissingTool, Help: DisassemblerHint}
}

// DisassemblerHint describes how to get them.
const DisassemblerHint = "dmir doctor --install-nvrtc fetches nvdisasm too; the CUDA toolkit has it as well"

// Disassembler finds the program that prints machine code: nvdisasm in the
// folder that Install fills, where it is of the compiler's version; else
// nvdisasm or cuobjdump on PATH, in the CUDA toolkit and among Python's
// packages. Without one the error is ErrNoDisassembler.
func Disassembler() (path string, err error) {
	if dir, err := InstallDir(); err == nil {
		if path, err := exec.LookPath(filepath.Join(dir, "nvidia", "cu13", "bin", "nvdisasm")); err == nil {
			return path, nil
		}
	}
	for _, name := range []string{"nvdisasm", "cuobjdump"} {
		if path, err := toolPath(name); err == nil {
			return path, nil
		}
	}
	return "", ErrNoDisassembler
}

// Disassemble is the machine code of a cubin, or of several that are joined, as text. Without a tool for that
// the error is ErrNoDisassembler.
func Disassemble(ctx context.Context, cubin []byte) (string, error) {
	tool, err := Disassembler()
	if err != nil {
		return "", err
	}
	flags := []string{"--print-code", "--no-dataflow"} // which serves branches by a stack, of GPUs before Volta; without it a third of the time goes
	if strings.HasPrefix(filepath.Base(tool), "cuobjdump") {
		flags = []string{"--dump-sass"}
	}
	work, err := local.NewWork()
	if err != nil {
		return "", err
	}
	defer work.Remove()
	file := filepath.Join(work.Dir, "kernels.cubin")
	parts, ok := artifact.Parts(cubin)
	if !ok {
		return "", errors.New("the machine code is damaged")
	}
	var out, messages bytes.Buffer
	for _, part := range parts {
		if err := os.WriteFile(file, part, 0o600); err != nil {
			return "", err
		}
		cmd := exec.CommandContext(ctx, tool, append(flags, file)...)
		cmd.Stdout, cmd.Stderr = &out, &messages
		if err := cmd.Run(); err != nil {
			if ctx.Err() != nil {
				return "", ctx.Err()
			}
			return "", fmt.Errorf("%s: %s", filepath.Base(tool), firstLine(messages.String()))
		}
	}
	return out.String(), nil
}
