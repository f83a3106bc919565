package collective

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"dmir/testkit/need"
)

// The test binary is the program of the ranks as well: mpirun starts it with the name of a
// scenario in this variable.
const scenarioVar = "DMIR_TEST_SCENARIO"

func TestMain(m *testing.M) {
	if name := os.Getenv(scenarioVar); name != "" {
		os.Exit(runRank(scenarios[name]))
	}
	os.Exit(m.Run())
}

// runRank runs a scenario as dmir runs a program: the rank that has the reason of a failure
// reports it, then all end.
func runRank(scenario func(ctx context.Context, l Launch, join func(ctx context.Context) (Comm, error)) error) int {
	l, ok := Launched()
	if !ok {
		fmt.Println("not launched")
		return 1
	}
	pid := filepath.Join(os.Getenv("DMIR_TEST_DIR"), fmt.Sprint("pid.", l.Rank))
	if err := os.WriteFile(pid, []byte(strconv.Itoa(os.Getpid())), 0o644); err != nil {
		fmt.Println(err)
		return 1
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // for a broken test
	defer cancel()
	l.Library = os.Getenv("DMIR_TEST_LIBRARY")
	identity := "program"
	if os.Getenv("DMIR_TEST_OTHER") == fmt.Sprint(l.Rank) {
		identity = "another program"
	}
	var comm Comm
	join := func(ctx context.Context) (c Comm, err error) {
		comm, err = Open(ctx, l, identity, 0)
		return comm, err
	}
	err := scenario(ctx, l, join)
	if err == nil {
		fmt.Printf("rank %d of %d is done\n", l.Rank, l.Size)
		return 0
	}
	var ended *Ended
	if !errors.As(err, &ended) {
		report(l.Rank, err)
	}
	if comm != nil {
		comm.Abort(err)
	}
	Hold(err)
	return 1
}

// report reports the failure of a run: in a file, since a launcher may drop what a rank
// prints before it ends.
func report(rank int, err error) {
	path := filepath.Join(os.Getenv("DMIR_TEST_DIR"), fmt.Sprint("report.", rank))
	if err := os.WriteFile(path, []byte(err.Error()), 0o644); err != nil {
		fmt.Println(err)
	}
}

// launches are the two MPIs.
var launches = []struct{ mpirun, install string }{
	{"mpirun.openmpi", "apt-get install openmpi-bin"},
	{"mpirun.mpich", "apt-get install mpich"},
}

// mpirun runs a scenario on n ranks, and returns what they print, what they report and how
// it ended. No process is left.
func mpirun(t *testing.T, launch, scenario string, n int, env ...string) (out string, reports []string, err error) {
	t.Helper()
	dir := t.TempDir()
	args := []string{"-n", strconv.Itoa(n), os.Args[0]}
	if launch == "mpirun.openmpi" {
		args = append([]string{"--oversubscribe"}, args...)
	}
	cmd := exec.Command(launch, args...)
	cmd.Env = append(os.Environ(), scenarioVar+"="+scenario, "DMIR_TEST_DIR="+dir,
		"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	cmd.Env = append(cmd.Env, env...)
	text, err := cmd.CombinedOutput()
	pids, globErr := filepath.Glob(filepath.Join(dir, "pid.*"))
	if globErr != nil || len(pids) != n {
		t.Errorf("%d of %d processes have started: %v", len(pids), n, globErr)
	}
	for _, path := range pids {
		awaitEnd(t, read(t, path))
	}
	files, globErr := filepath.Glob(filepath.Join(dir, "report.*"))
	if globErr != nil {
		t.Error(globErr)
	}
	for _, path := range files {
		reports = append(reports, read(t, path))
	}
	return string(text), reports, err
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// awaitEnd waits for the end of a process that mpirun has ended.
func awaitEnd(t *testing.T, pid string) {
	t.Helper()
	for range 600 {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("process %s is left", pid)
}

// onBoth runs f with both MPIs and each of the numbers of ranks.
func onBoth(t *testing.T, ranks []int, f func(t *testing.T, launch string, n int)) {
	for _, l := range launches {
		t.Run(l.mpirun, func(t *testing.T) {
			need.Tool(t, l.mpirun, l.install)
			for _, n := range ranks {
				t.Run(fmt.Sprint(n), func(t *testing.T) { f(t, l.mpirun, n) })
			}
		})
	}
}

// Of the two kinds of calls, with each MPI and number of ranks, a run makes one in turn.
func TestMPIRuns(t *testing.T) {
	need.Long(t)
	at := 0
	onBoth(t, []int{1, 2, 4}, func(t *testing.T, launch string, n int) {
		at++
		for i, name := range []string{"cases", "chunks", "latency"} {
			if name == "latency" && n != 2 || name != "latency" && !need.Turn(t, at+i, 2) {
				continue // of latency: ranks that share a core spend their time on waiting
			}
			out, got, err := mpirun(t, launch, name, n)
			if err != nil || strings.Count(out, "is done") != n || len(got) > 0 {
				t.Errorf("%s: %v\n%s", name, err, out)
			}
		}
	})
}

// A run that cannot go on ends with one report, which names the rank, on all ranks.
func TestMPIFailures(t *testing.T) {
	need.Long(t)
	onBoth(t, []int{4}, func(t *testing.T, launch string, n int) {
		last := n - 1
		for _, c := range []struct {
			name, scenario, env string
			want                string // the report; "" for the launcher's own
		}{
			{"a rank hangs", "hang", "", fmt.Sprintf("rank %d has ended, hangs or takes too long: it did not reach all_reduce", last)},
			{"a rank hangs before a group is made", "hang in group", "", fmt.Sprintf("rank %d has ended, hangs or takes too long: it did not reach all_gather", last)},
			{"a rank gives up", "give up", "", fmt.Sprintf("rank %d: the input is missing", last)},
			{"a rank gives up while it waits", "give up waiting", "", fmt.Sprintf("rank %d: the disk is full", last)},
			{"a rank is interrupted", "interrupt", "", fmt.Sprintf("rank %d: barrier: context canceled", last)},
			{"other calls", "mismatch", "", fmt.Sprintf("ranks do not make the same call: rank 0 calls barrier (number 3 of its group), rank %d calls collective_permute of 64 bytes to rank 0 from rank 0", last)},
			{"a message that is not sent", "no message", "", fmt.Sprintf("ranks do not make the same call: rank 0 calls recv of 8 bytes from rank %d with tag 1", last)},
			{"another program", "identity", fmt.Sprint("DMIR_TEST_OTHER=", last), fmt.Sprintf("rank %d runs another program, or another version of it, than the other ranks", last)},
			{"a rank exits", "exit", "", ""},
			{"a rank exits as if it had succeeded", "exit 0", "", ""},
			{"a rank is killed", "kill", "", ""},
		} {
			t.Run(c.name, func(t *testing.T) {
				out, got, err := mpirun(t, launch, c.scenario, n, c.env)
				// MPICH's mpirun ends the other ranks if one exits early, and takes over its status.
				if strings.Contains(out, "is done") || err == nil && c.scenario != "exit 0" {
					t.Errorf("the run succeeded\n%s", out)
				}
				if c.want == "" {
					return
				}
				if len(got) != 1 || !strings.Contains(got[0], c.want) {
					t.Errorf("reports %q, want one with %q\n%s", got, c.want, out)
				}
			})
		}
	})
}

// Ranks that have started MPI end if another one does not. Each may report that, since they
// cannot talk.
func TestMPIDoesNotStart(t *testing.T) {
	onBoth(t, []int{2, 4}, func(t *testing.T, launch string, n int) {
		out, got, err := mpirun(t, launch, "no start", n)
		if err == nil || len(got) == 0 || !strings.Contains(got[0], fmt.Sprintf("MPI did not start within the time given, since some of the %d ranks did not", n)) {
			t.Errorf("%v: reports %q\n%s", err, got, out)
		}
	})
}

// Each rank reports a missing library, since they cannot talk.
func TestMPILibraryIsMissing(t *testing.T) {
	onBoth(t, []int{2}, func(t *testing.T, launch string, n int) {
		out, got, err := mpirun(t, launch, "identity", n, "DMIR_TEST_LIBRARY=/nowhere/libmpi.so")
		if err == nil || len(got) == 0 || !strings.Contains(got[0], "is missing, install") || !strings.Contains(got[0], "Debian's lib") {
			t.Errorf("%v: reports %q\n%s", err, got, out)
		}
	})
}

// A library of the other MPI is an error, not a crash.
func TestMPIOfAnotherKind(t *testing.T) {
	other := map[string]string{"mpirun.openmpi": "libmpich.so.12", "mpirun.mpich": "libmpi.so.40"}
	for _, l := range launches {
		need.Tool(t, l.mpirun, l.install)
	}
	onBoth(t, []int{2}, func(t *testing.T, launch string, n int) {
		out, got, err := mpirun(t, launch, "identity", n, "DMIR_TEST_LIBRARY="+other[launch])
		if err == nil || len(got) == 0 || !strings.Contains(got[0], other[launch]+" is the library of another MPI") {
			t.Errorf("%v: reports %q\n%s", err, got, out)
		}
	})
}
