package main

import (
	"strings"
	"time"
)

type timed struct{}

func (r *report) times(dmir, python, here, layers string, limit time.Duration) error { return nil }
func (r *report) timesTable(b *strings.Builder)                                     {}
