package server

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"

	"dmir/analysis/plan"
	"dmir/analysis/report"
	"dmir/lsp/connection"
	"dmir/lsp/job"
	"dmir/lsp/session"
)

// trained is a training step that a few devices divide among them.
const trained = `func.func @step(%x: tensor<512x256xf32>, %t: tensor<512x256xf32>, %w: tensor<256x1024xf32>, %v: tensor<1024x256xf32>)
    -> (tensor<f32>, tensor<256x1024xf32> {dm.state = "w"}, tensor<1024x256xf32> {dm.state = "v"}) {
  %loss, %dw, %dv = dm.grad @loss %x, %t, %w, %v, wrt = [2, 3]
      : (tensor<512x256xf32>, tensor<512x256xf32>, tensor<256x1024xf32>, tensor<1024x256xf32>) -> (tensor<f32>, tensor<256x1024xf32>, tensor<1024x256xf32>)
  %w1 = dm.sgd %w, %dw, lr = 0.1 : (tensor<256x1024xf32>, tensor<256x1024xf32>) -> tensor<256x1024xf32>
  %v1 = dm.sgd %v, %dv, lr = 0.1 : (tensor<1024x256xf32>, tensor<1024x256xf32>) -> tensor<1024x256xf32>
  return %loss, %w1, %v1 : tensor<f32>, tensor<256x1024xf32>, tensor<1024x256xf32>
}

func.func private @loss(%x: tensor<512x256xf32>, %t: tensor<512x256xf32>, %w: tensor<256x1024xf32>, %v: tensor<1024x256xf32>) -> tensor<f32> {
  %h = dm.matmul %x, %w : (tensor<512x256xf32>, tensor<256x1024xf32>) -> tensor<512x1024xf32>
  %a = dm.relu %h : tensor<512x1024xf32>
  %y = dm.matmul %a, %v : (tensor<512x1024xf32>, tensor<1024x256xf32>) -> tensor<512x256xf32>
  %d = dm.sub %y, %t : tensor<512x256xf32>
  %q = dm.mul %d, %d : tensor<512x256xf32>
  %loss = dm.reduce add %q : (tensor<512x256xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
`

const planning = `{"workspace":{"applyEdit":true,"textDocumentContent":{},"workspaceEdit":{"documentChanges":true},"codeLens":{"refreshSupport":true}},"window":{"showDocument":{"support":true},"workDoneProgress":true}}`

func (e *editor) plan(more string) job.PlanResult {
	e.t.Helper()
	var res job.PlanResult
	e.command("dmir.plan", fmt.Sprintf(`{"uri":%q,"func":"@step"%s}`, testURI, more), &res)
	return res
}

// The plans of a step are shown beside the text and written into it by one edit, unless the text is
// another one by then.
func TestPlan(t *testing.T) {
	e := connect(t, Options{Worker: workerCommand("sound")}, nil)
	e.initialize(planning, `{"trusted":false,"lint":{"enabled":false}}`)
	e.open(trained)
	if titles, _ := e.lenses(testURI); !slices.Contains(titles, "Plan for 8 × HGX H200") || slices.Contains(titles, "Apply the plan") {
		t.Errorf("lenses %q", titles)
	}
	table := session.ViewAddress(session.PlansView, testURI, "step")
	if got := e.content(table); !strings.HasPrefix(got, "// There is no plan of @step") {
		t.Errorf("without a plan:\n%s", got)
	}
	res := e.plan(`,"devices":4,"target":"dgx-h100"`)
	if !res.OK || res.Devices != 4 || res.Target != "dgx-h100" || res.Version != 1 || len(res.Plans.Plans) == 0 || !strings.HasPrefix(res.Message, "@step on 4 × DGX H100: ") {
		t.Fatalf("%+v", res)
	}
	e.wait("$/progress", func(p json.RawMessage) bool {
		return strings.Contains(string(p), `"title":"Planning @step for 4 × DGX H100"`)
	})
	e.wait("window/showMessage", func(p json.RawMessage) bool { return strings.Contains(string(p), "a step") })
	best := session.ViewAddress(session.PlannedPrefix+"1", testURI, "step")
	if asked := e.asked("window/showDocument", 1); !strings.Contains(asked, best) {
		t.Errorf("asked to show %s", asked)
	}
	text := e.content(best)
	if !strings.Contains(text, "dm.mesh @plan {") || !strings.Contains(text, "func.func private @loss(") {
		t.Errorf("the program with the plan:\n%s", text)
	}
	if got := e.content(table); !strings.HasPrefix(got, "@step on 4 × DGX H100 of 80.0 GB") {
		t.Errorf("plans:\n%s", got)
	}
	if titles, _ := e.lenses(testURI); !slices.Contains(titles, "Apply the plan") {
		t.Errorf("lenses %q", titles)
	}

	panel := func() (version int32, data report.Data) {
		t.Helper()
		var got struct {
			Version int32
			Data    report.Data
		}
		raw := new(jsonrpc2.RawMessage)
		e.must("dmir/panelData", fmt.Sprintf(`{"uri":%q,"kind":"plans","function":"step"}`, testURI), raw)
		if err := json.Unmarshal(*raw, &got); err != nil {
			t.Fatal(err)
		}
		return got.Version, got.Data
	}
	if version, data := panel(); version != 1 || data.Stale != "" || data.Plans == nil || len(data.Plans.Results) != 1 || len(data.Plans.Results[0].Plans) != len(res.Plans.Plans) {
		t.Errorf("panel of version %d: %+v", version, data)
	}

	var applied struct {
		Title string
		Plan  int
	}
	args := fmt.Sprintf(`{"uri":%q,"func":"step"}`, testURI)
	e.command("dmir.applyPlan", args, &applied)
	var params protocol.ApplyWorkspaceEditParams
	if err := protocol.Unmarshal([]byte(e.asked("workspace/applyEdit", 1)), &params); err != nil {
		t.Fatal(err)
	}
	if got := applyEdit(t, trained, &params.Edit, 1); got != text || applied.Plan != 1 || !strings.HasPrefix(applied.Title, "Plan: ") {
		t.Errorf("%+v makes\n%s", applied, got)
	}
	e.change(2, edit(0, 0, 0, 0, "// edited\n"))
	if version, data := panel(); version != 1 || data.Stale == "" {
		t.Errorf("after an edit the panel of version %d is %q", version, data.Stale)
	}
	for args, want := range map[string]string{
		args: "has changed", fmt.Sprintf(`{"uri":%q,"func":"loss"}`, testURI): "none was made for @loss", `{"uri":"file:///none.dmir","func":"step"}`: "none was made",
	} {
		err := e.call("workspace/executeCommand", fmt.Sprintf(`{"command":"dmir.applyPlan","arguments":[%s]}`, args), nil)
		if codeOf(err) != connection.RequestFailed || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
	if titles, _ := e.lenses(testURI); slices.Contains(titles, "Apply the plan") {
		t.Errorf("lenses of another text %q", titles)
	}
}

// The lens is for what the program, the settings and dmir.toml name, in this order, and only above
// training steps.
func TestPlanLens(t *testing.T) {
	files := onDisk(t, map[string]string{"f.dmir": trained})
	for _, c := range []struct{ options, text, want string }{
		{``, trained, "Plan for 8 × HGX H200"},
		{`{"target":"a100-80"}`, trained, "Plan for 8 × DGX A100"},
		{`{"plan":{"devices":64,"target":"dgx-h100"}}`, trained, "Plan for 64 × DGX H100"},
		{`{"plan.devices":64}`, "dm.mesh @pod {data = 2, tensor = 2}\n" + trained, "Plan for 4 × HGX H200"},
		{`{"target":"rtx4090"}`, trained, "Plan for 8 × GeForce RTX 4090"},
		{``, ffn, ""},
	} {
		e := connect(t, Options{}, nil)
		e.initialize("", c.options)
		e.openAs(files["f.dmir"], c.text)
		titles, _ := e.lenses(files["f.dmir"])
		got := ""
		for _, s := range titles {
			if strings.HasPrefix(s, "Plan for") {
				got += s
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.options, got, c.want)
		}
	}
	e := connect(t, Options{}, nil)
	files = onDisk(t, map[string]string{"f.dmir": trained, "dmir.toml": "[plan]\ndevices = 32\ntarget = \"dgx-a100\"\n"})
	e.initialize("", "")
	e.openAs(files["f.dmir"], trained)
	if titles, _ := e.lenses(files["f.dmir"]); !slices.Contains(titles, "Plan for 32 × DGX A100") {
		t.Errorf("with dmir.toml: %q", titles)
	}
}

// Why there is no plan is the answer, and a diagnostic at its place until the next edit.
func TestNoPlan(t *testing.T) {
	for _, c := range []struct{ name, worker, text, args, code, message string }{
		{"no cluster", "sound", trained, `,"target":"h200"`, plan.CodeLinks, "a cluster of them is hgx-h200"},
		{"unknown machine", "sound", trained, `,"target":"h2"`, "", `there is no machine "h2"`},
		{"no such function", "sound", strings.Replace(trained, "@step", "@train", 1), "", "", "no function @step"},
		{"a crash", "crash", trained, "", "DM720", "@step was not planned"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := connect(t, Options{Worker: workerCommand(c.worker)}, nil)
			e.initialize(planning, `{"lint":{"enabled":false}}`)
			e.open(c.text)
			res := e.plan(c.args)
			if res.OK || res.Code != c.code || !strings.Contains(res.Message, c.message) || res.Plans != nil {
				t.Errorf("%+v", res)
			}
			if c.code != "" {
				e.diagnostics(1, func(ds []protocol.Diagnostic) bool {
					return len(ds) == 1 && ds[0].Code == protocol.String(c.code) && ds[0].Range.Start.Line == 0
				})
			}
			if n := e.count("window/showDocument"); n != 0 {
				t.Errorf("%d documents are shown", n)
			}
		})
	}
}

// Cancelling ends the search; the answer is the protocol's.
func TestPlanCancel(t *testing.T) {
	e := connect(t, Options{Worker: workerCommand("hang")}, nil)
	e.initialize("", "")
	e.open(trained)
	done := make(chan error, 1)
	go func() {
		params := fmt.Sprintf(`{"command":"dmir.plan","arguments":[{"uri":%q,"func":"step"}],"workDoneToken":"mine"}`, testURI)
		_, err := e.conn.Call(context.Background(), "workspace/executeCommand", jsonrpc2.RawMessage(params), nil)
		done <- err
	}()
	e.wait("$/progress", func(p json.RawMessage) bool { return strings.Contains(string(p), "line 2") })
	e.notify("window/workDoneProgress/cancel", `{"token":"mine"}`)
	if err := <-done; codeOf(err) != protocol.CodeRequestCancelled {
		t.Errorf("got %v", err)
	}
}
