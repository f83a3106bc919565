package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"dmir/bench/peer"
	"dmir/cli"
	_ "dmir/compile/target/all"
	"dmir/testkit/need"
)

// dmir runs a command of it and returns what it prints.
func dmir(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if status := cli.Main(args, strings.NewReader(""), &out, &errs); status != 0 {
		t.Fatalf("dmir %s: %d\n%s", strings.Join(args, " "), status, errs.String())
	}
	return out.String()
}

// kindNames are the keys of both.
func kindNames(a, b map[string]float64) map[string]float64 {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// A person's own step in JAX, jitted with the module that dmir plan --export writes, computes what it computes on one device, and XLA
// sends for it what the plan says: of each kind of collective within 5 %.
func TestExported(t *testing.T) {
	need.Long(t)
	python := need.Tool(t, "python3", "it runs JAX")
	if err := exec.Command(python, "-c", "import jax").Run(); err != nil {
		need.OK(t, fmt.Errorf("python3 has no JAX (pip install jax==0.10.2): %w", err))
	}
	cmd := exec.Command(python, filepath.Join("exported", "peer.py"), strconv.Itoa(devices))
	cmd.Stderr = os.Stderr
	var about struct{ JAX string }
	p, err := peer.Start(cmd, &about, errors.New("the peer ended"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	folder := t.TempDir()
	ask := func(q map[string]string, a any) {
		t.Helper()
		var raw json.RawMessage
		if err := p.Ask(q, &raw); err != nil {
			t.Fatal(err)
		}
		var failed struct{ Error string }
		if err := errors.Join(json.Unmarshal(raw, &failed), json.Unmarshal(raw, a)); err != nil || failed.Error != "" {
			t.Fatalf("%v %s", err, failed.Error)
		}
	}
	for _, model := range []struct {
		name  string
		plans []string
	}{
		{"mlp", []string{"--data 8 --states split", "--data 2 --tensor 4 --states whole", "--data 8 --states whole --microbatches 4"}},
		{"transformer", []string{"--data 2 --tensor 4 --states whole"}},
	} {
		var traced struct{ Program string }
		ask(map[string]string{"trace": model.name, "folder": folder}, &traced)
		for i, flags := range model.plans {
			t.Run(model.name+" "+flags, func(t *testing.T) {
				args := append([]string{"plan", "--devices", strconv.Itoa(devices), "--target", "cpu-100gbe"}, strings.Fields(flags)...)
				module := filepath.Join(folder, fmt.Sprintf("%s%d.py", model.name, i))
				dmir(t, slices.Concat(args, []string{"--export", "jax", "-o", module, traced.Program})...)
				var ran struct {
					Apart float64
					Sent  map[string]float64
					HLO   string
				}
				ask(map[string]string{"run": model.name, "plan": module}, &ran)
				if !(ran.Apart < 1e-3) {
					t.Errorf("results differ by %g from those of one device", ran.Apart)
				}
				all, err := collectives(ran.HLO, devices)
				if err != nil {
					t.Fatal(err)
				}
				got, most := map[string]float64{}, 0.0
				for _, c := range all {
					for _, c := range c.scattered() {
						got[c.kind] += float64(c.sent(devices)) / devices
					}
				}
				for _, bytes := range ran.Sent {
					most += bytes
				}
				for kind := range kindNames(got, ran.Sent) {
					if d := math.Abs(got[kind] - ran.Sent[kind]); d > 0.05*most || most == 0 {
						t.Errorf("%s: XLA sends %.0f bytes, and the plan says %.0f", kind, got[kind], ran.Sent[kind])
					}
				}
			})
		}
	}
}
