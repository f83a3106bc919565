package server

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"dmir/lsp/job"
	"dmir/lsp/worker"
)

// misbehaveBadly are the rarer ways in which a worker goes wrong.
func misbehaveBadly(how string) int {
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return 1
	}
	megabyte := strings.Repeat(strings.Repeat("complaint ", 100)+"\n", 1000)
	switch how {
	case "complain and work":
		for range 64 {
			fmt.Fprint(os.Stderr, megabyte)
		}
		if err := worker.Main(context.Background(), os.Stdin, os.Stdout); err != nil {
			return 1
		}
	case "complain for ever":
		for {
			fmt.Fprint(os.Stderr, megabyte)
		}
	case "complain and die":
		fmt.Fprint(os.Stderr, megabyte, "\n\x1b[31mno \xff\xfe luck\x00\n")
		return 3
	case "binary":
		_, _ = os.Stdout.Write(bytes.Repeat([]byte{0xff, 0, '\n', 0x1b}, 1<<18))
	case "half a result":
		fmt.Print(`{"result":{"ok":true,"devi`)
	case "two results":
		fmt.Println(`{"result":{"ok":true,"device":"first","elapsed_ns":5,"results":[],"ops":[]}}`)
		fmt.Println(`{"result":{"ok":false,"device":"second","message":"late","results":[],"ops":[]}}`)
	case "wrong types":
		fmt.Println(`{"result":{"ok":"yes","elapsed_ns":"soon","results":7}}`)
	case "strange numbers":
		fmt.Println(`{"progress":{"done":-3,"total":0,"line":-99,"note":"` + strings.Repeat("é", 100_000) + `"}}`)
		fmt.Println(`{"result":{"ok":true,"device":"reference","elapsed_ns":-1,"results":[],"ops":[{"line":-5,"ns":-7},{"line":99999999,"ns":1}]}}`)
	case "killed":
		_ = self.Kill()
		time.Sleep(time.Hour)
	case "killed at work":
		fmt.Println(`{"progress":{"done":1,"total":2,"line":2}}`)
		_ = self.Kill()
		time.Sleep(time.Hour)
	case "deaf":
		_ = os.Stdin.Close()
		_ = os.Stdout.Close()
		_ = os.Stderr.Close()
		time.Sleep(time.Hour)
	default:
		return misbehaveOnDevice(how)
	}
	return 0
}

// Whatever a worker does, the run has an answer, which describes what happened in a
// line, and the server goes on as before: it answers, and runs the next worker.
func TestBadWorkers(t *testing.T) {
	for name, c := range map[string]struct {
		ok   bool
		want string
	}{
		"complain and work": {ok: true},
		"complain for ever": {want: "was stopped after"},
		"complain and die":  {want: "the worker process died"},
		"binary":            {want: "invalid message"},
		"half a result":     {want: "without a result"},
		"two results":       {ok: true},
		"wrong types":       {want: "invalid message"},
		"strange numbers":   {ok: true},
		"killed":            {want: "the worker process died"},
		"killed at work":    {want: "the worker process died"},
		"deaf":              {want: "was stopped after"},
		"/no/such/program":  {want: "cannot start the worker"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := Options{Worker: workerCommand(name), RunTimeout: patient}
			switch {
			case strings.HasPrefix(name, "/"):
				opts.Worker = []string{name}
			case strings.Contains(c.want, "stopped"):
				opts.RunTimeout = time.Second
			}
			e := connect(t, opts, withText)
			e.initialize("", "")
			e.open(program)
			for range 2 {
				var res job.RunResult
				e.must("workspace/executeCommand", runParams(`,"workDoneToken":"t"`), &res)
				if res.OK != c.ok || !strings.Contains(res.Message, c.want) || len(res.Message) > 4000 {
					t.Errorf("answer ok %v, %.300q, want ok %v and %q", res.OK, res.Message, c.ok, c.want)
				}
				if got := e.text(); got != program {
					t.Errorf("text %q", got)
				}
				_ = e.hints(0, 99)
			}
		})
	}
}
