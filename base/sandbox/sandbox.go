// Package sandbox starts processes that can reach only what they need: named files and folders,
// and no network. On Linux the kernel's Landlock and seccomp enforce it, where it has them; elsewhere
// processes start as usual. The environment variable DMIR_SANDBOX says "off" for none, and "require"
// for an error where the kernel lacks it.
package sandbox

import (
	"fmt"
	"os"
	"os/exec"
)

// Variable is the environment variable that chooses.
const Variable = "DMIR_SANDBOX"

// Active reports whether Start restricts processes.
func Active() bool { return Kernel() != "" && os.Getenv(Variable) != "off" }

// Policy is what a process may reach. Paths that do not exist are passed over.
type Policy struct {
	Read    []string // files and folders that it may read and execute
	Write   []string // files and folders that it may also change
	Network bool     // whether it may open connections, and reach other processes
}

// Start is cmd.Start in a sandbox.
func Start(cmd *exec.Cmd, p Policy) error {
	switch choice := os.Getenv(Variable); {
	case choice == "off":
		return cmd.Start()
	case choice != "" && choice != "require":
		return fmt.Errorf("%s is %q, which is neither \"off\" nor \"require\"", Variable, choice)
	default:
		how := Kernel()
		if how == "" && choice == "require" {
			return fmt.Errorf("%s is \"require\", and this system has no Landlock", Variable)
		}
		if how == "" {
			return cmd.Start()
		}
		return start(cmd, p)
	}
}
