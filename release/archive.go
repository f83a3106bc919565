package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"time"
)

// archive writes a .tar.gz, on Windows a .zip, with one folder, and returns its name.
func (r *release) archive(p platform, program file) (string, error) {
	folder := fmt.Sprintf("dmir-%s-%s-%s", r.version, p.os, p.arch)
	var files []file
	for _, f := range append([]file{program}, r.shared...) {
		f.name = folder + "/" + f.name
		files = append(files, f)
	}
	name, pack := folder+".tar.gz", packTar
	if p.os == "windows" {
		name, pack = folder+".zip", packZip
	}
	var b bytes.Buffer
	if err := pack(&b, files, r.time); err != nil {
		return "", err
	}
	return name, r.write(name, b.Bytes())
}

func packTar(w io.Writer, files []file, t time.Time) error {
	z := gzip.NewWriter(w)
	a := tar.NewWriter(z)
	for _, f := range files {
		h := &tar.Header{
			Typeflag: tar.TypeReg, Name: strings.TrimPrefix(f.name, "/"), Mode: int64(f.mode), Size: int64(len(f.data)),
			ModTime: t, Format: tar.FormatPAX,
		}
		if f.link != "" {
			h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, f.link, 0o777
		}
		if err := a.WriteHeader(h); err != nil {
			return err
		}
		if _, err := a.Write(f.data); err != nil {
			return err
		}
	}
	if err := a.Close(); err != nil {
		return err
	}
	return z.Close()
}

func packZip(w io.Writer, files []file, t time.Time) error {
	a := zip.NewWriter(w)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: t}
		h.SetMode(f.mode)
		e, err := a.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := e.Write(f.data); err != nil {
			return err
		}
	}
	return a.Close()
}
