// Dmir is the language server, formatter, linter and runner of the
// data-movement dialect.
package main

import (
	"os"

	"dmir/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
