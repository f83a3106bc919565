// Package host lets package calibrate measure as package native runs programs: with its
// compiler, for its level of processors, on as many threads.
package host

import (
	"context"

	"dmir/gpu/calibrate"
	"dmir/gpu/native"
)

func init() { calibrate.Register(find) }

func find(ctx context.Context) (calibrate.Host, error) {
	h := calibrate.Host{Title: "CPU", Threads: native.Threads()}
	for _, k := range native.Kinds() {
		ds, err := k.Find()
		if err != nil {
			return h, err
		}
		h.Title = ds[0].Title()
	}
	clang, err := native.Find(ctx)
	if err != nil {
		return h, err
	}
	h.Compile = clang.CompileC
	return h, nil
}
