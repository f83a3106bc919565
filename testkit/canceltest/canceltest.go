// Package canceltest has a context for tests of how soon long work ends.
package canceltest

import "context"

// Context is a context that ends when it has been asked Left times whether it has;
// After is how often it was asked since.
type Context struct {
	context.Context
	Left, After int
}

func (c *Context) Err() error {
	if c.Left--; c.Left >= 0 {
		return nil
	}
	c.After++
	return context.Canceled
}
