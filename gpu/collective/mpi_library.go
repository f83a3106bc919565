package collective

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unsafe"

	"dmir/gpu/dylib"
)

// mpiHandle is a communicator, type, operation, request or group: an address in Open MPI, a
// number of 32 bits in MPICH and the libraries with its binary interface.
type mpiHandle uintptr

// mpiAPI is the functions of MPI 3.1 that are called. They return an error code. Buffers are
// uintptr, since constants can stand in their place; their memory is pinned.
type mpiAPI struct {
	InitThread    func(argc, argv uintptr, required int32, provided *int32) int32                                              `c:"MPI_Init_thread"`
	Finalize      func() int32                                                                                                 `c:"MPI_Finalize"`
	Abort         func(comm mpiHandle, code int32) int32                                                                       `c:"MPI_Abort"`
	ErrorString   func(code int32, text *byte, n *int32) int32                                                                 `c:"MPI_Error_string"`
	OnError       func(comm, handler mpiHandle) int32                                                                          `c:"MPI_Comm_set_errhandler"`
	CommSize      func(comm mpiHandle, n *int32) int32                                                                         `c:"MPI_Comm_size"`
	CommRank      func(comm mpiHandle, n *int32) int32                                                                         `c:"MPI_Comm_rank"`
	CommDup       func(comm mpiHandle, to *mpiHandle) int32                                                                    `c:"MPI_Comm_dup"`
	CommGroup     func(comm mpiHandle, group *mpiHandle) int32                                                                 `c:"MPI_Comm_group"`
	CommMake      func(comm, group mpiHandle, tag int32, to *mpiHandle) int32                                                  `c:"MPI_Comm_create_group"`
	GroupOf       func(group mpiHandle, n int32, ranks *int32, to *mpiHandle) int32                                            `c:"MPI_Group_incl"`
	GroupFree     func(group *mpiHandle) int32                                                                                 `c:"MPI_Group_free"`
	AllReduce     func(from, to uintptr, n int32, elem, op, comm mpiHandle) int32                                              `c:"MPI_Allreduce"`
	IReduceBlocks func(from, to uintptr, n int32, elem, op, comm mpiHandle, r *mpiHandle) int32                                `c:"MPI_Ireduce_scatter_block"`
	IAllGather    func(from uintptr, n int32, elem mpiHandle, to uintptr, m int32, elemTo, comm mpiHandle, r *mpiHandle) int32 `c:"MPI_Iallgather"`
	IAllToAll     func(from uintptr, n int32, elem mpiHandle, to uintptr, m int32, elemTo, comm mpiHandle, r *mpiHandle) int32 `c:"MPI_Ialltoall"`
	IBarrier      func(comm mpiHandle, r *mpiHandle) int32                                                                     `c:"MPI_Ibarrier"`
	IBroadcast    func(buf uintptr, n int32, elem mpiHandle, root int32, comm mpiHandle, r *mpiHandle) int32                   `c:"MPI_Ibcast"`
	ISend         func(buf uintptr, n int32, elem mpiHandle, to, tag int32, comm mpiHandle, r *mpiHandle) int32                `c:"MPI_Isend"`
	IReceive      func(buf uintptr, n int32, elem mpiHandle, from, tag int32, comm mpiHandle, r *mpiHandle) int32              `c:"MPI_Irecv"`
	Cancel        func(r *mpiHandle) int32                                                                                     `c:"MPI_Cancel"`
	Wait          func(r *mpiHandle, status uintptr) int32                                                                     `c:"MPI_Wait"`

	// Of which a small collective consists: of the methods Test and IAllReduce.
	TestFunc       dylib.Func `c:"MPI_Test"`
	IAllReduceFunc dylib.Func `c:"MPI_Iallreduce"`
}

// mpiLibrary is an open library with its constants.
type mpiLibrary struct {
	mpiAPI
	world, returnErrors mpiHandle
	bytes               mpiHandle
	types               map[string]mpiHandle // by MLIR's names
	ops                 map[Reduction]mpiHandle
	inPlace, noStatus   uintptr
	anySource           int32
	done                int32 // an argument of MPI_Test
}

// Test reports whether the call r has ended, and MPI's error code.
func (m *mpiLibrary) Test(r *mpiHandle) (done bool, code int32) {
	code = int32(m.TestFunc.Call(uintptr(unsafe.Pointer(r)), uintptr(unsafe.Pointer(&m.done)), m.noStatus))
	return m.done != 0, code
}

// IAllReduce starts MPI_Iallreduce on n elements.
func (m *mpiLibrary) IAllReduce(from, to uintptr, n int, elem, op, comm mpiHandle, r *mpiHandle) int32 {
	return int32(m.IAllReduceFunc.Call(from, to, uintptr(n), uintptr(elem), uintptr(op), uintptr(comm), uintptr(unsafe.Pointer(r))))
}

// The variables of Open MPI whose addresses are its constants.
var (
	openMPITypes = map[string]string{
		"f32": "ompi_mpi_float", "f64": "ompi_mpi_double",
		"i8": "ompi_mpi_int8_t", "i16": "ompi_mpi_int16_t", "i32": "ompi_mpi_int32_t", "i64": "ompi_mpi_int64_t",
		"ui8": "ompi_mpi_uint8_t", "ui16": "ompi_mpi_uint16_t", "ui32": "ompi_mpi_uint32_t", "ui64": "ompi_mpi_uint64_t",
	}
	openMPIOps = map[Reduction]string{
		Add: "ompi_mpi_op_sum", Mul: "ompi_mpi_op_prod", Max: "ompi_mpi_op_max", Min: "ompi_mpi_op_min",
		And: "ompi_mpi_op_band", Or: "ompi_mpi_op_bor",
	}
)

// The numbers of MPICH's binary interface.
var (
	mpichTypes = map[string]mpiHandle{
		"f32": 0x4c00040a, "f64": 0x4c00080b,
		"i8": 0x4c000137, "i16": 0x4c000238, "i32": 0x4c000439, "i64": 0x4c00083a,
		"ui8": 0x4c00013b, "ui16": 0x4c00023c, "ui32": 0x4c00043d, "ui64": 0x4c00083e,
	}
	mpichOps = map[Reduction]mpiHandle{
		Max: 0x58000001, Min: 0x58000002, Add: 0x58000003, Mul: 0x58000004, And: 0x58000006, Or: 0x58000008,
	}
)

// mpiNames are the names of a library for the system's linker.
func mpiNames(e engine) []string {
	mac := runtime.GOOS == "darwin"
	switch {
	case e == openMPI && mac:
		return []string{"libmpi.40.dylib", "/opt/homebrew/lib/libmpi.40.dylib", "/usr/local/lib/libmpi.40.dylib"}
	case e == openMPI:
		return []string{"libmpi.so.40"}
	case mac:
		return []string{"libmpi.12.dylib", "/opt/homebrew/lib/libmpi.12.dylib", "/usr/local/lib/libmpi.12.dylib"}
	}
	names := []string{"libmpich.so.12", "libmpi.so.12"}
	if root := os.Getenv("I_MPI_ROOT"); root != "" {
		names = []string{"libmpi.so.12", filepath.Join(root, "lib/libmpi.so.12"), filepath.Join(root, "lib/release/libmpi.so.12"), "libmpich.so.12"}
	}
	return names
}

// openLibrary opens the library of the MPI that has launched this process.
func openLibrary(l Launch) (*mpiLibrary, error) {
	if runtime.GOOS == "windows" {
		return nil, fmt.Errorf("ranks in several processes need MPI on Linux or macOS; in one process they run on Windows too")
	}
	names := []string{l.Library}
	if l.Library == "" {
		names = mpiNames(l.engine)
	}
	var missing error
	for _, name := range names {
		lib, err := dylib.OpenGlobal(name) // Open MPI's components refer to its symbols
		if err == nil {
			return bindLibrary(l, lib)
		}
		if missing == nil {
			missing = err
		}
	}
	install := "Open MPI (Debian's libopenmpi3, Homebrew's open-mpi)"
	if l.engine == mpich {
		install = "MPICH (Debian's libmpich12, Homebrew's mpich)"
	}
	return nil, fmt.Errorf("the library of %s is missing, install %s: %w", l.By, install, missing)
}

func bindLibrary(l Launch, lib *dylib.Lib) (*mpiLibrary, error) {
	_, err := lib.Address("ompi_mpi_comm_world")
	found := mpich
	if err == nil {
		found = openMPI
	}
	if found != l.engine {
		return nil, fmt.Errorf("%s started this process, and %s is the library of another MPI", l.By, lib.Path)
	}
	m := &mpiLibrary{}
	if err := lib.BindAll(&m.mpiAPI); err != nil {
		return nil, fmt.Errorf("MPI 3.1 or newer is needed: %w", err)
	}
	if found == openMPI {
		return m, m.openMPI(lib)
	}
	m.world, m.returnErrors, m.bytes = 0x44000000, 0x54000001, 0x4c00010d
	m.types, m.ops, m.anySource = mpichTypes, mpichOps, -2
	m.inPlace, m.noStatus = ^uintptr(0), 1
	return m, nil
}

func (m *mpiLibrary) openMPI(lib *dylib.Lib) error {
	var failed error
	at := func(name string) mpiHandle {
		addr, err := lib.Address(name)
		if err != nil && failed == nil {
			failed = err
		}
		return mpiHandle(addr)
	}
	m.world, m.returnErrors, m.bytes = at("ompi_mpi_comm_world"), at("ompi_mpi_errors_return"), at("ompi_mpi_byte")
	m.types, m.ops, m.anySource = map[string]mpiHandle{}, map[Reduction]mpiHandle{}, -1
	m.inPlace, m.noStatus = 1, 0
	for elem, name := range openMPITypes {
		m.types[elem] = at(name)
	}
	for how, name := range openMPIOps {
		m.ops[how] = at(name)
	}
	return failed
}

// check is the error that a code stands for.
func (m *mpiLibrary) check(call string, code int32) error {
	if code == 0 {
		return nil
	}
	var text [1024]byte // more than any library's MPI_MAX_ERROR_STRING
	var n int32
	if m.ErrorString(code, &text[0], &n) != 0 || n <= 0 || int(n) > len(text) {
		return fmt.Errorf("%s: error %d", call, code)
	}
	return fmt.Errorf("%s: %s", call, strings.Join(strings.Fields(string(text[:n])), " "))
}
