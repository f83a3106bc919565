package main

import "testing"

func TestPEP440(t *testing.T) {
	for semantic, want := range map[string]string{
		"0.2.0": "0.2.0", "0.2.0-rc.1": "0.2.0rc1", "0.2.0-beta": "0.2.0b0", "1.0.0-alpha.12": "1.0.0a12", "0.0.0-dev": "0.0.0.dev0",
	} {
		if got := pep440(semantic); got != want {
			t.Errorf("pep440(%s) = %s, want %s", semantic, got, want)
		}
	}
}
