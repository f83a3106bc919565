//go:build unix

package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"runtime/pprof"
	"syscall"
	"time"

	"dmir/lsp/server"
)

// profile is a CPU profile of the edits alone. The server under measurement is
// then this program, which serves as dmir does, and is told by signals when to
// write. A nil profile does nothing.
type profile struct{}

func (p *profile) begin(c *client) error { return p.signal(c, syscall.SIGUSR1) }
func (p *profile) end(c *client) error   { return p.signal(c, syscall.SIGUSR2) }

func (p *profile) signal(c *client, s os.Signal) error {
	if p == nil {
		return nil
	}
	defer time.Sleep(100 * time.Millisecond) // until it has arrived
	return c.cmd.Process.Signal(s)
}

// serveProfiled is the server's process.
func serveProfiled(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	ch := make(chan os.Signal, 2)
	signal.Notify(ch, syscall.SIGUSR1, syscall.SIGUSR2)
	go func() {
		for s := range ch {
			if s == syscall.SIGUSR1 {
				_ = pprof.StartCPUProfile(f)
			} else {
				pprof.StopCPUProfile()
			}
		}
	}()
	err = server.Serve(context.Background(), os.Stdin, os.Stdout, server.Options{Version: "profiled"})
	return errors.Join(err, f.Close())
}
