// Release builds the packages of a release under a folder: archives for six
// platforms, Debian packages, Python wheels, a container image, a Homebrew
// formula and an SBOM for each platform.
//
// The packages of equal sources are equal bytes: files have the time of the
// commit, names are sorted, and binaries hold no paths.
//
// It is a module of its own so that its dependencies are not dmir's.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// development is the version of a commit without a tag.
const development = "0.0.0-dev"

// A platform is a system that a release has packages for.
type platform struct {
	os, arch string
	wheel    string // the wheel's platform tags, PEP 425
}

var platforms = []platform{
	{"linux", "amd64", "manylinux_2_17_x86_64.manylinux2014_x86_64"},
	{"linux", "arm64", "manylinux_2_17_aarch64.manylinux2014_aarch64"},
	{"darwin", "amd64", "macosx_11_0_x86_64"},
	{"darwin", "arm64", "macosx_11_0_arm64"},
	{"windows", "amd64", "win_amd64"},
	{"windows", "arm64", "win_arm64"},
}

func (p platform) String() string { return p.os + "/" + p.arch }

// binary is the name of the program on the platform.
func (p platform) binary() string {
	if p.os == "windows" {
		return "dmir.exe"
	}
	return "dmir"
}

// project is the content of project.json.
type project struct {
	Name, Summary, License, Maintainer, Repository string
}

// A release holds what all packages have in common.
type release struct {
	project
	root, out string
	version   string // semantic, without v
	time      time.Time
	shared    []file          // documents, completions and the manual page
	built     map[string]file // the program by platform

	// The Python module of the wheels: its files, its entry points, the versions of Python that it runs on, and its extras.
	module         []file
	entryPoints    []byte
	requiresPython string
	extras         []extra
}

// A file is an entry of a package.
type file struct {
	name string // with slashes
	mode os.FileMode
	data []byte
	link string // the target of a symbolic link
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run() error {
	root := flag.String("root", "..", "the folder of dmir's sources")
	out := flag.String("out", "../build/release", "the folder to write; its old content is removed")
	only := flag.String("platforms", "", "the platforms to build, as os/arch with commas (default all)")
	base := flag.String("base", "", "a folder ARCH/root for each Linux architecture with the container image's base files (default no image)")
	version := flag.String("version", development, "the semantic version of the release")
	wheels := flag.Bool("wheels", false, "build the Python wheels alone")
	flag.Parse()

	r := release{root: *root, out: *out, version: *version, built: map[string]file{}}
	text, err := os.ReadFile(filepath.Join(r.root, "project.json"))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &r.project); err != nil {
		return fmt.Errorf("project.json: %w", err)
	}
	if r.time, err = r.committed(); err != nil {
		return err
	}
	if err := r.hooks(); err != nil {
		return err
	}
	wanted, err := choose(*only)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	if err := r.documents(); err != nil {
		return err
	}
	if !*wheels {
		if err := r.printed(); err != nil {
			return err
		}
	}
	slices.SortFunc(r.shared, func(a, b file) int { return strings.Compare(a.name, b.name) })
	if err := r.python(); err != nil {
		return err
	}
	var images []mutate.IndexAddendum
	archives := map[string]string{}
	for _, p := range wanted {
		program, err := r.build(p)
		if err != nil {
			return err
		}
		if err := r.wheel(p, program); err != nil {
			return err
		}
		if *wheels {
			continue
		}
		archive, err := r.archive(p, program)
		if err != nil {
			return err
		}
		archives[p.String()] = archive
		if err := r.sbom(p, program); err != nil {
			return err
		}
		if p.os != "linux" {
			continue
		}
		if err := r.deb(p, program); err != nil {
			return err
		}
		if *base == "" {
			continue
		}
		made, err := r.imageFor(*base, p, program)
		if err != nil {
			return err
		}
		images = append(images, made)
	}
	if *wheels {
		return nil
	}
	if len(images) > 0 {
		if err := r.image(images); err != nil {
			return err
		}
	}
	return r.formula(archives)
}

// choose returns the platforms of a list os/arch,os/arch, or all.
func choose(list string) ([]platform, error) {
	if list == "" {
		return platforms, nil
	}
	var chosen []platform
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(platforms, func(p platform) bool { return p.String() == name })
		if i < 0 {
			return nil, fmt.Errorf("no platform %q; the platforms are %v", name, platforms)
		}
		chosen = append(chosen, platforms[i])
	}
	return chosen, nil
}

// committed is the time of the commit.
func (r *release) committed() (time.Time, error) {
	seconds, err := r.command("git", "log", "-1", "--format=%ct")
	if err != nil {
		return time.Time{}, err
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	return time.Unix(n, 0).UTC(), err
}

// command runs a program in the sources' folder and returns what it prints.
func (r *release) command(name string, args ...string) (string, error) {
	c := exec.Command(name, args...)
	c.Dir = r.root
	text, err := c.Output()
	if e := (*exec.ExitError)(nil); errors.As(err, &e) {
		err = fmt.Errorf("%s: %w\n%s", name, err, e.Stderr)
	}
	return strings.TrimSpace(string(text)), err
}

// documents reads the files that every package has.
func (r *release) documents() error {
	for name, path := range map[string]string{
		"LICENSE": "LICENSE", "README.md": "README.md", "CHANGELOG.md": "CHANGELOG.md",
		"THIRD_PARTY_NOTICES.txt": "cli/notices/THIRD_PARTY_NOTICES.txt",
	} {
		text, err := os.ReadFile(filepath.Join(r.root, path))
		if err != nil {
			return err
		}
		r.shared = append(r.shared, file{name: name, mode: 0o644, data: text})
	}
	return nil
}

// printed adds what the program prints of itself, its completions and its manual page, to the files that every package but a wheel
// has. The program is this machine's, which is one of the packages' as a rule and is linked once.
func (r *release) printed() error {
	built, err := r.build(platform{os: runtime.GOOS, arch: runtime.GOARCH})
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "dmir-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	program := filepath.Join(folder, built.name)
	if err := os.WriteFile(program, built.data, built.mode); err != nil {
		return err
	}
	for name, args := range map[string][]string{
		"dmir.1":                {"help", "--man"},
		"completions/dmir.bash": {"completion", "bash"},
		"completions/_dmir":     {"completion", "zsh"},
		"completions/dmir.fish": {"completion", "fish"},
	} {
		text, err := r.command(program, args...)
		if err != nil {
			return err
		}
		r.shared = append(r.shared, file{name: name, mode: 0o644, data: []byte(text + "\n")})
	}
	return nil
}

// build compiles the program for p, once.
func (r *release) build(p platform) (file, error) {
	if made, ok := r.built[p.String()]; ok {
		return made, nil
	}
	out, err := filepath.Abs(filepath.Join(r.out, p.binary()))
	if err != nil {
		return file{}, err
	}
	defer os.Remove(out)
	c := exec.Command("go", "build", "-buildvcs=true", "-trimpath", "-o", out,
		"-ldflags", "-s -w -X dmir/cli.version="+r.version, ".")
	c.Dir = r.root
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch)
	if text, err := c.CombinedOutput(); err != nil {
		return file{}, fmt.Errorf("go build for %s: %w\n%s", p, err, text)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		return file{}, err
	}
	made := file{name: p.binary(), mode: 0o755, data: data}
	r.built[p.String()] = made
	return made, nil
}

// write stores a package.
func (r *release) write(name string, data []byte) error {
	return os.WriteFile(filepath.Join(r.out, name), data, 0o644)
}
