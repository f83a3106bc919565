//go:build !linux

package main

import "time"

// memory is not available on this platform.
type memory struct {
	Now  float64 `json:"rss_mb"`
	Peak float64 `json:"peak_rss_mb"`
}

func (c *client) memory() memory { return memory{} }

// settle waits for a fixed time.
func (c *client) settle() { time.Sleep(3 * time.Second) }

func (c *client) busy() float64 { return 0 }
