// Dmir is the language server, formatter, linter and runner of the
// data-movement dialect.
package main

import (
	"os"

	"dmir/gpu/device"
	"dmir/internal/cli"
)

func main() {
	device.Serve()
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
