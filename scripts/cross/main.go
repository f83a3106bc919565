// Cross checks that all packages compile for other systems and architectures, by their
// types alone: machine code is made of the same text by scripts/release.sh, and takes
// twenty times as long.
// usage: cross GOOS/GOARCH...
package main

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	failed := false
	for _, platform := range os.Args[1:] {
		fmt.Println("check", platform)
		system, arch, _ := strings.Cut(platform, "/")
		pkgs, err := packages.Load(&packages.Config{
			// The types of everything that the module imports, from its text; of functions only the module's have bodies.
			Mode: packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedDeps | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedTypesSizes,
			Env:  append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0"),
		}, "./...")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		failed = packages.PrintErrors(pkgs) > 0 || len(pkgs) == 0 || failed
	}
	if failed {
		os.Exit(1)
	}
}
