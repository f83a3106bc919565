package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"dmir/analysis/machine"
	"dmir/analysis/program"
	"dmir/analysis/units"
	"dmir/base/atomicfile"
	"dmir/base/escape"
	"dmir/base/regular"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// failure is an error without a place in a program's text: about a file, a flag or a
// device. It is printed like a diagnostic.
type failure struct {
	code  string
	where string // path or flag
	msg   string
	help  string
}

// placed is a failure at a place in a text, which is no program's.
type placed struct {
	*failure
	src  *source.File
	span source.Span
}

func (p *placed) Unwrap() error { return p.failure }

func (p *placed) print(w io.Writer, s diag.Style) {
	d := diag.New(p.code, diag.Error, p.span, p.msg)
	d.Help = p.help
	diag.Text(w, p.src, d, s)
}

func (f *failure) Error() string { return f.where + ": " + f.msg }

func (f *failure) print(w io.Writer, s diag.Style) { f.printAs(diag.Error, w, s) }

func (f *failure) printAs(severity diag.Severity, w io.Writer, s diag.Style) {
	d := diag.New(f.code, severity, source.Span{}, f.msg)
	diag.TextWithoutPlace(w, f.where, d, s)
	if f.help != "" {
		escape.Fprintf(w, "    = help: %s\n", f.help)
	}
	fmt.Fprintf(w, "    = dmir explain %s\n", f.code)
}

// Codes are the failures of the command line, in the order of their numbers.
var Codes = diag.Register([]diag.Code{
	{Code: "DM503", Name: "cannot-plan", Doc: "`dmir cost --planned` was asked for a function that cannot be compiled: sizes are open, or its devices run different programs.", Help: "leave out `--planned`, or give sizes with `--bind`"},
	{Code: "DM502", Name: "budget-regression", Doc: "`dmir diff --budget` found a function that moves more bytes, takes more time or holds more memory than in the older version, beyond the tolerance that was given.", Help: "move or hold less, or allow an increase: `--budget 5%`"},
	{Code: "DM601", Name: "cannot-read", Doc: "A file could not be read. The message carries the reason of the operating system.", Help: "check the path and its permissions"},
	{Code: "DM602", Name: "too-large", Doc: "The file is larger than 256 MB, the limit for a program; for one in StableHLO, which has its constants in the text, and for a model in ONNX it is 2 GB.", Help: "put large constants into a `.npz` file beside the program, `#dm.file<\"weights.npz\", \"name\">`, or pass them with `--input`"},
	{Code: "DM603", Name: "cannot-write", Doc: "An output could not be written. Outputs go to a temporary file that is renamed when it is complete, so no file is partly written.", Help: "check the folder and its permissions"},
	{Code: "DM604", Name: "unknown-target", Doc: "The target is neither one of the machines that dmir knows nor one described in `dmir.toml`. It knows `" + strings.Join(machine.Names(), "`, `") + "`, and their GPUs by the names that drivers give them.", Help: "use a known machine, or describe yours"},
	{Code: "DM605", Name: "bad-binding", Doc: "`--bind` takes `name=size`: a dimension symbol that the program has, and a non-negative integer.", Help: "write `--bind n=512`"},
	{Code: "DM606", Name: "unknown-function", Doc: "The file has no function of that name; or no name is given, and the file has no public function or several.", Help: "name one with `--func`"},
	{Code: "DM607", Name: "bad-input", Doc: "An input given with `--input name=file.npy` names no argument, or its file has another shape or element type than the argument.", Help: "give an array of the argument's type; leave it out for a seeded random one"},
	{Code: "DM608", Name: "no-device", Doc: "The device asked for with `--device` is not available.", Help: "use `--device auto`"},
	{Code: "DM610", Name: "unknown-rule", Doc: "The code or name is not that of a rule, diagnostic or op.", Help: "`dmir explain` lists them"},
	{Code: "DM611", Name: "nothing-to-do", Doc: "A folder holds no `.dmir` file.", Help: "name the files themselves"},
	{Code: "DM612", Name: "bad-flags", Doc: "A value that a flag does not take, flags or arguments that do not go together, or a version that names nothing: `--devices many`, `--kind diff` without `--against`, several pages for one file, stdin twice, `git:` without a revision.", Help: "`dmir COMMAND --help` describes the flags"},
	{Code: "DM613", Name: "unknown-pass", Doc: "`dmir opt` was asked to run or to skip a pass that does not exist. `dmir opt --help` lists them in their order.", Help: "name one of the passes"},
	{Code: "DM614", Name: "no-compiler", Doc: "Machine code was asked for and a tool for it is not installed: NVRTC, NVIDIA's run-time compiler, which needs no GPU and no toolkit; nvdisasm for `--emit sass`; or for a processor clang 14 or newer.", Help: "`dmir doctor --install-nvrtc` fetches the first two, and the system's packages have clang; `dmir doctor` lists what is available"},
	{Code: "DM615", Name: "kernel-rejected", Doc: "The CUDA compiler, or clang, does not accept the code that was generated for a program. This is a bug in dmir, not in the program.", Help: "report it with the file; `dmir compile --emit cuda`, or `--emit llvm`, prints the code"},
	{Code: "DM616", Name: "bad-artifact", Doc: "A `.dmx` file is damaged, truncated, of another version or not a `.dmx` file; or a compiled program is invalid, for example because of two buffers on the same bytes.", Help: "compile it again with `dmir compile -o FILE.dmx`"},
	{Code: "DM617", Name: "unknown-arch", Doc: "`--arch` takes architectures as NVIDIA's compilers write them: `sm_80`, `sm_90a`, `sm_100`, several with commas, or `none`; kernels need `sm_80` or newer.", Help: "write `--arch sm_90a`"},
	{Code: "DM618", Name: "kernel-failed", Doc: "A kernel of a compiled program failed: it accessed memory outside its buffers, or the emulator detected a data race. This is a bug in dmir, not in the program.", Help: "report it with the file; `dmir run --device emulator` reports the line and the cause"},
	{Code: "DM619", Name: "other-kind", Doc: "The command does not take this kind of file: it is a compiled `.dmx` file, an array, machine code, C++ or assembly instead of a program.", Help: "name the `.dmir` file; `dmir run` takes `.dmx` files too"},
	{Code: "DM620", Name: "compiled-elsewhere", Doc: "Without a GPU, the emulator compiles the C++ in a `.dmx` file and runs it on the host with the user's permissions; a file that was compiled for a processor holds its machine code. By default these run only if they are unchanged and the same user compiled them on the same machine; they are signed with a key that only this user can read. Any other file could contain arbitrary code.", Help: "compile its program here, or, if you trust who made the file, `dmir run --trust`"},
	{Code: "DM621", Name: "no-state", Doc: "`dmir run --steps` repeats a function whose results are its arguments in the next step. The function says which with the attribute `dm.state` of a result, and this one has none, so that every step would be the same.", Help: "mark results as the next values of arguments: `-> (tensor<f32>, tensor<4x4xf32> {dm.state = \"w\"})`"},
	{Code: "DM622", Name: "bad-checkpoint", Doc: "A checkpoint of `dmir run --checkpoint` is damaged, or was written by another program (its state has other names or types), or with other data, another seed or another order; or the folder has checkpoints and `--resume` was not given; or the log that a resumed run would go on with is no log.", Help: "go on with what the checkpoint was written with, or name a new folder"},
	{Code: "DM623", Name: "no-solver", Doc: "HiGHS, a solver of integer programs, could not be installed.", Help: "`dmir doctor --install-highs` fetches it with pip; the variable `DMIR_HIGHS` names a library"},
	{Code: "DM625", Name: "bad-trace", Doc: "The description of a trace, `.dmir/traces/NAME.json`, is damaged, of another version, or names a program or a file that is not beside it.", Help: "trace the program again: `python -m dmir trace MODULE:FUNCTION`"},
	{Code: "DM626", Name: "kept", Doc: "`dmir init` overwrites no file: those that exist are named, and stay as they are.", Help: "move a file away to have it written again"},
	{Code: "DM627", Name: "cannot-trace", Doc: "`dmir init --python` could not trace the model: there is no Python with the module `dmir`, the file does not say what to trace, or its code failed.", Help: "name what to trace, `--python model.py:step`, with `--shapes` where nothing states its arguments; `pip install dmir` installs the module"},
})

// suggested is help behind the name, of those that are known, that name may be meant as; help alone where none is near.
func suggested(name string, known []string, help string) string {
	if near := diag.Suggest(name, known); near != "" {
		return "did you mean " + near + "? " + help
	}
	return help
}

func cannotRead(path string, err error) *failure {
	var other *regular.Error
	if errors.Is(err, syscall.EISDIR) || errors.As(err, &other) && other.Mode.IsDir() {
		return &failure{"DM601", path, reason(err), "name a file in it"}
	}
	return &failure{"DM601", path, reason(err), "check the path and its permissions"}
}

// noFunction explains why a function of p cannot be chosen; flag names one.
func noFunction(p *program.Program, err error, flag string) *failure {
	for _, f := range p.Funcs {
		if f.Func.Body != nil {
			return &failure{"DM606", p.Src.Path, err.Error(), "name one with " + flag}
		}
	}
	return &failure{"DM606", p.Src.Path, err.Error(), "write one, or name another file"}
}

func tooLarge(path string, limit int64) *failure {
	return &failure{"DM602", path, "is larger than " + units.Bytes(limit), "keep large constants in a .npz file beside the program: #dm.file<\"weights.npz\", \"name\">"}
}

func cannotWrite(path string, err error) *failure {
	return &failure{"DM603", path, reason(err), writable(err) + "; nothing was changed"}
}

// writable is what lets err, of a file that could not be written, not happen again.
func writable(err error) string {
	if r := (*atomicfile.Refused)(nil); errors.As(err, &r) {
		return r.Help
	}
	for _, r := range []struct {
		help string
		errs []error
	}{
		{"give it a shorter name", []error{syscall.ENAMETOOLONG}},
		{"make its folder, or name another one", []error{fs.ErrNotExist}},
		{"a part of the path is no folder: name another one", []error{syscall.ENOTDIR, fs.ErrExist}},
		{"it is a folder: name a file in it", []error{syscall.EISDIR}},
		{"remove the link, or name another file", []error{syscall.ELOOP}},
		{"free some space there, or name a file elsewhere", []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG}},
		{"what it is on can only be read: name a file elsewhere", []error{syscall.EROFS}},
	} {
		if slices.ContainsFunc(r.errs, func(one error) bool { return errors.Is(err, one) }) {
			return r.help
		}
	}
	return "check the folder and its permissions"
}

// reason is the operating system's part of an error, without the path that
// the message names already.
func reason(err error) string {
	var path *os.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err.Error()
	case errors.As(err, &link):
		return link.Err.Error()
	}
	return err.Error()
}
