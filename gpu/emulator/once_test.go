package emulator

import (
	"debug/elf"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"dmir/gpu/artifact/artifacttest"
	"dmir/gpu/prelude"
)

var (
	onceName   = regexp.MustCompile(`(?m)^.*DM_(?:COLD_)?ONCE [^(]*?(\w+)\(`)
	onceOfName = regexp.MustCompile(`DM_ONCE_OF\([^(]*?(\w+)(?:<[^(]*>)?\(`)
)

// A program that is not optimised has no code of what is compiled once for all programs, whichever compiler it is.
func TestCompiledOnce(t *testing.T) {
	needCompiler(t)
	if runtime.GOOS != "linux" {
		t.Skip("objects are ELF files only under Linux")
	}
	var once []string
	for _, f := range prelude.Files() {
		for _, form := range []*regexp.Regexp{onceName, onceOfName} {
			for _, m := range form.FindAllStringSubmatch(f.Text, -1) {
				once = append(once, m[1])
			}
		}
	}
	if len(once) < 60 {
		t.Fatalf("the prelude marks only %d functions", len(once))
	}
	for _, clang := range []bool{false, true} {
		tools, err := newToolchain(t.Context(), Options{Cache: t.TempDir()}, clang)
		if err != nil {
			t.Fatal(err)
		}
		p := artifacttest.Program()
		files := map[string]string{programName: withoutLines(p.Source) + "\n#include \"hopper.cuh\"\n", "main.cc": mainText(p)}
		object, _, err := tools.kept(t.Context(), ".o", files, "-O0", "-c", "main.cc")
		if err != nil {
			t.Fatal(err)
		}
		f, err := elf.Open(object)
		if err != nil {
			t.Fatal(err)
		}
		symbols, err := f.Symbols()
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		used := 0
		for _, s := range symbols {
			// _ZN2dm3emu4nameE…, or …4nameIL… of a template
			mangled, ours := strings.CutPrefix(s.Name, "_ZN2dm3emu")
			if !ours || elf.ST_TYPE(s.Info) == elf.STT_OBJECT {
				continue
			}
			name := strings.TrimLeft(mangled, "0123456789")
			i := slices.IndexFunc(once, func(n string) bool { return strings.HasPrefix(name, n+"E") || strings.HasPrefix(name, n+"I") })
			switch {
			case i < 0:
			case s.Section == elf.SHN_UNDEF:
				used++
			default:
				t.Errorf("%s: a program has its own %s, %s", filepath.Base(tools.compiler), once[i], s.Name)
			}
		}
		if used == 0 {
			t.Errorf("%s: a program uses nothing of what is compiled once", filepath.Base(tools.compiler))
		}
	}
}
