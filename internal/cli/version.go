package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is the release that this tree becomes.
const version = "0.1.0"

type versionCmd struct{}

// Run prints the version, the commit where the build knows it, and the platform.
func (versionCmd) Run(a *app) error {
	commit := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 {
				commit = " (" + s.Value[:12] + ")"
			}
		}
	}
	fmt.Fprintf(a.stdout, "dmir %s%s %s %s/%s\n", version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}
