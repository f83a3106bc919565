package stages_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"dmir/analysis/pipelining"
	"dmir/compile/interp"
	"dmir/compile/pass/passtest"
	"dmir/compile/stages/stagestest"
	"dmir/compile/tensor"
	"dmir/dialect/ir"
	"dmir/dialect/op"
)

// event is a task, or what a device sends or receives in it.
type event struct {
	task    string
	kind    string // op.Send, op.Recv or ""
	channel int64
}

func (e event) String() string {
	if e.kind == "" {
		return e.task
	}
	return fmt.Sprintf("%s %s %d", e.task, strings.TrimPrefix(e.kind, op.Prefix), e.channel)
}

// add appends what o is, if it is news.
func add(list []event, o *ir.Op) []event {
	task := o.Str(op.TaskAttr)
	if n := len(list); task != "" && (n == 0 || list[n-1].task != task) {
		list = append(list, event{task: task})
	}
	if o.Name == op.Send || o.Name == op.Recv {
		list = append(list, event{task, o.Name, op.Int(o, "channel")})
	}
	return list
}

func tasks(list []event) (out []string) {
	for _, e := range list {
		if e.kind == "" {
			out = append(out, e.task)
		}
	}
	return out
}

var pipelines = []stagestest.Step{
	{Stages: 4, Micro: 8, Schedule: "gpipe", Mesh: "pipe = 4"},
	{Stages: 4, Micro: 8, Schedule: "1f1b", Mesh: "pipe = 4", Clip: true},
	{Stages: 4, Micro: 8, Schedule: "interleaved", Mesh: "pipe = 2"},
	{Stages: 4, Micro: 8, Schedule: "zb-h1", Mesh: "pipe = 4"},
	{Stages: 4, Micro: 8, Schedule: "zb-v", Mesh: "pipe = 2"},
	{Stages: 4, Micro: 4, Schedule: "1f1b", Mesh: "pipe = 4", Tied: true},
}

func orderOf(t *testing.T, s stagestest.Step) (pipelining.Shape, [][]pipelining.Task) {
	t.Helper()
	devices, err := strconv.Atoi(strings.TrimPrefix(s.Mesh, "pipe = "))
	if err != nil {
		t.Fatal(err)
	}
	sh := pipelining.Shape{Devices: devices, Chunks: s.Stages / devices, Micro: s.Micro}
	order, err := pipelining.Order(pipelining.Schedule(s.Schedule), sh)
	if err != nil {
		t.Fatal(err)
	}
	return sh, order
}

// What devices run, send and receive when, is in the order of the schedule, and the text has that order.
func TestDevicesFollowTheSchedule(t *testing.T) {
	for _, s := range pipelines {
		t.Run(fmt.Sprintf("%s, tied %v", s.Schedule, s.Tied), func(t *testing.T) {
			_, order := orderOf(t, s)
			p, u := split(t, s.Text())
			args, err := interp.Inputs(t.Context(), passtest.Unit(t, s.Text(), "f", nil).Func, nil, 7, nil)
			if err != nil {
				t.Fatal(err)
			}
			position := map[*ir.Block]int{}
			text := make([][]event, len(order))
			for d, f := range p.Functions() {
				position[f.Body] = d
				for _, o := range f.Body.Ops {
					text[d] = add(text[d], o)
				}
			}
			var mu sync.Mutex
			ran := make([][]event, len(order))
			team := p.Local()
			if err := team.Set(args); err != nil {
				t.Fatal(err)
			}
			_, err = team.Run(t.Context(), interp.Options{Results: func(o *ir.Op, _ []*tensor.Tensor) {
				mu.Lock()
				defer mu.Unlock()
				if d, ok := position[o.Parent]; ok {
					ran[d] = add(ran[d], o)
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			for d := range order {
				if !slices.Equal(ran[d], text[d]) {
					t.Errorf("device %d ran %v, and its text is %v", d, ran[d], text[d])
				}
				var want []string
				for _, k := range order[d] {
					want = append(want, k.String())
				}
				if !slices.Equal(tasks(ran[d]), want) {
					t.Errorf("device %d ran %v, want %v\n%s", d, tasks(ran[d]), want, passtest.Text(t, u))
				}
			}
		})
	}
}

// Played out with the time of each task and of each message, the functions of a pipeline take as long as the
// schedule of which they are made.
func TestFunctionsTakeAsLongAsTheSchedule(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, s := range pipelines[:5] {
		s.Clip = false // so that only neighbours send
		for round := range 10 {
			t.Run(fmt.Sprintf("%s/%d", s.Schedule, round), func(t *testing.T) {
				sh, order := orderOf(t, s)
				times := pipelining.Times{Transfer: make([]float64, s.Stages)}
				for range s.Stages {
					times.Forward = append(times.Forward, 1+rnd.Float64())
					times.Backward = append(times.Backward, 1+rnd.Float64())
					times.Weight = append(times.Weight, rnd.Float64())
				}
				if round >= 5 {
					for i := range times.Transfer {
						times.Transfer[i] = rnd.Float64() / 4
					}
				}
				plan, err := pipelining.Simulate(order, pipelining.Schedule(s.Schedule), sh, times, pipelining.Memory{})
				if err != nil {
					t.Fatal(err)
				}
				p, _ := split(t, s.Text())
				if got := played(t, p.Functions(), pipelining.Schedule(s.Schedule), times); math.Abs(got-plan.Total) > 1e-9 {
					t.Errorf("the functions take %v, the schedule %v", got, plan.Total)
				}
			})
		}
	}
}

// played is when the last device is done with its tasks. A device sends to another one message at a time.
func played(t *testing.T, fs []*ir.Func, s pipelining.Schedule, times pipelining.Times) (total float64) {
	t.Helper()
	lists := make([][]event, len(fs))
	for d, f := range fs {
		for _, o := range f.Body.Ops {
			lists[d] = add(lists[d], o)
		}
	}
	now := make([]float64, len(fs)) // when the device can go on
	next := make([]int, len(fs))
	arrives := map[int64]float64{}
	link := map[[2]int]float64{}
	to := map[int64]int{}
	for _, f := range fs {
		for _, o := range f.Body.Ops {
			if o.Name == op.Send {
				to[op.Int(o, "channel")] = int(op.Int(o, "to"))
			}
		}
	}
	took := func(task string) float64 {
		var k pipelining.Task
		var kind string
		if _, err := fmt.Sscanf(task, "%d%1s%d", &k.Stage, &kind, &k.Micro); err != nil {
			t.Fatal(task, err)
		}
		switch {
		case kind == "F":
			return times.Forward[k.Stage]
		case kind == "W":
			return times.Weight[k.Stage]
		case s.Split():
			return times.Backward[k.Stage]
		}
		return times.Backward[k.Stage] + times.Weight[k.Stage]
	}
	pending := make([]float64, len(fs)) // the time of the task that has begun to receive
	for moved := true; moved; {
		moved = false
		for d := range fs {
			for next[d] < len(lists[d]) {
				e := lists[d][next[d]]
				if e.kind == op.Recv {
					at, ok := arrives[e.channel]
					if !ok {
						break
					}
					now[d] = max(now[d], at)
				} else if e.kind == op.Send {
					now[d] += pending[d]
					pending[d] = 0
					if e.task != "" {
						var stage int
						var kind string
						fmt.Sscanf(e.task, "%d%1s", &stage, &kind)
						if kind != "F" {
							stage--
						}
						l := [2]int{d, to[e.channel]}
						start := max(now[d], link[l])
						link[l] = start + times.Transfer[stage]
						arrives[e.channel] = link[l]
					} else {
						arrives[e.channel] = now[d]
					}
				} else {
					now[d] += pending[d]
					pending[d] = took(e.task)
				}
				next[d]++
				moved = true
			}
		}
	}
	for d := range fs {
		if next[d] < len(lists[d]) {
			t.Fatalf("device %d waits at %v", d, lists[d][next[d]])
		}
		total = max(total, now[d]+pending[d])
	}
	return total
}
