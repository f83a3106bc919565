package sandbox

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"unsafe"

	"github.com/elastic/go-seccomp-bpf"
	"golang.org/x/sys/unix"
)

// version is that of the kernel's Landlock; 0: it has none.
var version = sync.OnceValue(func() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
})

// Kernel is what this system enforces a policy with; empty for nothing.
func Kernel() string {
	switch {
	case version() == 0:
		return ""
	case seccomp.Supported():
		return fmt.Sprintf("Landlock %d, seccomp", version())
	}
	return fmt.Sprintf("Landlock %d", version())
}

// start restricts a thread, starts the process from it, which inherits the restrictions, and lets the
// thread end: restrictions cannot be taken back. The Go runtime clones no other thread from a locked one.
func start(cmd *exec.Cmd, p Policy) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		err := restrict(p)
		if err == nil {
			err = cmd.Start()
		}
		result <- err
	}()
	return <-result
}

const (
	readFile = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_EXECUTE
	read     = readFile | unix.LANDLOCK_ACCESS_FS_READ_DIR
	// change does not include devices, which no process makes.
	change = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SYM |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO
	devices = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
)

// restrict takes from this thread all that p does not name.
func restrict(p Policy) error {
	changes := uint64(change)
	files := uint64(readFile | unix.LANDLOCK_ACCESS_FS_WRITE_FILE) // the rights that a file can have
	if version() >= 2 {
		changes |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if version() >= 3 {
		changes |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
		files |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	rules := unix.LandlockRulesetAttr{Handled_access_fs: read | changes | devices}
	size := unsafe.Sizeof(rules.Handled_access_fs) // what the kernel's version knows
	if version() >= 4 {
		size += unsafe.Sizeof(rules.Handled_access_net)
	}
	if version() >= 6 {
		size += unsafe.Sizeof(rules.Scoped)
	}
	if !p.Network {
		rules.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
		rules.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&rules)), size, 0)
	if errno != 0 {
		return fmt.Errorf("the sandbox: %w", errno)
	}
	defer unix.Close(int(fd))
	for _, set := range []struct {
		paths []string
		all   uint64
	}{{p.Read, read}, {p.Write, read | changes}} {
		for _, path := range set.paths {
			if err := allow(int(fd), path, set.all, files); err != nil {
				return fmt.Errorf("the sandbox: %s: %w", path, err)
			}
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("the sandbox: %w", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return fmt.Errorf("the sandbox: %w", errno)
	}
	return filter(p)
}

// allow adds a rule for what is at path.
func allow(rules int, path string, all, files uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EACCES) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil {
		return err
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: all, Parent_fd: int32(fd)}
	if info.Mode&unix.S_IFMT != unix.S_IFDIR {
		rule.Allowed_access &= files
	}
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(rules), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// filter takes system calls away from this thread that reach around Landlock, where the kernel can.
func filter(p Policy) error {
	if !seccomp.Supported() {
		return nil
	}
	denied := []string{
		"ptrace", "process_vm_readv", "process_vm_writev", "bpf", "perf_event_open", "userfaultfd",
		"mount", "umount2", "pivot_root", "setns", "unshare", "chroot", "kexec_load", "init_module", "finit_module", "delete_module",
		"add_key", "request_key", "keyctl",
	}
	if !p.Network {
		denied = append(denied, "socket", "socketpair", "io_uring_setup")
	}
	return seccomp.LoadFilter(seccomp.Filter{NoNewPrivs: true, Policy: seccomp.Policy{
		DefaultAction: seccomp.ActionAllow,
		Syscalls:      []seccomp.SyscallGroup{{Names: denied, Action: seccomp.ActionErrno}},
	}})
}

// Libraries are the folders of shared libraries that the program at path may load: the system's, those that
// its file names, and those of LD_LIBRARY_PATH.
func Libraries(path string) []string {
	out := []string{"/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/lib", "/usr/local/lib64", "/nix/store", "/gnu/store", "/etc/ld.so.cache", "/etc/ld.so.preload"}
	out = append(out, filepath.SplitList(os.Getenv("LD_LIBRARY_PATH"))...)
	f, err := elf.Open(path)
	if err != nil {
		return out
	}
	defer f.Close()
	for _, tag := range []elf.DynTag{elf.DT_RPATH, elf.DT_RUNPATH} {
		lists, _ := f.DynString(tag)
		for _, list := range lists {
			for _, dir := range filepath.SplitList(list) {
				out = append(out, strings.NewReplacer("$ORIGIN", filepath.Dir(path), "${ORIGIN}", filepath.Dir(path)).Replace(dir))
			}
		}
	}
	return out
}
