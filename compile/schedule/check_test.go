package schedule_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"dmir/compile/pass"
	"dmir/compile/pass/passtest"
	"dmir/compile/schedule"
	"dmir/dialect/ir"
	"dmir/dialect/op"
	"dmir/dialect/types"
	"dmir/syntax/diag"
)

// The text of two chains on two streams, planned by hand.
const byHand = `func.func @f(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> attributes {dm.arg_offsets = [0, 256], dm.workspace = 1536} {
  %k = dm.constant dense<2.0> {dm.offsets = [512]} : tensor<64xf32>
  %a = dm.mul %x, %k {dm.offsets = [768], dm.stream = 0} : tensor<64xf32>
  %b = dm.exp %y {dm.offsets = [1024], dm.stream = 1} : tensor<64xf32>
  %c = dm.tanh %b {dm.offsets = [1280], dm.stream = 1} : tensor<64xf32>
  %d = dm.add %a, %c {dm.offsets = [1024], dm.stream = 0, dm.waits = [2]} : tensor<64xf32>
  return %d : tensor<64xf32>
}
`

// Errors in a schedule written by hand are reported, each by its code.
func TestFaults(t *testing.T) {
	cases := []struct{ name, old, now, want string }{
		{"as it is", "", "", ""},
		{"one stream needs no waits", "dm.stream = 1", "dm.stream = 0", "DM843 %d, step 3, waits for step 2, which runs on the same stream"},
		{"no wait", ", dm.waits = [2]", "", "DM844 %d on stream 0 reads %c, which step 2 makes on stream 1, and does not wait for it"},
		{"a wait for the wrong step", "[2]", "[1]", "DM844 %d on stream 0 reads %c, which step 2 makes on stream 1, and does not wait for it"},
		{"a wait for itself", "dm.waits = [2]", "dm.waits = [2, 3]", "DM843 %d, step 3, waits for step 3, which does not come before it"},
		{"a wait for no step", "dm.waits = [2]", "dm.waits = [-1]", "DM843 %d, step 3, waits for step -1, but there are 4 steps"},
		{"no list", "dm.waits = [2]", "dm.waits = 2", "DM842 dm.waits of %d is 2, not a list of steps"},
		{"a stream below 0", "dm.stream = 1", "dm.stream = -1", "DM842 dm.stream of %b is -1; streams are numbered from 0 to 1023"},
		{"a stream that is a word", "dm.stream = 1", `dm.stream = "copy"`, `DM842 dm.stream of %b is "copy", not a number`},
		{"no offsets", "dm.offsets = [768], ", "", "DM842 %a has no dm.offsets"},
		{"an offset too many", "[768]", "[768, 0]", "DM842 dm.offsets of %a is [768, 0], not a list of 1 offset"},
		{"no offsets of the arguments", "dm.arg_offsets = [0, 256], ", "", "DM842 @f has no dm.arg_offsets"},
		{"no workspace", ", dm.workspace = 1536", "", "DM842 @f has no dm.workspace"},
		{"a workspace below 0", "1536", "-8", "DM842 dm.workspace of @f is -8 bytes"},
		{"a workspace too small", "1536", "1500", "DM846 %c takes bytes 1280 to 1536 of a workspace of 1500"},
		{"below the start", "[768]", "[-256]", "DM846 %a takes bytes -256 to 0 of a workspace of 1536"},
		{"out of step", "[1280]", "[1272]", "DM845 %c lies at offset 1272, which is not a multiple of 256"},
		{"over an argument", "[768]", "[0]", "DM847 %a shares bytes 0 to 256 with %x, which may still be needed when it is written"},
		{"over a constant", "[768]", "[512]", "DM847 %a shares bytes 512 to 768 with %k, which may still be needed when it is written"},
		{"over what the other stream still reads", "[768]", "[1024]", "DM847 %b shares bytes 1024 to 1280 with %a, which may still be needed when it is written"},
		{"over its own operand", "[1280]", "[1024]", "DM847 %c shares bytes 1024 to 1280 with %b, which may still be needed when it is written"},
		{"two arguments in one place", "[0, 256]", "[0, 0]", "DM847 %y shares bytes 0 to 256 with %x, which may still be needed when it is written"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			text := byHand
			if c.old != "" {
				if text = strings.Replace(byHand, c.old, c.now, -1); text == byHand {
					t.Fatalf("%q is not in the text", c.old)
				}
			}
			got := ""
			var ps schedule.Problems
			if err := schedule.Check(passtest.Unit(t, text, "", nil).Func); errors.As(err, &ps) {
				got = ps[0].Code + " " + ps[0].Message
				if ps[0].Span.Len() == 0 || ps[0].Help == "" || ps[0].Name == "" {
					t.Errorf("%+v lacks something", ps[0])
				}
			} else if err != nil {
				t.Fatal(err)
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// machine runs the steps of a schedule on streams that go on as chance has it,
// and follows which value every byte holds, in pieces of Align.
type machine struct {
	s       *schedule.Schedule
	bytes   []int // the buffer that each piece of the workspace holds
	buffers map[*ir.Value]int
	scratch map[int]int // of a step: the buffer
	next    []int       // of each stream: index into its steps
	running []int       // of each stream: step, or -1
	ended   []bool
	queues  [][]int
}

func newMachine(s *schedule.Schedule) *machine {
	m := &machine{s: s, buffers: map[*ir.Value]int{}, scratch: map[int]int{}, ended: make([]bool, len(s.Steps))}
	m.bytes = make([]int, s.Workspace/schedule.Align+1)
	for i := range m.bytes {
		m.bytes[i] = -1
	}
	for i, b := range s.Buffers {
		if b.Value == nil {
			m.scratch[b.First] = i
			continue
		}
		m.buffers[b.Value] = i
		for _, v := range b.Views {
			m.buffers[v] = i
		}
		if b.First < 0 {
			m.fill(i)
		}
	}
	for range s.Streams {
		m.queues = append(m.queues, nil)
		m.running = append(m.running, -1)
	}
	m.next = make([]int, s.Streams)
	for i, st := range s.Steps {
		m.queues[st.Stream] = append(m.queues[st.Stream], i)
	}
	return m
}

func (m *machine) pieces(i int) []int {
	b := m.s.Buffers[i]
	if b.Bytes == 0 || b.Offset < 0 {
		return nil
	}
	return m.bytes[b.Offset/schedule.Align : (b.Offset+b.Bytes+schedule.Align-1)/schedule.Align]
}

func (m *machine) fill(i int) {
	p := m.pieces(i)
	for k := range p {
		p[k] = i
	}
}

func (m *machine) holds(i int) bool {
	return !slices.ContainsFunc(m.pieces(i), func(x int) bool { return x != i })
}

// begin writes the first byte of what a step makes, end the last: in between
// others may run. Both need all that the step reads, but for what it may write over.
func (m *machine) reads(k int, begun bool) bool {
	st := m.s.Steps[k]
	good := true
	ir.Walk([]*ir.Op{st.Op}, func(o *ir.Op) bool {
		for _, v := range o.Operands {
			i, ok := m.buffers[v]
			if !ok {
				continue
			}
			over := begun && slices.ContainsFunc(st.Over, func(w *ir.Value) bool { return w != nil && m.buffers[w] == i })
			good = good && (over || m.holds(i))
		}
		return true
	})
	for _, v := range st.Op.Results {
		good = good && (!begun || m.holds(m.buffers[v]))
	}
	if i, ok := m.scratch[k]; ok && begun {
		good = good && m.holds(i)
	}
	return good
}

// run reports whether every step read what it should and all results are there
// at the end; the order of what streams do comes from r.
func (m *machine) run(r *rand.Rand) bool {
	for {
		var can []int
		for s, q := range m.queues {
			switch {
			case m.running[s] >= 0:
				can = append(can, s)
			case m.next[s] < len(q) && !slices.ContainsFunc(m.s.Steps[q[m.next[s]]].Waits, func(j int) bool { return !m.ended[j] }):
				can = append(can, s)
			}
		}
		if len(can) == 0 {
			break
		}
		s := can[r.IntN(len(can))]
		if k := m.running[s]; k >= 0 {
			if !m.reads(k, true) {
				return false
			}
			m.running[s], m.ended[k] = -1, true
			continue
		}
		k := m.queues[s][m.next[s]]
		m.next[s]++
		if !m.reads(k, false) {
			return false
		}
		for _, v := range m.s.Steps[k].Op.Results {
			m.fill(m.buffers[v])
		}
		if i, ok := m.scratch[k]; ok {
			m.fill(i)
		}
		m.running[s] = k
	}
	for i, b := range m.s.Buffers {
		if (b.First < 0 || b.Last == len(m.s.Steps)) && !m.holds(i) {
			return false
		}
	}
	return true
}

// Check agrees with what a machine does: of schedules that people changed at
// random, those that pass run right however the streams go, and of those that
// do not, nearly all go wrong in one of a few hundred runs; on one stream all do.
func TestCheckAgainstTheMachine(t *testing.T) {
	good, bad, missed := 0, 0, 0
	for seed := range uint64(120) {
		r := rand.New(rand.NewPCG(seed, 31))
		attrs := ""
		if seed%2 == 0 {
			attrs = " attributes {dm.in_place}"
		}
		u := passtest.Unit(t, randomText(seed, 4+r.IntN(10), attrs), "f", nil)
		if err := pass.Run(u, both(""), nil); err != nil {
			t.Fatal(err)
		}
		for range 12 {
			undo := plant(r, u.Func)
			err := schedule.Check(u.Func)
			var ps schedule.Problems
			errors.As(err, &ps)
			if outside := slices.ContainsFunc(ps, func(d diag.Diagnostic) bool { return d.Code != "DM844" && d.Code != "DM847" }); !outside {
				s, readErr := schedule.Read(u.Body())
				if readErr != nil {
					t.Fatal(readErr)
				}
				wrong := false
				for range 300 {
					if wrong = !newMachine(s).run(r); wrong || s.Streams == 1 {
						break
					}
				}
				switch {
				case err == nil && wrong:
					t.Fatalf("seed %d: passes, but goes wrong\n%s", seed, passtest.Text(t, u))
				case err == nil:
					good++
				case wrong:
					bad++
				case s.Streams == 1:
					t.Fatalf("seed %d: %v, but nothing goes wrong\n%s", seed, err, passtest.Text(t, u))
				default:
					missed++
				}
			}
			undo()
		}
	}
	t.Logf("%d good, %d bad, %d bad ones that no run showed", good, bad, missed)
	if good < 100 || bad < 200 || missed > bad/20 {
		t.Errorf("%d good, %d bad, %d bad ones that no run showed", good, bad, missed)
	}
}

// plant changes a planned function as a careless person would, and gives what
// takes the change back.
func plant(r *rand.Rand, fn *ir.Func) (undo func()) {
	var steps []*ir.Op
	for _, o := range fn.Body.Ops {
		if o.Attr(schedule.StreamAttr) != nil {
			steps = append(steps, o)
		}
	}
	a, b := steps[r.IntN(len(steps))], steps[r.IntN(len(steps))]
	before := map[*ir.Op][]types.Named{a: slices.Clone(a.Attrs), b: slices.Clone(b.Attrs)}
	undo = func() {
		for o, attrs := range before {
			o.Attrs = attrs
		}
	}
	switch r.IntN(5) {
	case 0: // swapped offsets
		if len(a.Results) == len(b.Results) {
			x, y := a.Attr(schedule.OffsetsAttr), b.Attr(schedule.OffsetsAttr)
			a.SetAttr(schedule.OffsetsAttr, y)
			b.SetAttr(schedule.OffsetsAttr, x)
		}
	case 1: // one over the other
		at := slices.Clone(a.Ints(schedule.OffsetsAttr))
		at[r.IntN(len(at))] = b.Ints(schedule.OffsetsAttr)[0]
		list := make(types.Array, len(at))
		for i, n := range at {
			list[i] = types.Int{V: n}
		}
		a.SetAttr(schedule.OffsetsAttr, list)
	case 2: // no waits
		for _, o := range steps {
			if o.Attr(schedule.WaitsAttr) != nil {
				if before[o] == nil {
					before[o] = slices.Clone(o.Attrs)
				}
				if r.IntN(2) == 0 {
					o.RemoveAttr(schedule.WaitsAttr)
				}
			}
		}
	case 3: // another stream, with no thought of waits
		a.SetAttr(schedule.StreamAttr, types.Int{V: r.Int64N(3)})
	case 4: // nothing
	}
	return undo
}

// The attributes of a schedule are no misspelt ones of any op.
func TestEveryOpTakesTheAttributes(t *testing.T) {
	for _, d := range op.All() {
		var names []string
		for _, a := range d.Attrs {
			names = append(names, a.Name)
		}
		for _, n := range []string{schedule.StreamAttr, schedule.WaitsAttr, schedule.OffsetsAttr, schedule.ScratchAttr, schedule.ScratchOffsetAttr} {
			if s := diag.Suggest(n, names); s != "" {
				t.Errorf("dm.%s: %s would be read as %s", d.Name, n, s)
			}
		}
	}
}
