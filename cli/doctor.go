package cli

import (
	"context"
	"errors"
	"io"
	"runtime"
	"text/tabwriter"
	"time"

	"dmir/base/escape"
	"dmir/base/sandbox"
	"dmir/compile/target"
	"dmir/gpu/device"
	"dmir/gpu/highs"
)

type doctorCmd struct {
	InstallNvrtc bool `help:"Fetch NVRTC, NVIDIA's run-time compiler, and nvdisasm with pip into dmir's folder in the user's cache."`
	InstallHighs bool `help:"Fetch HiGHS, a solver of integer programs, with pip into dmir's folder in the user's cache."`
}

// tools are those of the targets and those of other parts.
func tools() []device.Tool {
	var all []device.Tool
	for _, t := range target.All() {
		all = append(all, t.Tools()...)
	}
	return append(all,
		device.Tool{Name: "HiGHS", Adds: "bounds of plans whose search takes long", Get: highs.Hint, Probe: probeHighs},
		device.Tool{Name: "mlir-opt", Adds: "the interoperability tests with MLIR", Get: "apt-get install mlir-22-tools", Probe: device.OnPath("--version", "mlir-opt-22", "mlir-opt")})
}

func probeHighs(context.Context) (string, error) {
	lib, err := highs.Find()
	if none := (*highs.NotFound)(nil); errors.As(err, &none) && len(none.Tried) == 0 {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return lib.Version + ", " + lib.Path, nil
}

// Run lists the tools. None is needed, so the status is 0 whatever is missing.
func (c doctorCmd) Run(a *app) error {
	if c.InstallNvrtc {
		installed, err := target.For("").Install(a.ctx)
		if err != nil {
			return notInstalled(err, "DM614", "--install-nvrtc", "pip install nvidia-cuda-nvrtc into any Python environment, or name a library in DMIR_NVRTC")
		}
		a.installed(installed...)
	}
	if c.InstallHighs {
		lib, err := highs.Install(a.ctx)
		if err != nil {
			return notInstalled(err, "DM623", "--install-highs", "pip install highsbox into any Python environment, or name a library in DMIR_HIGHS")
		}
		a.installed(device.Installed{Version: lib.Version, Path: lib.Path})
	}
	if c.InstallNvrtc || c.InstallHighs {
		return nil
	}
	escape.Fprintf(a.stdout, "dmir %s on %s/%s, %d cores\n\n", version, runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	escape.Fprintf(w, "reference executor\tready\tbuilt in: runs every op, accumulates in f32 or wider\n")
	for _, t := range tools() {
		probe(a.ctx, t, w)
	}
	switch how := sandbox.Kernel(); {
	case how != "" && !sandbox.Active():
		escape.Fprintf(w, "sandbox\toff\t%s, but %s=off\n", how, sandbox.Variable)
	case how != "":
		escape.Fprintf(w, "sandbox\tready\t%s: the emulator, the editors' runs and trusted files reach nothing else\n", how)
	default:
		escape.Fprintf(w, "sandbox\tnot found\twould confine the emulator, the editors' runs and trusted files: Linux 5.13 or newer with Landlock\n")
	}
	return w.Flush()
}

func notInstalled(err error, code, flag, help string) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return &failure{code, flag, err.Error(), help}
}

// installed prints what was installed.
func (a *app) installed(tools ...device.Installed) {
	for _, t := range tools {
		if t.Version != "" {
			escape.Fprintf(a.stdout, "installed %s\n", t.Version)
		}
		escape.Fprintf(a.stdout, "  → %s\n", t.Path)
	}
}

// probe writes a line about a tool. One that does not answer within ten seconds, such as
// a driver with a hanging GPU, is reported as such.
func probe(ctx context.Context, t device.Tool, w io.Writer) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	type answer struct {
		found string
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		found, err := t.Probe(ctx)
		answers <- answer{found, err}
	}()
	select {
	case got := <-answers:
		switch {
		case got.err != nil:
			escape.Fprintf(w, "%s	unusable	%s\n", t.Name, firstLineOf(got.err.Error()))
		case got.found != "":
			escape.Fprintf(w, "%s	found	%s\n", t.Name, got.found)
		default:
			escape.Fprintf(w, "%s	not found	would add %s: %s\n", t.Name, t.Adds, t.Get)
		}
	case <-ctx.Done():
		escape.Fprintf(w, "%s	no answer	it did not respond within ten seconds\n", t.Name)
	}
}
