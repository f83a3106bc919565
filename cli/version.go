package cli

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"dmir/cli/notices"
)

// version is set by the linker in a release's binary, from the tag.
var version = "0.0.0-dev"

type versionCmd struct {
	Notices bool `help:"Print the licences of third-party software in the binary."`
}

// Run prints the version.
func (c versionCmd) Run(a *app) error {
	if c.Notices {
		_, err := io.WriteString(a.stdout, notices.Text)
		return err
	}
	_, err := fmt.Fprintln(a.stdout, versionText())
	return err
}

// versionText is the version, the commit where the build knows it, Go's version and
// the platform.
func versionText() string {
	commit := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 {
				commit = " (" + s.Value[:12] + ")"
			}
		}
	}
	return fmt.Sprintf("dmir %s%s %s %s/%s", version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
