// Package export writes compiled programs as CUDA C++ with a C entry point, to be
// built into other programs.
package export

import (
	"encoding/binary"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"dmir/base/escape"
	"dmir/gpu/artifact"
	"dmir/gpu/prelude"
)

// cName is the program's name as an identifier of C.
func cName(p *artifact.Program) string { return escape.Identifier("dmir_" + p.Name) }

// fileName is the name of the program's text, safe for compilers and shells.
func fileName(p *artifact.Program) string { return escape.Identifier(p.Name) }

// Header writes a C header that declares what Source defines.
func Header(w io.Writer, p *artifact.Program) error {
	e := newExport(p)
	e.f("// %s, compiled by dmir from %s.\n", escape.Comment(p.Name), e.file())
	e.describe()
	e.f("#pragma once\n#include <cuda_runtime_api.h>\n#include <stddef.h>\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n")
	e.f("#define %s_WORKSPACE %d // bytes\n\n", strings.ToUpper(e.name), p.Workspace)
	e.f("// Fills the constants in the workspace and prepares the kernels, once.\n")
	e.f("int %s_init(void *workspace, cudaStream_t stream);\n\n", e.name)
	if !p.ReadsBack() {
		e.f("// Enqueues the function on the stream and returns at once.\n")
	} else {
		e.f("// Runs the function on the stream and returns when its last decision is taken.\n")
	}
	e.f("int %s(void *workspace, const void *const *inputs, void *const *outputs, cudaStream_t stream);\n\n", e.name)
	e.f("#ifdef __cplusplus\n}\n#endif\n")
	return e.flush(w)
}

// Source writes the program as one CUDA C++ file that does not depend on dmir:
// the prelude, every kernel, and a C entry point that launches them in order on
// the caller's stream. The comment at its head describes how to build and call it.
// It needs p.Headers.
func Source(w io.Writer, p *artifact.Program) error {
	if err := p.Check(); err != nil {
		return err
	}
	if p.Divided != nil {
		return fmt.Errorf("@%s is run by %d devices together, and the C++ text has no collectives: write a .dmx file", p.Name, p.Devices())
	}
	text, err := prelude.Flatten(p.Source, p.Headers, "")
	if err != nil {
		return err
	}
	e := newExport(p)
	maps := e.maps()
	libs := ""
	if maps {
		libs = " -lcuda"
	}
	arch := p.Arch()
	if arch == "" {
		arch = "sm_80"
	}
	e.f("// %s, compiled by dmir from %s. Build it into a program of your own:\n//\n", escape.Comment(p.Name), e.file())
	virtual := strings.Replace(arch, "sm_", "compute_", 1) // with -arch=sm_90a nvcc also compiles for sm_90, which may lack what is used
	e.f("//   nvcc -std=c++17 -gencode arch=%s,code=%s -c %s.cu      (link with -lcudart%s)\n", virtual, arch, fileName(p), libs)
	e.describe()
	e.f("// Names of kernels are global in CUDA: each gets the function's name before its own.\n")
	for _, k := range p.Kernels {
		e.f("#define %s %s_%s\n", k.Name, e.name, k.Name)
	}
	e.f("\n%s\n", strings.TrimRight(text, "\n"))
	// What follows is for the host; the run-time compiler, with which the file can
	// be tried as it is, has none.
	fmt.Fprintf(&e.b, "\n#line %d %s\n", strings.Count(e.b.String(), "\n")+3, escape.Line(fileName(p)+".cu"))
	e.f("#ifndef __CUDACC_RTC__\n#include <cuda_runtime.h>\n")
	if maps {
		e.f("#include <cuda.h>\n")
	}
	e.f("#include <cstddef>\n#include <cstdint>\n\nnamespace {\n\n")
	e.constants()
	if maps {
		e.text(mapHelper)
	}
	e.text(launchHelper)
	e.f("} // namespace\n\n")
	e.initFunction()
	e.entry()
	e.f("#endif // __CUDACC_RTC__\n")
	return e.flush(w)
}

type export struct {
	p    *artifact.Program
	name string
	b    strings.Builder
	// direct are the inputs and outputs that the kernels access in the caller's
	// buffers; the others are copied into and out of the workspace.
	direct map[int]string
}

func newExport(p *artifact.Program) *export {
	e := &export{p: p, name: cName(p), direct: map[int]string{}}
	written := p.Written()
	for _, s := range p.Steps {
		for _, a := range s.Launch.Args {
			if a.Map != nil { // its address must be a multiple of 16, which a caller's need not be
				e.direct[a.Buffer] = ""
			}
		}
	}
	claim := func(b int, where string, free bool) {
		if _, taken := e.direct[b]; !taken && free {
			e.direct[b] = where
		}
	}
	for i, b := range p.Inputs {
		claim(b, fmt.Sprintf("(char *)inputs[%d]", i), !written[b])
	}
	for i, b := range p.Outputs {
		claim(b, fmt.Sprintf("(char *)outputs[%d]", i), p.Buffers[b].Kind == artifact.Output)
	}
	return e
}

func (e *export) f(format string, args ...any) { fmt.Fprintf(&e.b, format, args...) }
func (e *export) text(s string)                { e.b.WriteString(s) }
func (e *export) file() string                 { return escape.Comment(filepath.Base(e.p.File)) }

func (e *export) flush(w io.Writer) error {
	_, err := io.WriteString(w, e.b.String())
	return err
}

func (e *export) maps() bool {
	for _, s := range e.p.Steps {
		for _, a := range s.Launch.Args {
			if a.Map != nil {
				return true
			}
		}
	}
	return false
}

// describe writes the part of the comment about what to call, in both files.
func (e *export) describe() {
	p := e.p
	calls := [][2]string{
		{"void *workspace;", fmt.Sprintf("%d bytes of device memory", p.Workspace)},
		{e.name + "_init(workspace, stream);", "once"},
		{e.name + "(workspace, inputs, outputs, stream);", "as often as you like; one call at a time per workspace"},
	}
	e.f("//\n")
	for _, c := range calls {
		e.f("//   %-*s // %s\n", len(calls[2][0]), c[0], c[1])
	}
	e.f("//\n")
	e.f("// Both return 0, or the cudaError_t of what failed. All pointers are to device memory, aligned to 16 bytes. Nothing is\n")
	if !p.ReadsBack() {
		e.f("// allocated and nothing is waited for, so a call can be captured into a CUDA graph. Row-major unless stated otherwise.\n//\n")
	} else {
		e.f("// allocated. Loops and branches are the host's: it waits for the stream to read each predicate, so that a call cannot be\n")
		e.f("// captured into a CUDA graph and comes back when the last predicate was read. Row-major unless stated otherwise.\n//\n")
	}
	list := func(what string, buffers []int, results bool) {
		for i, b := range buffers {
			buf := &p.Buffers[b]
			name, order := buf.Name, ""
			if buf.Order != nil && !sorted(buf.Order) {
				order = fmt.Sprintf(", dimensions in memory %v", buf.Order)
			}
			if in := p.Carried(i); results && in >= 0 {
				name, order = p.Result(i), order+fmt.Sprintf(", inputs[%d] of the next step", in)
			}
			if results && i >= p.Own() {
				order += ", for checks, which the caller makes"
			}
			e.f("//   %s[%d]  %s: %s, %d bytes%s\n", what, i, escape.Comment(name), typeText(buf), buf.Size(), order)
		}
	}
	list("inputs", p.Inputs, false)
	list("outputs", p.Outputs, true)
	e.f("//\n")
}

func sorted(order []int) bool {
	for i, d := range order {
		if i != d {
			return false
		}
	}
	return true
}

func typeText(b *artifact.Buffer) string {
	var t strings.Builder
	t.WriteString("tensor<")
	for _, d := range b.Shape {
		fmt.Fprintf(&t, "%dx", d)
	}
	return t.String() + b.Elem + ">"
}

func (e *export) constants() {
	for i := range e.p.Buffers {
		b := &e.p.Buffers[i]
		if b.Kind != artifact.Constant || len(b.Data) == 0 {
			continue
		}
		e.f("// %s: %s\nconst std::uint64_t constant%d[] = {", escape.Comment(b.Name), typeText(b), i)
		for at := 0; at < len(b.Data); at += 8 {
			if at%(8*6) == 0 {
				e.f("\n   ")
			}
			var word [8]byte
			copy(word[:], b.Data[at:])
			e.f(" 0x%xu,", binary.LittleEndian.Uint64(word[:]))
		}
		e.f("\n};\n\n")
	}
}

const launchHelper = `// launch enqueues one kernel; args are the addresses of its parameters. A dependent one waits for the kernel before it by
// itself and may start while that runs.
cudaError_t launch(const void *kernel, dim3 grid, int threads, int shared, int cluster, bool dependent, void **args, cudaStream_t stream) {
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  cudaLaunchAttribute attribute[2];
  config.attrs = attribute;
  if (cluster > 1) {
    cudaLaunchAttribute &a = attribute[config.numAttrs++];
    a.id = cudaLaunchAttributeClusterDimension;
    a.val.clusterDim.x = cluster;
    a.val.clusterDim.y = 1;
    a.val.clusterDim.z = 1;
  }
  if (dependent) {
    cudaLaunchAttribute &a = attribute[config.numAttrs++];
    a.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    a.val.programmaticStreamSerializationAllowed = 1;
  }
  return cudaLaunchKernelExC(&config, kernel, args);
}

`

const mapHelper = `// encode describes a tiled tensor to the bulk copy engine.
bool encode(CUtensorMap *map, CUtensorMapDataType type, unsigned rank, void *base, const cuuint64_t *dims,
            const cuuint64_t *strides, const cuuint32_t *box, CUtensorMapSwizzle swizzle) {
  const cuuint32_t ones[5] = {1, 1, 1, 1, 1};
  return cuTensorMapEncodeTiled(map, type, rank, base, dims, strides, box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                                CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

`

// initFunction writes the function that is called once.
func (e *export) initFunction() {
	e.f("extern \"C\" int %s_init(void *workspace, cudaStream_t stream) {\n", e.name)
	e.f("  cudaError_t e = cudaSuccess;\n  (void)workspace, (void)stream;\n")
	for i := range e.p.Buffers {
		if b := &e.p.Buffers[i]; b.Kind == artifact.Constant && len(b.Data) > 0 {
			e.f("  if ((e = cudaMemcpyAsync((char *)workspace + %d, constant%d, %d, cudaMemcpyHostToDevice, stream)) != cudaSuccess) return e;\n", b.Offset, i, len(b.Data))
		}
	}
	for _, k := range e.p.Kernels {
		if k.Block.Shared > 48<<10 { // the default limit; more needs an attribute
			e.f("  if ((e = cudaFuncSetAttribute((const void *)%s, cudaFuncAttributeMaxDynamicSharedMemorySize, %d)) != cudaSuccess) return e;\n", k.Name, k.Block.Shared)
		}
		if k.Block.Cluster > 8 {
			e.f("  if ((e = cudaFuncSetAttribute((const void *)%s, cudaFuncAttributeNonPortableClusterSizeAllowed, 1)) != cudaSuccess) return e;\n", k.Name)
		}
	}
	e.f("  return e;\n}\n\n")
}

// address is where a buffer is, as an expression.
func (e *export) address(b int) string {
	if d := e.direct[b]; d != "" {
		return d
	}
	return fmt.Sprintf("(char *)workspace + %d", e.p.Buffers[b].Offset)
}

// entry writes the function that launches the steps.
func (e *export) entry() {
	p := e.p
	e.f("extern \"C\" int %s(void *workspace, const void *const *inputs, void *const *outputs, cudaStream_t stream) {\n", e.name)
	e.f("  cudaError_t e = cudaSuccess;\n  (void)workspace, (void)inputs, (void)outputs, (void)stream;\n")
	for i, b := range p.Inputs {
		if n := p.Buffers[b].Size(); e.direct[b] == "" && n > 0 {
			e.f("  if ((e = cudaMemcpyAsync(%s, inputs[%d], %d, cudaMemcpyDeviceToDevice, stream)) != cudaSuccess) return e;\n", e.address(b), i, n)
		}
	}
	e.steps(0, len(p.Steps))
	for i, b := range p.Outputs {
		to := fmt.Sprintf("(char *)outputs[%d]", i)
		if n := p.Buffers[b].Size(); e.address(b) != to && n > 0 {
			e.f("  if ((e = cudaMemcpyAsync(%s, %s, %d, cudaMemcpyDeviceToDevice, stream)) != cudaSuccess) return e;\n", to, e.address(b), n)
		}
	}
	e.f("  return e;\n}\n")
}

// steps writes the steps [from, to), those of decisions in their braces.
func (e *export) steps(from, to int) {
	before := -1 // the step that the next one follows directly
	for i := from; i < to; i++ {
		s := &e.p.Steps[i]
		if !s.Decides() {
			e.step(s, e.p.Dependent(i, before))
			before = i
			continue
		}
		before = -1
		second := i + 1 + s.Decision.Parts[0]
		end := second + s.Decision.Parts[1]
		read := func() {
			e.f("    unsigned char yes = 0; // a caller may give any byte\n")
			e.f("    if ((e = cudaMemcpyAsync(&yes, %s, 1, cudaMemcpyDeviceToHost, stream)) != cudaSuccess) return e;\n", e.address(s.Decision.On))
			e.f("    if ((e = cudaStreamSynchronize(stream)) != cudaSuccess) return e;\n")
		}
		switch s.Kind {
		case artifact.StepRepeat:
			e.f("  for (long long n = 0; n < %d; n++) { // %s\n", s.Decision.Trips, escape.Comment(s.Name))
			e.steps(second, end)
		case artifact.StepLoop:
			e.f("  for (;;) { // %s\n", escape.Comment(s.Name))
			e.steps(i+1, second)
			read()
			e.f("    if (!yes) break;\n")
			e.steps(second, end)
		default:
			e.f("  { // %s\n", escape.Comment(s.Name))
			read()
			e.f("  if (yes) {\n")
			e.steps(i+1, second)
			e.f("  } else {\n")
			e.steps(second, end)
			e.f("  }\n")
		}
		e.f("  }\n")
		i = end - 1
	}
}

func (e *export) step(s *artifact.Step, dependent bool) {
	p := e.p
	e.f("  { // %s\n", escape.Comment(s.Name))
	defer e.f("  }\n")
	to := s.Move.To
	switch n := p.Buffers[to].Size(); {
	case s.Kind == artifact.StepFill:
		e.f("    if ((e = cudaMemsetAsync(%s, 0, %d, stream)) != cudaSuccess) return e;\n", e.address(to), n)
		return
	case s.Kind == artifact.StepCopy:
		if n > 0 {
			e.f("    if ((e = cudaMemcpyAsync(%s, %s, %d, cudaMemcpyDeviceToDevice, stream)) != cudaSuccess) return e;\n", e.address(to), e.address(s.Move.From), n)
		}
		return
	}
	k := &p.Kernels[s.Launch.Kernel]
	var list []string
	for i, a := range s.Launch.Args {
		if a.Map != nil {
			e.tensorMap(i, a)
		} else {
			e.f("    void *a%d = %s;\n", i, e.address(a.Buffer))
		}
		list = append(list, fmt.Sprintf("&a%d", i))
	}
	list = append(list, "nullptr") // an array of none is no array
	e.f("    void *args[] = {%s};\n", strings.Join(list, ", "))
	e.f("    if ((e = launch((const void *)%s, dim3(%d, %d, %d), %d, %d, %d, %t, args, stream)) != cudaSuccess) return e;\n",
		k.Name, s.Launch.Grid[0], s.Launch.Grid[1], s.Launch.Grid[2], k.Block.Threads, k.Block.Shared, max(1, k.Block.Cluster), dependent)
}

// mapTypes are the driver's names of the element types of tensor maps.
var mapTypes = map[string]string{
	"f64": "FLOAT64", "f32": "FLOAT32", "f16": "FLOAT16", "bf16": "BFLOAT16", "f8E4M3FN": "UINT8", "f8E5M2": "UINT8",
	"i64": "INT64", "i32": "INT32", "i16": "UINT16", "i8": "UINT8", "i1": "UINT8",
	"tf32": "TFLOAT32", "ui64": "UINT64", "ui32": "UINT32", "ui16": "UINT16", "ui8": "UINT8", "index": "INT64",
}

func (e *export) tensorMap(i int, a artifact.Arg) {
	m := a.Map
	swizzle := "NONE"
	if m.Swizzle > 0 {
		swizzle = fmt.Sprintf("%dB", m.Swizzle)
	}
	e.f("    CUtensorMap a%d;\n", i)
	e.f("    const cuuint64_t dims%d[] = {%s}, strides%d[] = {%s};\n    const cuuint32_t box%d[] = {%s};\n",
		i, numbers(m.Dims), i, numbers(append(append([]uint64(nil), m.Strides...), 0)), i, numbers(m.Box))
	e.f("    if (!encode(&a%d, CU_TENSOR_MAP_DATA_TYPE_%s, %d, %s, dims%d, strides%d, box%d, CU_TENSOR_MAP_SWIZZLE_%s)) return cudaErrorInvalidValue;\n",
		i, mapTypes[m.Elem], len(m.Dims), e.address(a.Buffer), i, i, i, swizzle)
}

func numbers[T uint32 | uint64](list []T) string {
	var out []string
	for _, n := range list {
		out = append(out, fmt.Sprint(n))
	}
	return strings.Join(out, ", ")
}
