package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strconv"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
)

// installed maps the files of a package to their places on a Unix system.
func (r *release) installed(program file) []file {
	program.name = "/usr/bin/dmir"
	list := []file{program}
	for _, f := range r.shared {
		switch f.name {
		case "LICENSE":
			f.name = "/usr/share/doc/dmir/copyright"
		case "CHANGELOG.md":
			f.name = "/usr/share/doc/dmir/changelog.gz"
			f.data = compressed(f.data)
		case "completions/dmir.bash":
			f.name = "/usr/share/bash-completion/completions/dmir"
		case "completions/_dmir":
			f.name = "/usr/share/zsh/vendor-completions/_dmir"
		case "completions/dmir.fish":
			f.name = "/usr/share/fish/vendor_completions.d/dmir.fish"
		case "dmir.1":
			f.name = "/usr/share/man/man1/dmir.1.gz"
			f.data = compressed(f.data)
		default:
			f.name = "/usr/share/doc/dmir/" + f.name
		}
		list = append(list, f)
	}
	return list
}

func compressed(data []byte) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // as Debian's policy 12.3 wants
	z.Write(data)
	z.Close()
	return b.Bytes()
}

// deb writes a Debian package.
func (r *release) deb(p platform, program file) error {
	scratch, err := os.MkdirTemp("", "dmir-deb-") // nfpm reads files from disk
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	var contents files.Contents
	for i, f := range r.installed(program) {
		source := filepath.Join(scratch, strconv.Itoa(i))
		if err := os.WriteFile(source, f.data, f.mode); err != nil {
			return err
		}
		contents = append(contents, &files.Content{
			Source: source, Destination: f.name,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: f.mode, MTime: r.time},
		})
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: r.Name, Arch: p.arch, Platform: "linux", Section: "devel", Priority: "optional",
		Version: r.version, VersionSchema: "semver", Maintainer: r.Maintainer,
		Description: r.Summary, License: r.License, Homepage: r.Repository, MTime: r.time,
		Overridables: nfpm.Overridables{
			Depends:  []string{"libc6"},
			Suggests: []string{"g++"}, // compiles kernels for the emulator
			Contents: contents,
		},
	})
	if err := nfpm.PrepareForPackager(info, "deb"); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := deb.Default.Package(info, &b); err != nil {
		return err
	}
	return r.write(deb.Default.ConventionalFileName(info), b.Bytes())
}
