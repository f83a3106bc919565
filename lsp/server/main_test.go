package server

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"dmir/lsp/worker"
)

// TestMain makes the test binary its own worker process, a sound one or one
// that misbehaves.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "worker" {
		os.Exit(misbehave(os.Args[2]))
	}
	// Else each worker built with the race detector stays for a second when it ends.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func workerCommand(behaviour string) []string { return []string{os.Args[0], "worker", behaviour} }

func misbehave(how string) int {
	progress := `{"progress":{"done":1,"total":2,"line":2}}`
	switch how {
	case "sound":
		if err := worker.Main(context.Background(), os.Stdin, os.Stdout); err != nil {
			return 1
		}
	case "crash":
		fmt.Println(progress)
		panic("out of luck")
	case "leave":
		return 0
	case "hang":
		fmt.Println(progress)
		time.Sleep(time.Hour)
	case "flood":
		for {
			fmt.Println(strings.Repeat(progress+"\n", 1000))
		}
	case "long line":
		for {
			fmt.Print(strings.Repeat("x", 1<<16))
		}
	case "noise":
		fmt.Println("no JSON at all")
		time.Sleep(time.Hour)
	case "linger":
		fmt.Println(`{"result":{"ok":true,"device":"reference","elapsed_ns":5,"results":[],"ops":[]}}`)
		time.Sleep(time.Hour)
	default:
		return misbehaveBadly(how)
	}
	return 0
}
