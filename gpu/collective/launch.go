package collective

import (
	"fmt"
	"os"
	"strconv"
)

// Launch is how this process was started as a rank of a run.
type Launch struct {
	By                    string // "mpirun of Open MPI", "srun", …
	Rank, Size, LocalRank int    // LocalRank counts the ranks on this machine
	Library               string // path of the engine's library; if empty, the system's linker finds it
	Err                   error  // what is wrong with the launcher's variables; Open returns it
	engine                engine
}

// engine is what connects the ranks.
type engine int

const (
	noEngine engine = iota
	openMPI
	mpich
)

// launcher is a program that starts ranks, by the variables that it sets.
type launcher struct {
	by                string
	rank, size, local string // names of variables
	also              string // a variable that must exist as well
	engine            engine
}

// launchers are in the order in which they are looked for: srun and torchrun may start
// mpirun, and srun offers the interface of either MPI.
var launchers = []launcher{
	{"mpirun of Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "", openMPI},
	{"srun", "PMI_RANK", "PMI_SIZE", "SLURM_LOCALID", "SLURM_STEP_ID", mpich},
	{"mpirun of MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "", mpich},
	{"srun", "PMIX_RANK", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_ID", openMPI},
	{"srun", "PMIX_RANK", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_STEP_ID", openMPI},
	// A batch script has srun's variables without being a step.
	{"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_ID", noEngine},
	{"srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_STEP_ID", noEngine},
	{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", noEngine},
}

// Launched is how mpirun, srun or torchrun has started this process; ok is false if none
// has.
func Launched() (l Launch, ok bool) { return launched(os.LookupEnv) }

func launched(env func(string) (string, bool)) (l Launch, ok bool) {
	has := func(name string) bool {
		_, ok := env(name)
		return ok || name == ""
	}
	for _, k := range launchers {
		if !has(k.rank) || !has(k.size) || !has(k.also) {
			continue
		}
		l = Launch{By: k.by, engine: k.engine}
		number := func(name string, least, below int) int {
			text, _ := env(name)
			n, err := strconv.Atoi(text)
			if (err != nil || n < least || n >= below) && l.Err == nil {
				l.Err = fmt.Errorf("%s has set %s=%q, which is no number from %d to %d", l.By, name, text, least, below-1)
			}
			return n
		}
		l.Size = number(k.size, 1, 1<<24)
		l.Rank = number(k.rank, 0, max(l.Size, 1))
		l.LocalRank = l.Rank // as on one machine
		if has(k.local) {
			l.LocalRank = number(k.local, 0, max(l.Size, 1))
		}
		if l.Err != nil {
			l.Rank, l.Size, l.LocalRank = 0, 1, 0
		}
		return l, true
	}
	return Launch{}, false
}
