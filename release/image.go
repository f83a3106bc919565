package main

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// imageFor returns the container image of one architecture of Linux. It has two
// layers: the base's files and the program.
func (r *release) imageFor(base string, p platform, program file) (mutate.IndexAddendum, error) {
	var none mutate.IndexAddendum
	under, err := tree(filepath.Join(base, p.arch, "root"))
	if err != nil {
		return none, err
	}
	var layers []v1.Layer
	for _, files := range [][]file{under, r.installed(program)} {
		var b bytes.Buffer
		if err := packTar(&b, files, r.time); err != nil {
			return none, err
		}
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil },
			tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching) // its digest, size and data from one compression
		if err != nil {
			return none, err
		}
		layers = append(layers, layer)
	}
	made, err := mutate.AppendLayers(mutate.MediaType(empty.Image, types.OCIManifestSchema1), layers...)
	if err != nil {
		return none, err
	}
	made, err = mutate.ConfigFile(made, &v1.ConfigFile{
		OS: p.os, Architecture: p.arch, Created: v1.Time{Time: r.time},
		RootFS: rootFS(layers),
		Config: v1.Config{
			Entrypoint: []string{"/usr/bin/dmir"}, WorkingDir: "/work", User: "65532:65532",
			Env: []string{"PATH=/usr/bin", "XDG_CACHE_HOME=/tmp"},
			Labels: map[string]string{
				"org.opencontainers.image.title": r.Name, "org.opencontainers.image.version": r.version,
				"org.opencontainers.image.licenses": r.License, "org.opencontainers.image.source": r.Repository,
			},
		},
	})
	return mutate.IndexAddendum{Add: made, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.os, Architecture: p.arch}}}, err
}

func rootFS(layers []v1.Layer) v1.RootFS {
	root := v1.RootFS{Type: "layers"}
	for _, l := range layers {
		id, _ := l.DiffID() // computed when the layer was made
		root.DiffIDs = append(root.DiffIDs, id)
	}
	return root
}

// tree reads the files of a folder.
func tree(folder string) ([]file, error) {
	var files []file
	root := os.DirFS(folder)
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f := file{name: path}
		if d.Type() == fs.ModeSymlink {
			f.link, err = os.Readlink(filepath.Join(folder, filepath.FromSlash(path)))
		} else if info, e := d.Info(); e != nil {
			err = e
		} else {
			f.mode = info.Mode().Perm()
			f.data, err = fs.ReadFile(root, path)
		}
		files = append(files, f)
		return err
	})
	return files, err
}

// image writes an OCI archive of the images of all architectures, as podman
// load, docker load and skopeo read it.
func (r *release) image(images []mutate.IndexAddendum) error {
	scratch, err := os.MkdirTemp("", "dmir-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	index := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), images...)
	if _, err := layout.Write(scratch, index); err != nil {
		return err
	}
	files, err := tree(scratch)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := packTar(&b, files, r.time); err != nil {
		return err
	}
	return r.write("dmir-"+r.version+"-oci.tar.gz", b.Bytes())
}
