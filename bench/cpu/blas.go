package main

import (
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"dmir/compile/tensor"
	"dmir/dialect/types"
	"dmir/gpu/dylib"
)

// openblas is an OpenBLAS: the system's, or NumPy's, whose names are others and whose
// integers have 64 bits, which the system's takes as well.
type openblas struct {
	Gemm       func(order, turnA, turnB, m, n, k int64, alpha float32, a unsafe.Pointer, lda int64, b unsafe.Pointer, ldb int64, beta float32, c unsafe.Pointer, ldc int64) `c:"cblas_sgemm|scipy_cblas_sgemm64_"`
	SetThreads func(int32)                                                                                                                                                  `c:"openblas_set_num_threads|scipy_openblas_set_num_threads64_"`
	Core       func() string                                                                                                                                                `c:"openblas_get_corename|scipy_openblas_get_corename64_"`
	Config     func() string                                                                                                                                                `c:"openblas_get_config|scipy_openblas_get_config64_"`
}

func openBLAS(path string) (*openblas, error) {
	if path == "" {
		return nil, errors.New("no library that could be opened: install libopenblas0-pthread")
	}
	lib, err := dylib.Open(path)
	if err != nil {
		return nil, err
	}
	o := &openblas{}
	return o, lib.BindAll(o)
}

// multiply sets c to a product of matrices of f32, all in row-major order.
func (o *openblas) multiply(m, n, k int, a, b, c []byte) {
	const rowMajor, straight = 101, 111
	at := func(data []byte) unsafe.Pointer { return unsafe.Pointer(&data[0]) }
	o.Gemm(rowMajor, straight, straight, int64(m), int64(n), int64(k), 1, at(a), int64(k), at(b), int64(n), 0, at(c), int64(n))
}

// The variables of this program's processes: which library is used, and which one a
// process measures. OpenBLAS reads its own when it is loaded.
const (
	libraryVar = "DMIR_BENCH_OPENBLAS"
	probeVar   = "DMIR_BENCH_PROBE"
	coreVar    = "OPENBLAS_CORETYPE"
)

// cores are the kernels that an OpenBLAS is tried with: one older than the processor
// takes it for a very old one, and what a user has set may be slow as well.
var cores = []string{"", "HASWELL", "SKYLAKEX", "SAPPHIRERAPIDS", "ZEN"}

// withFastest runs this program again with the fastest OpenBLAS and its fastest kernels.
// It returns in that process.
func withFastest() {
	if path := os.Getenv(probeVar); path != "" {
		probe(path)
		os.Exit(0)
	}
	if _, ok := os.LookupEnv(libraryVar); ok {
		return
	}
	paths := []string{"libopenblas.so.0"}
	more, _ := filepath.Glob("build/bench-cpu/lib/python*/site-packages/numpy.libs/libscipy_openblas64_*")
	best, path, core := 0.0, "", ""
	for _, p := range append(paths, more...) {
		for _, c := range cores {
			out, err := child([]string{probeVar + "=" + p}, c).Output()
			if rate, _ := strconv.ParseFloat(strings.TrimSpace(string(out)), 64); err == nil && rate > best {
				best, path, core = rate, p, c
			}
		}
	}
	cmd := child([]string{libraryVar + "=" + path}, core, os.Args[1:]...)
	cmd.Stdin, cmd.Stdout = os.Stdin, os.Stdout
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		os.Exit(exit.ExitCode())
	} else if err != nil {
		log.Fatal(err)
	}
	os.Exit(0)
}

// child is this program, with OpenBLAS's variables only as given.
func child(env []string, core string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "OPENBLAS_") || strings.HasPrefix(v, "OMP_NUM_THREADS=")
	})
	if cmd.Env = append(cmd.Env, env...); core != "" {
		cmd.Env = append(cmd.Env, coreVar+"="+core)
	}
	cmd.Stderr = os.Stderr
	return cmd
}

// probe prints the rate of a library on one thread.
func probe(path string) {
	lib, err := openBLAS(path)
	if err != nil {
		os.Exit(1)
	}
	lib.SetThreads(1)
	const n = 1024
	a, b, c := make([]byte, 4*n*n), make([]byte, 4*n*n), make([]byte, 4*n*n)
	best := time.Duration(1 << 62)
	for range 8 {
		best = min(best, timed(1, func() { lib.multiply(n, n, n, a, b, c) }))
	}
	fmt.Println(2 * n * n * n / float64(best))
}

// blasProduct is a product by OpenBLAS.
type blasProduct struct {
	lib      *openblas
	m, n, k  int
	a, b, c  []byte
	complete bool // it is all of the row
}

func (p *blasProduct) once() { p.lib.multiply(p.m, p.n, p.k, p.a, p.b, p.c) }

func (p *blasProduct) results() ([]*tensor.Tensor, error) {
	p.once()
	if !p.complete {
		return nil, nil
	}
	t, err := tensor.Unpack(p.c, types.F32, []int{p.m, p.n})
	return []*tensor.Tensor{t}, err
}

func (p *blasProduct) sample(runs int) (time.Duration, error) { return timed(runs, p.once), nil }

// blas is OpenBLAS's product of a workload, which may be a part of it.
func (b *built) blas(lib *openblas, threads int) (contestant, error) {
	lib.SetThreads(int32(threads))
	m, n, k := b.gemm[0], b.gemm[1], b.gemm[2]
	if len(b.in[0]) != 4*m*k || len(b.in[1]) != 4*k*n {
		return nil, fmt.Errorf("the arguments are not %d×%d and %d×%d", m, k, k, n)
	}
	return &blasProduct{lib: lib, m: m, n: n, k: k, a: b.in[0], b: b.in[1], c: make([]byte, 4*m*n), complete: b.exact}, nil
}
