package schedule_test

import (
	"testing"

	"dmir/compile/pass"
	"dmir/compile/pass/passtest"
	"dmir/compile/schedule"
)

func both(string) []pass.Pass { return []pass.Pass{schedule.Order(), schedule.Plan()} }

func TestGolden(t *testing.T) { passtest.Golden(t, "testdata", both) }
