package work

import (
	"context"
	"sync"
	"testing"
)

func TestCounts(t *testing.T) {
	var none *Counts
	none.Add("visited", 1)
	if none.Take() != nil || From(context.Background()) != nil {
		t.Error("without Counts something is counted")
	}
	c := &Counts{}
	ctx := With(context.Background(), c)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				From(ctx).Add("visited", 2)
			}
		})
	}
	all.Wait()
	c.Add("priced", 3)
	if got := String(c.Take()); got != "priced 3 visited 1600" {
		t.Errorf("counted %s", got)
	}
	if got := String(c.Take()); got != "" {
		t.Errorf("after Take: %s", got)
	}
}
