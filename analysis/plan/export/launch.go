package export

import (
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"dmir/analysis/plan"
)

// nodes is how many machines have p's devices, and how many each of them has.
func (p *Portable) nodes() (n, each int) {
	each = max(min(p.Target.PerNode, p.Devices), 1)
	return (p.Devices + each - 1) / each, each
}

// launchNotes are what the files for launchers say.
func launchNotes(p *Portable) []string {
	notes := heading(p)
	if len(p.Writes) > 0 {
		notes = append(notes, "", "Write the program with this plan first:", "")
		for _, c := range p.Writes {
			notes = append(notes, "    "+comment(c))
		}
	}
	nodes, each := p.nodes()
	if nodes > 1 && p.Devices%each != 0 {
		notes = append(notes, "", fmt.Sprintf("Not expressed: %d devices do not fill machines of %d; the last one has fewer, and launchers may spread processes otherwise.", p.Devices, each))
	}
	return notes
}

// launched are the lines of a shell that find the program and the words of dmir run.
func launched(p *Portable) string {
	var b strings.Builder
	fmt.Fprintf(&b, "program=${PROGRAM:-%s} # .dmir, or what dmir compile -o FILE.dmx makes of it\n", quoted(p.Planned))
	b.WriteString("data=${DATA:-.} # NAME.npy of an argument, with a value for each step; those that are not there are random\n")
	b.WriteString("words=(run")
	if p.HasState() {
		b.WriteString(` --steps "${STEPS:-1000}" --checkpoint "${CHECKPOINT:-checkpoints}" --every "${EVERY:-100}" --resume --log "${LOG:-loss.csv}"`)
	}
	fmt.Fprintf(&b, " --func %s)\n", quoted(p.Function))
	var names []string
	for _, a := range p.Arguments {
		if a.Kind == plan.Samples || a.Kind == plan.Other {
			names = append(names, quoted(a.Name))
		}
	}
	if len(names) > 0 {
		fmt.Fprintf(&b, "for name in %s; do\n  if [ -e \"$data/$name.npy\" ]; then words+=(--input \"$name=$data/$name.npy\"); fi\ndone\n", strings.Join(names, " "))
	}
	return b.String()
}

// quoted is s in single quotes of a shell, whatever it has.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// writeSlurm writes a batch file of Slurm.
func writeSlurm(w io.Writer, p *Portable) error {
	nodes, each := p.nodes()
	var b strings.Builder
	b.WriteString("#!/usr/bin/env bash\n" + commented(launchNotes(p)))
	fmt.Fprintf(&b, "#SBATCH --job-name=%s\n#SBATCH --nodes=%d\n#SBATCH --ntasks=%d\n#SBATCH --ntasks-per-node=%d\n", label(p.Function), nodes, p.Devices, each)
	if !p.Target.CPU {
		// A process takes the GPU with its own number, of all that its machine has.
		fmt.Fprintf(&b, "#SBATCH --gpus-per-node=%d\n", each)
	}
	b.WriteString("#SBATCH --exclusive\n#SBATCH --requeue\n")
	b.WriteString("set -euo pipefail\n")
	fmt.Fprintf(&b, "devices=%d\n", p.Devices)
	b.WriteString(launched(p))
	b.WriteString(`if [ "${SLURM_NTASKS:-0}" != "$devices" ]; then
  echo "the plan is for $devices processes, and Slurm starts ${SLURM_NTASKS:-none}" >&2
  exit 2
fi
# Open MPI and MPICH take the machines from Slurm; processes fill one after the other, whose devices have the fastest links between them.
exec mpirun -n "$devices" "${DMIR:-dmir}" "${words[@]}" "$program"
`)
	_, err := io.WriteString(w, b.String())
	return err
}

// The parts of a JobSet that a plan needs, by their names in Kubernetes.
type (
	jobSet struct {
		APIVersion string     `yaml:"apiVersion"`
		Kind       string     `yaml:"kind"`
		Metadata   meta       `yaml:"metadata"`
		Spec       jobSetSpec `yaml:"spec"`
	}
	meta struct {
		Name string `yaml:"name"`
	}
	jobSetSpec struct {
		Network       *network       `yaml:"network,omitempty"`
		SuccessPolicy *successPolicy `yaml:"successPolicy,omitempty"`
		FailurePolicy failurePolicy  `yaml:"failurePolicy"`
		Jobs          []job          `yaml:"replicatedJobs"`
	}
	network struct {
		Hostnames bool `yaml:"enableDNSHostnames"`
	}
	successPolicy struct {
		Operator string   `yaml:"operator"`
		Jobs     []string `yaml:"targetReplicatedJobs"`
	}
	failurePolicy struct {
		Restarts int `yaml:"maxRestarts"`
	}
	job struct {
		Name     string      `yaml:"name"`
		Replicas int         `yaml:"replicas"`
		Template jobTemplate `yaml:"template"`
	}
	jobTemplate struct {
		Spec jobSpec `yaml:"spec"`
	}
	jobSpec struct {
		Parallelism  int         `yaml:"parallelism"`
		Completions  int         `yaml:"completions"`
		Mode         string      `yaml:"completionMode"`
		BackoffLimit int         `yaml:"backoffLimit"`
		Template     podTemplate `yaml:"template"`
	}
	podTemplate struct {
		Spec podSpec `yaml:"spec"`
	}
	podSpec struct {
		Restart    string      `yaml:"restartPolicy"`
		Containers []container `yaml:"containers"`
		Volumes    []volume    `yaml:"volumes"`
	}
	container struct {
		Name      string     `yaml:"name"`
		Image     string     `yaml:"image"`
		Directory string     `yaml:"workingDir"`
		Command   []string   `yaml:"command"`
		Resources *resources `yaml:"resources,omitempty"`
		Mounts    []mount    `yaml:"volumeMounts"`
	}
	resources struct {
		Limits map[string]int `yaml:"limits"`
	}
	mount struct {
		Name string `yaml:"name"`
		Path string `yaml:"mountPath"`
	}
	volume struct {
		Name  string    `yaml:"name"`
		Claim *claim    `yaml:"persistentVolumeClaim,omitempty"`
		Empty *emptyDir `yaml:"emptyDir,omitempty"`
	}
	claim struct {
		Name string `yaml:"claimName"`
	}
	emptyDir struct {
		Medium string `yaml:"medium"`
	}
)

// writeJobSet writes a JobSet of Kubernetes: the machines' pods, and where there are several one more that starts the processes.
func writeJobSet(w io.Writer, p *Portable) error {
	nodes, each := p.nodes()
	name := label(p.Function)
	pod := func(script string, gpus bool) podTemplate {
		c := container{
			Name: "dmir", Image: "dmir:latest", Directory: "/work", Command: []string{"bash", "-c", "set -euo pipefail\n" + script},
			Mounts: []mount{{"work", "/work"}, {"memory", "/dev/shm"}},
		}
		if gpus && !p.Target.CPU {
			c.Resources = &resources{map[string]int{"nvidia.com/gpu": each}}
		}
		return podTemplate{podSpec{Restart: "Never", Containers: []container{c}, Volumes: []volume{
			{Name: "work", Claim: &claim{"dmir-work"}},
			{Name: "memory", Empty: &emptyDir{"Memory"}},
		}}}
	}
	jobOf := func(name string, pods int, t podTemplate) job {
		return job{name, 1, jobTemplate{jobSpec{pods, pods, "Indexed", 0, t}}}
	}
	set := jobSet{APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Metadata: meta{name}}
	set.Spec.FailurePolicy.Restarts = 3
	run := launched(p) + fmt.Sprintf("exec mpirun --allow-run-as-root -n %d", p.Devices)
	const dmir = ` "${DMIR:-dmir}" "${words[@]}" "$program"` + "\n"
	notes := append(launchNotes(p), "", "Change what is yours: the image, with dmir, Open MPI and for several machines sshd in it; the claim of the volume with the program and its data.")
	if nodes == 1 {
		set.Spec.Jobs = []job{jobOf("machine", 1, pod(run+dmir, true))}
	} else {
		notes = append(notes, "The pods of the machines run sshd, whose keys the image or the volume has; the launcher starts the processes there, and when it ends, so does all.")
		set.Spec.Network = &network{true}
		set.Spec.SuccessPolicy = &successPolicy{"All", []string{"launcher"}}
		hosts := fmt.Sprintf(`hosts=$(mktemp)
left=%d
for i in $(seq 0 %d); do
  host=%s-machine-0-$i.%s
  until ssh -o BatchMode=yes -o StrictHostKeyChecking=accept-new "$host" true; do sleep 2; done
  slots=$((left < %d ? left : %d))
  left=$((left - slots))
  echo "$host slots=$slots" >>"$hosts"
done
`, p.Devices, nodes-1, name, name, each, each)
		set.Spec.Jobs = []job{
			jobOf("machine", nodes, pod("mkdir -p /run/sshd\nexec /usr/sbin/sshd -D -e\n", true)),
			jobOf("launcher", 1, pod(hosts+run+` --hostfile "$hosts"`+dmir, false)),
		}
	}
	if _, err := io.WriteString(w, commented(notes)); err != nil {
		return err
	}
	e := yaml.NewEncoder(w)
	e.SetIndent(2)
	if err := e.Encode(set); err != nil {
		return err
	}
	return e.Close()
}
