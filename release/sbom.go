package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// sbom writes the bill of materials of a binary, CycloneDX as JSON: the modules
// that the Go tool recorded in it, with their checksums.
func (r *release) sbom(p platform, program file) error {
	info, err := buildinfo.Read(bytes.NewReader(program.data))
	if err != nil {
		return err
	}
	bom := cyclonedx.NewBOM()
	purl := func(path, version string) string { return "pkg:golang/" + path + "@" + version }
	root := cyclonedx.Component{
		BOMRef: purl(r.Name, r.version), Type: cyclonedx.ComponentTypeApplication, Name: r.Name, Version: r.version,
		Description: r.Summary, Licenses: &cyclonedx.Licenses{{Expression: r.License}},
	}
	bom.Metadata = &cyclonedx.Metadata{Timestamp: r.time.Format(time.RFC3339), Component: &root}
	parts := []cyclonedx.Component{{
		BOMRef: purl("std", strings.TrimPrefix(info.GoVersion, "go")), Type: cyclonedx.ComponentTypeLibrary, Name: "std",
		Version: strings.TrimPrefix(info.GoVersion, "go"), PackageURL: purl("std", strings.TrimPrefix(info.GoVersion, "go")),
	}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		// A go.sum hash h1: is the SHA-256 of a list of files, in base 64.
		sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:"))
		if err != nil {
			return fmt.Errorf("%s: checksum %q: %w", m.Path, m.Sum, err)
		}
		parts = append(parts, cyclonedx.Component{
			BOMRef: purl(m.Path, m.Version), Type: cyclonedx.ComponentTypeLibrary, Name: m.Path, Version: m.Version,
			PackageURL: purl(m.Path, m.Version),
			Hashes:     &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}},
		})
	}
	var needed []string
	for _, c := range parts {
		needed = append(needed, c.BOMRef)
	}
	bom.Components = &parts
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: root.BOMRef, Dependencies: &needed}}
	var b bytes.Buffer
	if err := cyclonedx.NewBOMEncoder(&b, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return err
	}
	return r.write(fmt.Sprintf("dmir-%s-%s-%s.cdx.json", r.version, p.os, p.arch), b.Bytes())
}
