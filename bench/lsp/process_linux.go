package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// memory returns the memory of a process in MB of 10^6 bytes.
type memory struct {
	Now  float64 `json:"rss_mb"`
	Peak float64 `json:"peak_rss_mb"`
}

func (c *client) memory() memory {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	field := func(name string) float64 {
		_, rest, _ := strings.Cut(string(text), "\n"+name+":")
		rest, _, _ = strings.Cut(rest, " kB")
		kib, _ := strconv.ParseFloat(strings.TrimSpace(rest), 64)
		return kib * 1024 / 1e6
	}
	return memory{field("VmRSS"), field("VmHWM")}
}

// settle waits until the process has been idle for half a second.
func (c *client) settle() {
	begin, idle, last := time.Now(), 0, c.ticks()
	for idle < 5 && time.Since(begin) < patience {
		time.Sleep(100 * time.Millisecond)
		now := c.ticks()
		if idle++; now > last {
			idle = 0
		}
		last = now
	}
}

// ticks returns the processor time of the process in hundredths of a second.
func (c *client) ticks() int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.cmd.Process.Pid))
	_, rest, _ := strings.Cut(string(text), ") ")
	f := append(strings.Fields(rest), make([]string, 13)...)
	user, _ := strconv.Atoi(f[11])
	system, _ := strconv.Atoi(f[12])
	return user + system
}

// busy returns the processor time of the process in ms: of all its
// threads, with nanosecond resolution if the kernel provides it.
func (c *client) busy() float64 {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", c.cmd.Process.Pid))
	ns := 0.0
	for _, task := range tasks {
		text, _ := os.ReadFile(task)
		first, _, _ := strings.Cut(string(text), " ")
		n, _ := strconv.ParseFloat(first, 64)
		ns += n
	}
	return ns / 1e6
}
