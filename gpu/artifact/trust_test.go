package artifact_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dmir/base/local"
	"dmir/gpu/artifact"
	"dmir/gpu/artifact/artifacttest"
)

// resummed is a changed file with a correct checksum.
func resummed(file []byte) []byte {
	body := file[:len(file)-sha256.Size]
	sum := sha256.Sum256(body)
	return append(bytes.Clone(body), sum[:]...)
}

// signed is full with names that JSON cannot hold as they are.
func signed(key []byte) *artifact.Program {
	p := full()
	p.Key = key
	p.File = "dir\xff/\u2028f.dmir"
	return p
}

// TestSigned verifies that a file is accepted with the key that it was written with,
// and with no other.
func TestSigned(t *testing.T) {
	key, other := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	file := encoded(t, signed(key))
	for _, c := range []struct {
		name    string
		file    []byte
		key     []byte
		foreign bool
	}{
		{"the key", file, key, false},
		{"another key", file, other, true},
		{"no key", file, nil, true},
		{"not signed", encoded(t, full()), key, true},
		{"signed by no key", encoded(t, signed([]byte{})), nil, true},
	} {
		p, err := artifact.ReadSigned(bytes.NewReader(c.file), c.key)
		if err != nil {
			t.Fatal(c.name, err)
		}
		for _, q := range append([]*artifact.Program{p}, p.Variants...) {
			if q.Foreign != c.foreign {
				t.Errorf("%s: foreign %v, want %v", c.name, q.Foreign, c.foreign)
			}
		}
		if p.Trust(); p.Foreign || p.Variants[0].Foreign {
			t.Errorf("%s: foreign though it is trusted", c.name)
		}
	}
}

// TestTampered changes each part of a signed file, checksum included. A file
// that is still accepted has the same meaning.
func TestTampered(t *testing.T) {
	key := bytes.Repeat([]byte{1}, 32)
	file := encoded(t, signed(key))
	was, err := artifact.ReadSigned(bytes.NewReader(file), key)
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	taken := func(name string, changed []byte) {
		t.Helper()
		p, err := artifact.ReadSigned(bytes.NewReader(resummed(changed)), key)
		if err != nil {
			return // not JSON any more, or not a program
		}
		read++
		if !p.Foreign && !cmp.Equal(was, p) {
			t.Errorf("%s: the file is taken for one of this user's:\n%s", name, cmp.Diff(was, p))
		}
	}
	for i := 20; i < len(file)-sha256.Size; i += 13 {
		b := bytes.Clone(file)
		b[i] ^= 1
		taken(fmt.Sprintf("byte %d, %q", i, file[max(i-30, 0):i+30]), b)
	}
	if read < 200 {
		t.Errorf("only %d changed files could be read", read)
	}

	size := binary.LittleEndian.Uint64(file[12:])
	header := string(file[20 : 20+size])
	for name, change := range map[string][2]string{
		"the source":         {`"Source":"`, `"Source":"// `},
		"a second source":    {`"Source":"`, `"Source":"int evil;","source":"`},
		"a header":           {`#pragma once\n`, `#pragma once\nint evil;\n`},
		"a buffer":           {`"Workspace":`, `"Workspace":1`},
		"a variant's source": {`"Source":"#include`, `"Source":" #include`},
	} {
		at := strings.LastIndex(header, change[0])
		if at < 0 {
			t.Errorf("%s: there is no %s", name, change[0])
			continue
		}
		h := header[:at] + change[1] + header[at+len(change[0]):]
		b := append(bytes.Clone(file[:20]), h...)
		b = append(b, file[20+size:]...)
		binary.LittleEndian.PutUint64(b[12:], uint64(len(h)))
		taken(name, b)
	}
}

// TestFileOfThisUser reads files with the key of the cache.
func TestFileOfThisUser(t *testing.T) {
	t.Setenv("DMIR_CACHE", t.TempDir())
	path := filepath.Join(t.TempDir(), "a.dmx")
	p := full()
	for _, make := range []bool{false, true} {
		if make {
			var err error
			if p.Key, err = local.Key(true); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.WriteFile(path); err != nil {
			t.Fatal(err)
		}
		if got, err := artifact.ReadFile(path); err != nil || got.Foreign == make {
			t.Errorf("signed %v: foreign %v, %v", make, got.Foreign, err)
		}
	}
	t.Setenv("DMIR_CACHE", t.TempDir())
	if got, err := artifact.ReadFile(path); err != nil || !got.Foreign {
		t.Errorf("on another machine: foreign %v, %v", got.Foreign, err)
	}
}

// TestContained verifies that a file whose C++ reads other files is an error, however
// the directive is hidden, and that similar valid text is accepted.
func TestContained(t *testing.T) {
	const own = "#include \"dm.cuh\"\n"
	for _, c := range []struct{ source, header, want string }{
		{source: "#include </etc/passwd>\n"},
		{source: "#include \"/etc/passwd\"\n"},
		{source: "#include \"../secret.cuh\"\n"},
		{source: "#include \"other.cuh\"\n"},
		{source: "#include \"emu_main.cuh\"\n"},
		{source: "#include MACRO\n"},
		{source: "#include\n"},
		{source: "#include \"dm.cuh\" \"x\"\n"},
		{source: "  #\tinclude\t<stdio.h>\n"},
		{source: "/* */ # /* */ include /* */ <stdio.h>\n"},
		{source: "/*\n*/#include <stdio.h>\n"},
		{source: "#in\\\nclude <stdio.h>\n"},
		{source: "#\\\ninclude <stdio.h>\n"},
		{source: "#in\\  \ninclude <stdio.h>\n"},
		{source: "#in\\\r\nclude <stdio.h>\n"},
		{source: "// a comment \\\n#include <stdio.h>\n", want: "-"},
		{source: "// a comment \\\n\n#include <stdio.h>\n"},
		{source: "// a comment ??/\n#include <stdio.h>\n"},
		{source: "/* ?\\\n?/ */\n"},
		{source: "%:include <stdio.h>\n"},
		{source: "%\\\n:include <stdio.h>\n"},
		{source: "??=include <stdio.h>\n"},
		{source: "\r#include <stdio.h>\r"},
		{source: "\v#include <stdio.h>\n"},
		{source: "\f#include <stdio.h>\n"},
		{source: "\x00\n#include <stdio.h>\n"},
		{source: "const char* s = \"\n#include <stdio.h>\n\";\n"},
		{source: "const char* s = R\"x(\n)x\";\n"},
		{source: "const char* s = u8R\"(\" )\";\n"},
		{source: "int a = 1'0'0; #include\n", want: "-"},
		{source: "int a = 'x\n"},
		{source: "#include_next <stdio.h>\n"},
		{source: "#import <stdio.h>\n"},
		{source: "import <iostream>;\n"},
		{source: "module; \n"},
		{source: "#embed \"/etc/passwd\"\n"},
		{source: "#define X 1\n"},
		{source: "#if __has_include(</etc/passwd>)\n#endif\n"},
		{source: "#pragma GCC dependency \"/etc/passwd\"\n"},
		{source: "#pragma omp parallel\n"},
		{source: "#pragma once\n", want: "-"},
		{source: "#pragma unroll 4\n", want: "-"},
		{source: "_Pragma(\"GCC pch_preprocess \\\"x\\\"\")\n"},
		{source: "__pragma(x)\n"},
		{source: "DM_PRAGMA(GCC poison int)\n"},
		{source: "DM_PRAGMA(unroll 4)\n", want: "-"},
		{source: "asm(\".incbin \\\"/etc/passwd\\\"\");\n"},
		{source: "__asm__(\"nop\");\n"},
		{source: "void __asm (int);\n"},
		{source: "a\\\nsm(\"nop\");\n"},
		{source: "\\u0061sm(\"nop\");\n"},
		{source: "# 1 \"/etc/passwd\"\n"},
		{source: "#line 1 \"a\" 3\n"},
		{source: "#line 1 \"a\\x41\"\n"},
		{source: "#line 12 \"dir/ä 'b'\\\\?\\077.dmir\"\n", want: "-"},
		{source: "#line 12 \"dir/\\\"b\"\n"},
		{source: "#line 12 \"dir/\\042b\"\n"},
		{source: "#line 12 \"dir/\\012b\"\n"},
		{source: "#line 3\n", want: "-"},
		{source: "/* no end\n"},
		{source: "\"no end"},
		{source: "#\n", want: "-"},
		{source: "// #include <stdio.h>, asm, _Pragma\n/* #embed \"x\" */ const char* s = \"#include <x> asm\";\n", want: "-"},
		{header: "#define A _Pragma(\"GCC x\")\n"},
		{header: "#define A _Pragma(\"unroll 3\")\n#define DM_PRAGMA(x) _Pragma(#x)\n#define B(n) DM_PRAGMA(unroll n)\n", want: "-"},
		{header: "#define P DM_PRAGMA\n"},
		{header: "#define OTHER(x) _Pragma(#x)\n"},
		{header: "#if __has_include(<x>)\n#endif\n"},
		{header: "#include <cuda_fp16.h>\n"},
		{header: "#ifdef DM_HOST\n#include \"emu_mma.cuh\"\n#endif\nasm volatile(\"bar.sync 0;\");\n", want: "-"},
		{header: "#include \"../emu.cuh\"\n"},
	} {
		p := artifacttest.Program()
		p.Headers = []artifact.Header{{Name: "dm.cuh", Text: "#pragma once\n" + c.header}}
		p.Source = own + c.source
		for i := range p.Kernels {
			p.Kernels[i].First, p.Kernels[i].Last = 0, 0
		}
		_, err := artifact.Read(bytes.NewReader(encoded(t, p)))
		if c.want == "-" {
			if err != nil {
				t.Errorf("%q%q is refused: %v", c.source, c.header, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), "not self-contained") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q%q: %v", c.source, c.header, err)
		}
	}
	for source, ok := range map[string]bool{
		"define void @asm(i8* %asm) { ; asm\n\tret void, !dbg !asm\n}\nsource_filename = \"asm\"\n": true,
		"module asm \".incbin \\22/etc/passwd\\22\"\n":                                              false,
		"\tcall void asm sideeffect \"nop\", \"\"()\n":                                              false,
		"!llvm.linker.options = !{!0}\n":                                                            false,
		"!llvm.dependent-libraries = !{!0}\n":                                                       false,
	} {
		p := artifacttest.Program()
		p.Target, p.Headers, p.Source = "llvm", nil, source
		for i := range p.Kernels {
			p.Kernels[i].First, p.Kernels[i].Last = 0, 0
		}
		if _, err := artifact.Read(bytes.NewReader(encoded(t, p))); (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "not self-contained") {
			t.Errorf("%q: %v", source, err)
		}
	}
	p := artifacttest.Program()
	p.Headers = []artifact.Header{{Name: "../dm.cuh"}}
	if _, err := artifact.Read(bytes.NewReader(encoded(t, p))); err == nil {
		t.Error("a header with a path is taken")
	}
}
