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

// profile records a CPU profile of the edits alone. The measured server is
// then this program, which serves as dmir does; signals start and stop the
// profile. A nil profile does nothing.
type profile struct{}

func (p *profile) begin(c *client) error { return p.signal(c, syscall.SIGUSR1) }
func (p *profile) end(c *client) error   { return p.signal(c, syscall.SIGUSR2) }

func (p *profile) signal(c *client, s os.Signal) error {
	if p == nil {
		return nil
	}
	defer time.Sleep(100 * time.Millisecond) // until the signal has arrived
	return c.cmd.Process.Signal(s)
}

// serveProfiled runs the server with a profile.
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
