package emulator

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"dmir/base/escape"
	"dmir/base/local"
	"dmir/base/tally"
	"dmir/gpu/artifact"
	"dmir/gpu/prelude"
)

// flags of the compiler. Kernels do not fuse multiplications and additions on a
// host, so that they compute the same everywhere. What serves exceptions, of which there are none, is an eighth of the
// work of compiling without optimising.
var flags = []string{"-std=c++20", "-w", "-ffp-contract=off", "-fno-strict-aliasing", "-fno-exceptions", "-fno-rtti", "-fno-asynchronous-unwind-tables", "-DDM_HOST"}

// smallWork is the FLOP and bytes of a kernel, as predicted, below which it runs faster than a compiler optimises it: products and
// attention up to 40 million, what is element by element up to 20. What checks accesses is optimised in any case: runtimeObject has it.
const smallWork = 30_000_000

// ofKernel is the predicted FLOP and bytes of a program, by kernel; 0: unknown.
func ofKernel(p *artifact.Program) int64 {
	var work int64
	for _, s := range p.Steps {
		work += s.FLOP + s.ReadBytes + s.WrittenBytes
	}
	return work / int64(max(1, len(p.Kernels)))
}

// level is how much the compiler optimises a program.
func level(p *artifact.Program) string {
	if work := ofKernel(p); work > 0 && work < smallWork {
		return "-O0"
	}
	return "-O1"
}

// ErrNoCompiler is in the chain of errors where no C++ compiler was found.
var ErrNoCompiler = errors.New("no C++20 compiler found")

// CompileError holds a compiler's messages about a program's text.
type CompileError struct {
	Compiler string
	Output   string // its lines in program.cu are those of the artifact's source
}

func (e *CompileError) Error() string {
	return fmt.Sprintf("%s does not compile the program for the emulator:\n%s", e.Compiler, e.Output)
}

// Failure reports that the compiler rejects the text.
func (e *CompileError) Failure() artifact.Failure {
	return artifact.Failure{Reason: artifact.Rejected, Compiler: "the C++ compiler"}
}

// Check returns nil if programs can be emulated here, else an error that states
// what to install. The compiler named in $CXX comes first.
func Check() error {
	_, err := compiler("", false)
	return err
}

// compiler is the path of the compiler to use; clang, if it may choose and is asked to.
func compiler(want string, clang bool) (string, error) {
	if runtime.GOOS == "windows" {
		return "", fmt.Errorf("%w: the emulator needs Linux or macOS; under Windows use WSL", ErrNoCompiler)
	}
	names := []string{want}
	if want == "" {
		names = []string{os.Getenv("CXX"), "c++", "clang++", "g++"}
		if clang {
			names[1], names[2] = names[2], names[1]
		}
	}
	for _, name := range names {
		if name == "" {
			continue
		}
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	hint := "install g++ 11 or clang++ 14, or newer (Debian and Ubuntu: apt install g++; Fedora: dnf install gcc-c++; macOS: xcode-select --install), or name one in $CXX"
	if want != "" {
		return "", fmt.Errorf("%w: there is no %s; %s", ErrNoCompiler, want, hint)
	}
	return "", fmt.Errorf("%w: %s", ErrNoCompiler, hint)
}

// versions are the version texts of compilers, by path and time of change.
var versions sync.Map

func version(ctx context.Context, path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	key := fmt.Sprint(path, info.ModTime(), info.Size())
	if v, ok := versions.Load(key); ok {
		return v.(string), nil
	}
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", path, err)
	}
	versions.Store(key, string(out))
	return string(out), nil
}

// toolchain is a compiler and the folder of what it compiled.
type toolchain struct {
	compiler, version, dir string
}

func newToolchain(ctx context.Context, opt Options, clang bool) (*toolchain, error) {
	cxx, err := compiler(opt.Compiler, clang)
	if err != nil {
		return nil, err
	}
	ver, err := version(ctx, cxx)
	if err != nil {
		return nil, err
	}
	dir := opt.Cache
	if dir == "" {
		if dir, err = usableCache(); err != nil {
			return nil, err
		}
	}
	if dir, err = filepath.Abs(dir); err != nil { // the compiler runs elsewhere
		return nil, err
	}
	return &toolchain{cxx, ver, dir}, nil
}

// build returns the program as an executable, compiled or from the cache, and the
// time of compiling.
func build(ctx context.Context, p *artifact.Program, opt Options) (exe string, took time.Duration, err error) {
	level := level(p)
	tools, err := newToolchain(ctx, opt, level == "-O0") // without optimising clang takes half of GCC's time
	if err != nil {
		return "", 0, err
	}
	files, err := headers(p)
	if err != nil {
		return "", 0, err
	}
	files[programName], files["main.cc"] = withoutLines(p.Source), mainText(p)
	return tools.executable(ctx, level, files)
}

// executable returns main.cc, which includes the other files, as an executable,
// compiled or from the cache, and the time of compiling.
func (c *toolchain) executable(ctx context.Context, level string, files map[string]string) (exe string, took time.Duration, err error) {
	exe = c.path(append([]string{level}, list(files)...)...)
	defer local.LockFor(exe)()
	if local.Kept(exe) {
		tally.Kept(tally.Emulator)
		return exe, 0, nil
	}
	if err := local.MakeDir(c.dir); err != nil {
		return "", 0, err
	}
	start := time.Now()
	local.Trim(c.dir, "", cacheLimit) // before compiling, so that this program's files stay
	object, first, err := c.runtimeObject(ctx)
	if err != nil {
		return "", 0, err
	}
	var common precompiled
	if !first { // the first program is not kept waiting for what speeds up the next ones
		common = c.precompiled(ctx, level)
	}
	args := append(fastLinker(), level, "main.cc", object)
	err = compile(ctx, c.compiler, files, common, c.dir, exe, args...)
	var text *CompileError
	if common.folder != "" && errors.As(err, &text) && strings.Contains(text.Output, "precompiled header") { // of headers of the system that are others by now
		os.Remove(common.file)
		err = compile(ctx, c.compiler, files, precompiled{}, c.dir, exe, args...)
	}
	if err != nil {
		return "", 0, err
	}
	return exe, time.Since(start), nil
}

// list is the names and texts of files, by name.
func list(files map[string]string) (parts []string) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		parts = append(parts, name, files[name])
	}
	return parts
}

// path is the file of what the compiler makes of the parts.
func (c *toolchain) path(parts ...string) string {
	parts = append([]string{c.version, strings.Join(flags, " "), prelude.Hash()}, parts...)
	key := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return filepath.Join(c.dir, hex.EncodeToString(key[:16]))
}

// kept is what the compiler makes of the files with args, under a name that ends so: compiled, which made reports,
// or from the cache.
func (c *toolchain) kept(ctx context.Context, end string, files map[string]string, args ...string) (path string, made bool, err error) {
	path = c.path(slices.Concat([]string{end}, args, list(files))...) + end
	defer local.LockFor(path)()
	if local.Kept(path) {
		return path, false, nil
	}
	if err := local.MakeDir(c.dir); err != nil {
		return "", false, err
	}
	return path, true, compile(ctx, c.compiler, files, precompiled{}, c.dir, path, args...)
}

// runtimeLevel is how much the compiler optimises the part of the emulation that does not depend on the program.
var runtimeLevel = "-O1"

// runtimeObject is the part of the emulation that does not depend on the program: all that the prelude marks DM_ONCE.
func (c *toolchain) runtimeObject(ctx context.Context) (object string, made bool, err error) {
	files := map[string]string{"runtime.cc": "#define DM_EMU_MAIN\n#include \"emu_main.cuh\"\n"}
	return c.kept(ctx, ".o", files, runtimeLevel, "-c", "runtime.cc")
}

// fastLinker are the arguments by which a compiler links faster than by itself: GNU ld takes twice as long, a third of the work on
// a small program.
var fastLinker = sync.OnceValue(func() []string {
	if runtime.GOOS != "linux" {
		return nil
	}
	for _, name := range []string{"lld", "gold"} {
		if _, err := exec.LookPath("ld." + name); err == nil {
			return []string{"-fuse-ld=" + name}
		}
	}
	return nil
})

// kernelHeader is what every program includes before anything else.
const kernelHeader = "emu_kernel.cuh"

// precompiled is kernelHeader with all that it includes, precompiled for programs of a level: three quarters of the
// work on a small program.
type precompiled struct {
	file   string // "": there is none
	folder string // of the texts that it is of, by which clang knows them; "": GCC, which finds it by its name
}

// precompiled makes the header, or finds it in the cache.
func (c *toolchain) precompiled(ctx context.Context, level string) (out precompiled) {
	end, text := ".gch", kernelHeader
	var err error
	switch {
	case strings.Contains(c.version, "clang"):
		if out.folder, err = c.texts(); err != nil {
			return precompiled{}
		}
		end, text = ".pch", filepath.Join(out.folder, kernelHeader)
	case !strings.Contains(c.version, "Free Software Foundation"):
		return precompiled{}
	}
	if out.file, _, err = c.kept(ctx, end, nil, level, "-x", "c++-header", text); err != nil {
		return precompiled{} // compiling the program reports why
	}
	return out
}

// texts is a folder with the parts of the prelude that all programs share. Their times are always the same: clang checks them.
func (c *toolchain) texts() (string, error) {
	folder := filepath.Join(c.dir, "prelude-"+prelude.Hash())
	defer local.LockFor(folder)()
	if err := local.MakeDir(folder); err != nil {
		return "", err
	}
	made := time.Unix(1, 0)
	for _, f := range prelude.Files() {
		path := filepath.Join(folder, f.Name)
		if !runtimeNames()[f.Name] {
			continue
		}
		text, err := os.ReadFile(path)
		if info, wrong := os.Stat(path); err == nil && wrong == nil && string(text) == f.Text && info.ModTime().Equal(made) {
			continue
		}
		own := filepath.Join(folder, fmt.Sprintf("%s-%d", f.Name, os.Getpid()))
		if err := os.WriteFile(own, []byte(f.Text), 0o600); err != nil {
			return "", err
		}
		if err := errors.Join(os.Chtimes(own, made, made), os.Rename(own, path)); err != nil {
			return "", err
		}
	}
	return folder, nil
}

// compile runs the compiler with args in a folder with the prelude, of which a part may be precompiled, and the
// files, and moves its output to target, atomically.
func compile(ctx context.Context, cxx string, files map[string]string, common precompiled, dir, target string, args ...string) error {
	folder, err := local.NewWork()
	if err != nil {
		return err
	}
	defer folder.Remove()
	work := folder.Dir
	for _, f := range prelude.Files() {
		if common.folder != "" && runtimeNames()[f.Name] {
			continue
		}
		if err := os.WriteFile(filepath.Join(work, f.Name), []byte(f.Text), 0o600); err != nil {
			return err
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(work, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	switch {
	case common.folder != "":
		args = append([]string{"-include-pch", common.file, "-I", common.folder}, args...)
	case common.file != "":
		if err := os.Symlink(common.file, filepath.Join(work, kernelHeader+".gch")); err != nil { // one that another process trims is not there for GCC
			return err
		}
	}
	made, err := os.CreateTemp(dir, local.NewPattern)
	if err != nil {
		return err
	}
	made.Close()
	defer os.Remove(made.Name()) // still exists only after an error
	cmd := exec.CommandContext(ctx, cxx, slices.Concat(flags, []string{"-I", work, "-o", made.Name()}, args)...)
	cmd.Dir = work
	cmd.Env = append(os.Environ(), "TMPDIR="+work) // temporary files of a killed compiler are deleted with the folder
	cmd.WaitDelay = time.Second
	tally.Made(tally.Emulator)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	tally.Took(tally.Emulator, cmd.ProcessState)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if out.Len() == 0 {
			return fmt.Errorf("%s: %w", cxx, err)
		}
		return &CompileError{Compiler: filepath.Base(cxx), Output: strings.ReplaceAll(out.String(), work+string(filepath.Separator), "")}
	}
	return local.Keep(made.Name(), target)
}

// noAssembly is put before a program's text and forbids host assembly in it.
const noAssembly = "#pragma GCC poison asm __asm __asm__\n"

// mainText is the C++ that includes the program and lists its kernels.
func mainText(p *artifact.Program) string {
	return fmt.Sprintf("#include \""+kernelHeader+"\"\n"+noAssembly+"#include \"%s\"\nstatic const dm::emu::Kernel kernels[] = {\n%s  {}};\nint main(int n, char** a) { return dm::emu::run(n, a, kernels, %d); }\n",
		programName, kernelTable(p), len(p.Kernels))
}

// kernelTable lists a program's kernels in the form of emu_kernel.cuh.
func kernelTable(p *artifact.Program) string {
	var b strings.Builder
	for _, k := range p.Kernels {
		fmt.Fprintf(&b, "  dm::emu::kernel_of<&%s>(%s, %d, %d, %d, %s),\n", k.Name, escape.String(k.Name), k.Block.Threads, k.Block.Shared, k.Block.Cluster, escape.String(signature(k)))
	}
	return b.String()
}

// signature is the modes and element types of a kernel's parameters, as
// emu_kernel.cuh derives them from the text.
func signature(k artifact.Kernel) string {
	list := make([]string, len(k.Params))
	for i, p := range k.Params {
		elem := p.Elem
		switch {
		case p.Mode == artifact.Map:
			elem = ""
		case elem == "index":
			elem = "i64"
		}
		list[i] = string(p.Mode) + ":" + elem
	}
	return strings.Join(list, " ")
}
