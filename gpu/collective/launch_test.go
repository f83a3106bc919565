package collective

import (
	"errors"
	"strings"
	"testing"
)

func TestLaunched(t *testing.T) {
	for _, c := range []struct {
		name, env string
		want      Launch
		ok        bool
		problem   string
	}{
		{"nothing", "PATH=/bin", Launch{}, false, ""},
		{
			"Open MPI", "OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_LOCAL_RANK=1 PMIX_RANK=3",
			Launch{By: "mpirun of Open MPI", Rank: 3, Size: 8, LocalRank: 1, engine: openMPI},
			true, "",
		},
		{"MPICH", "PMI_RANK=2 PMI_SIZE=4 MPI_LOCALRANKID=0", Launch{By: "mpirun of MPICH", Rank: 2, Size: 4, engine: mpich}, true, ""},
		{"MPICH without a local rank", "PMI_RANK=2 PMI_SIZE=4", Launch{By: "mpirun of MPICH", Rank: 2, Size: 4, LocalRank: 2, engine: mpich}, true, ""},
		{
			"Open MPI in a job of Slurm", "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=1 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_NTASKS=1",
			Launch{By: "mpirun of Open MPI", Rank: 1, Size: 2, LocalRank: 1, engine: openMPI},
			true, "",
		},
		{"srun with PMI 2", "PMI_RANK=1 PMI_SIZE=2 SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_LOCALID=0", Launch{By: "srun", Rank: 1, Size: 2, engine: mpich}, true, ""},
		{"srun with PMIx", "PMIX_RANK=1 SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_LOCALID=1", Launch{By: "srun", Rank: 1, Size: 2, LocalRank: 1, engine: openMPI}, true, ""},
		{"a step of fewer tasks", "PMIX_RANK=1 SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=8 SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=1", Launch{By: "srun", Rank: 1, Size: 2, LocalRank: 1, engine: openMPI}, true, ""},
		{"srun alone", "SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_LOCALID=1", Launch{By: "srun", Rank: 1, Size: 2, LocalRank: 1}, true, ""},
		{"a batch script", "SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_LOCALID=0", Launch{}, false, ""},
		{"torchrun", "RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 MASTER_ADDR=localhost MASTER_PORT=29500", Launch{By: "torchrun", Rank: 1, Size: 2, LocalRank: 1}, true, ""},
		{"a variable of something else", "RANK=1 WORLD_SIZE=2", Launch{}, false, ""},
		{"no number", "PMI_RANK=two PMI_SIZE=4", Launch{By: "mpirun of MPICH", Size: 1, engine: mpich}, true, `mpirun of MPICH has set PMI_RANK="two", which is no number from 0 to 3`},
		{"beyond the end", "PMI_RANK=4 PMI_SIZE=4", Launch{By: "mpirun of MPICH", Size: 1, engine: mpich}, true, `PMI_RANK="4", which is no number from 0 to 3`},
		{"no ranks", "PMI_RANK=0 PMI_SIZE=0", Launch{By: "mpirun of MPICH", Size: 1, engine: mpich}, true, `PMI_SIZE="0"`},
	} {
		l, ok := launched(func(name string) (string, bool) {
			for _, v := range strings.Fields(c.env) {
				if key, value, _ := strings.Cut(v, "="); key == name {
					return value, true
				}
			}
			return "", false
		})
		err := l.Err
		l.Err = nil
		if l != c.want || ok != c.ok {
			t.Errorf("%s: %+v, %v, want %+v, %v", c.name, l, ok, c.want, c.ok)
		}
		if (err == nil) != (c.problem == "") || err != nil && !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%s: %v, want %q", c.name, err, c.problem)
		}
	}
}

// Launchers that offer no MPI: one rank runs, several get what to do.
func TestOpenWithoutMPI(t *testing.T) {
	c, err := Open(t.Context(), Launch{By: "torchrun", Size: 1}, "program", 0)
	if err != nil || c.Size() != 1 {
		t.Fatal(c, err)
	}
	if err := errors.Join(runCases(t.Context(), c, elems, blocks), c.Close()); err != nil {
		t.Error(err)
	}
	for _, test := range []struct{ by, want string }{
		{"torchrun", "torchrun gives its 4 ranks no MPI to meet in: start them with mpirun -n 4 in place of torchrun"},
		{"srun", "srun gives its 4 ranks no MPI to meet in: start them with srun --mpi=pmix (Open MPI) or srun --mpi=pmi2 (MPICH)"},
	} {
		if _, err := Open(t.Context(), Launch{By: test.by, Size: 4}, "program", 0); err == nil || err.Error() != test.want {
			t.Errorf("%v, want %s", err, test.want)
		}
	}
	bad := errors.New("bad variables")
	if _, err := Open(t.Context(), Launch{Err: bad, Size: 1}, "program", 0); err != bad {
		t.Error(err)
	}
}

// Ranks with another identity than most are named, on every rank.
func TestAgree(t *testing.T) {
	for _, c := range []struct {
		ranks []string
		want  string
	}{
		{[]string{"a", "a", "a"}, ""},
		{[]string{"a"}, ""},
		{[]string{"b", "a", "a"}, "rank 0 runs another program, or another version of it, than the other ranks"},
		{[]string{"a", "b", "a", "c"}, "ranks 1, 3 run another program, or another version of it, than the other ranks"},
		{[]string{"a", "b"}, "rank 1 runs another program, or another version of it, than the other ranks"},
	} {
		for rank, err := range onLocal(len(c.ranks), func(comm Comm) error { return agree(t.Context(), comm, c.ranks[comm.Rank()], false) }) {
			if (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
				t.Errorf("%v: rank %d: %v, want %q", c.ranks, rank, err, c.want)
			}
			if ended := (*Ended)(nil); err != nil && errors.As(err, &ended) != (rank != 0) {
				t.Errorf("%v: rank %d: one rank reports, the first", c.ranks, rank)
			}
		}
	}
}
