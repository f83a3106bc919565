// Dmir is the language server, formatter, linter and runner of the
// data-movement dialect.
package main

import (
	"os"

	"dmir/cli"
	_ "dmir/compile/target/all"
	"dmir/gpu/device/nvidia"
)

func main() {
	nvidia.Serve()
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
