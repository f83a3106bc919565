package native

import (
	"runtime"
	"slices"

	"golang.org/x/sys/cpu"

	"dmir/gpu/artifact"
)

// architectures are those that programs are compiled for, by the architecture of Go
// that each belongs to, in ascending order: a processor runs its own level and those
// before it.
var architectures = map[string][]string{
	"amd64": {"x86-64-v2", "x86-64-v3", "x86-64-v4"},
	"arm64": {"armv8-a"},
}

// triples are the systems to compile for where the processor is not of this machine's
// family.
var triples = map[string]string{"amd64": "x86_64-unknown-linux-gnu", "arm64": "aarch64-unknown-linux-gnu"}

// ValidArch reports whether programs can be compiled for arch.
func ValidArch(arch string) bool { return family(arch) != "" }

// family is the architecture of Go that arch belongs to; "" for none.
func family(arch string) string {
	for f, list := range architectures {
		if slices.Contains(list, arch) {
			return f
		}
	}
	return ""
}

// Host is the highest level of this machine's processor; ok is false where it has
// none that programs are compiled for.
func Host() (arch string, ok bool) {
	switch runtime.GOARCH {
	case "arm64":
		return "armv8-a", true
	case "amd64":
		x := &cpu.X86
		v2 := x.HasCX16 && x.HasPOPCNT && x.HasSSE3 && x.HasSSSE3 && x.HasSSE41 && x.HasSSE42
		v3 := v2 && x.HasAVX && x.HasAVX2 && x.HasBMI1 && x.HasBMI2 && x.HasF16C && x.HasFMA && x.HasLZCNT && x.HasMOVBE && x.HasOSXSAVE
		v4 := v3 && x.HasAVX512F && x.HasAVX512BW && x.HasAVX512CD && x.HasAVX512DQ && x.HasAVX512VL
		switch {
		case v4:
			return "x86-64-v4", true
		case v3:
			return "x86-64-v3", true
		case v2:
			return "x86-64-v2", true
		}
	}
	return "", false
}

// runsHere reports whether this machine's processor runs code for arch.
func runsHere(arch string) bool {
	host, ok := Host()
	list := architectures[runtime.GOARCH]
	at := slices.Index(list, arch)
	return ok && at >= 0 && at <= slices.Index(list, host)
}

// ArchError reports an architecture that programs are not compiled for.
type ArchError struct{ Arch string }

func (e *ArchError) Error() string {
	return e.Arch + " is not an architecture of CPUs that programs are compiled for: x86-64-v2, x86-64-v3, x86-64-v4, armv8-a"
}

// Failure reports that the architecture is unknown.
func (e *ArchError) Failure() artifact.Failure {
	return artifact.Failure{Reason: artifact.UnknownArch, Arch: e.Arch}
}
