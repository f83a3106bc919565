package nvrtc

import (
	"bytes"
	"debug/elf"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// usage is the resources of the kernels of a cubin. The cubin lists them; the
// log has what the assembler counted, and if it cannot be read (a log in another
// wording), the cubin's own sections give registers, shared memory and
// stack.
func usage(cubin []byte, log string) ([]Usage, error) {
	inFile, err := inspect(cubin)
	if err != nil {
		return nil, err
	}
	logged := parseUsage(log)
	var out []Usage
	for _, name := range slices.Sorted(maps.Keys(inFile)) {
		u := *inFile[name]
		if counted := logged[name]; counted != nil {
			constant := max(u.Constant, counted.Constant)
			u = *counted
			u.Constant = constant
		}
		out = append(out, u)
	}
	return out, nil
}

// inspect reads the sections of a cubin: .text.K is the code of kernel K, with
// its registers in the highest byte of sh_info; .nv.shared.K its static shared
// memory; .nv.constant0.K its parameters; .nv.info.* attributes, one of which
// is the frame of a thread's stack.
func inspect(cubin []byte) (map[string]*Usage, error) {
	f, err := elf.NewFile(bytes.NewReader(cubin))
	if err != nil {
		return nil, fmt.Errorf("the machine code is not an ELF file: %w", err)
	}
	out := map[string]*Usage{}
	names := map[uint32]string{}
	symbols, err := f.Symbols()
	if err != nil {
		return nil, fmt.Errorf("the machine code has no symbols: %w", err)
	}
	for i, s := range symbols {
		// 0x10 in st_other marks the functions that the host can launch.
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Other&0x10 != 0 {
			names[uint32(i+1)] = s.Name
			out[s.Name] = &Usage{Name: s.Name}
		}
	}
	for _, s := range f.Sections {
		kind, kernel := splitSection(s.Name)
		u := out[kernel]
		switch {
		case kind == ".nv.info" && kernel == "":
			data, err := s.Data()
			if err != nil {
				return nil, fmt.Errorf("the machine code is damaged: %w", err)
			}
			attributes(f, data, names, out)
		case u == nil:
		case kind == ".nv.shared":
			u.Shared = int(s.Size)
		case strings.HasPrefix(kind, ".nv.constant"):
			u.Constant += int(s.Size)
		}
	}
	return out, nil
}

// splitSection splits ".nv.shared.k" into ".nv.shared" and "k".
func splitSection(name string) (kind, kernel string) {
	for _, p := range []string{".nv.info", ".nv.shared"} {
		if rest, ok := strings.CutPrefix(name, p); ok {
			return p, strings.TrimPrefix(rest, ".")
		}
	}
	if rest, ok := strings.CutPrefix(name, ".nv.constant"); ok {
		bank, kernel, _ := strings.Cut(rest, ".")
		return ".nv.constant" + bank, kernel
	}
	return name, ""
}

// The attributes of .nv.info that are read: the pair of a symbol's index and a
// number.
const (
	formSized     = 0x04 // two bytes of size, then the value
	attrFrameSize = 0x11
	attrRegisters = 0x2f
)

// attributes reads .nv.info: records of a form byte, an attribute byte and a
// value whose size the form gives.
func attributes(f *elf.File, data []byte, names map[uint32]string, out map[string]*Usage) {
	order := f.ByteOrder
	for len(data) >= 4 {
		form, attr := data[0], data[1]
		if form != formSized { // the value is in the two bytes that follow
			data = data[4:]
			continue
		}
		size := int(order.Uint16(data[2:]))
		if 4+size > len(data) {
			return
		}
		value := data[4 : 4+size]
		data = data[4+size:]
		if size != 8 {
			continue
		}
		u := out[names[order.Uint32(value)]]
		if u == nil {
			continue
		}
		switch n := int(order.Uint32(value[4:])); attr {
		case attrFrameSize:
			u.Stack = n
		case attrRegisters:
			u.Registers = n
		}
	}
}
