// Package work counts what algorithms visit, so that tests hold costs to bounds
// that do not depend on a clock or a machine.
//
// A nil *Counts counts nothing: code under measure calls Add without asking
// whether anyone counts.
package work

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Counts are sums by the name of what is counted, such as "verify" for the ops
// that verification has visited. They are safe for concurrent use.
type Counts struct {
	mu   sync.Mutex
	sums map[string]int
}

// Add counts n more visits under name.
func (c *Counts) Add(name string, n int) {
	if c == nil || n == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sums == nil {
		c.sums = map[string]int{}
	}
	c.sums[name] += n
}

// Take returns the sums and begins again from zero.
func (c *Counts) Take() map[string]int {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	sums := c.sums
	c.sums = nil
	return sums
}

// String lists sums in the order of their names.
func String(sums map[string]int) string {
	var b strings.Builder
	for i, name := range slices.Sorted(maps.Keys(sums)) {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%s %d", name, sums[name])
	}
	return b.String()
}

type key struct{}

// With is ctx with c, for code that is given a context.
func With(ctx context.Context, c *Counts) context.Context { return context.WithValue(ctx, key{}, c) }

// From is the Counts of ctx, nil where nothing is counted.
func From(ctx context.Context) *Counts {
	c, _ := ctx.Value(key{}).(*Counts)
	return c
}
