package parse

import (
	"runtime"
	"testing"

	"dmir/syntax/ast"
)

// A panic on another core can be caught by who asked for the work.
func TestPoolPanics(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	ops := make([]*ast.Op, 1<<13)
	defer func() {
		if r := recover(); r != "out of luck" {
			t.Errorf("caught %v", r)
		}
	}()
	p := pool{work: func(*detailer, *ast.Op) { panic("out of luck") }}
	for _, op := range ops {
		p.add(op)
	}
	p.wait()
}
