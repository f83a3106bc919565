package main

import (
	"strings"
	"testing"
	"time"
)

// TestReport reads the events of a run in which tests pass, fail, are skipped
// and hang, a package does not compile, and the process of another one dies.
func TestReport(t *testing.T) {
	var out strings.Builder
	r := newReport(&out)
	lines, tick := make(chan string), make(chan time.Time)
	go func() {
		defer close(lines)
		for line := range strings.Lines(`
{"Action":"start","Package":"m/good"}
{"Action":"run","Package":"m/good","Test":"TestA"}
{"Action":"output","Package":"m/good","Test":"TestA","Output":"noise\n"}
{"Action":"pass","Package":"m/good","Test":"TestA","Elapsed":0.1}
{"Action":"run","Package":"m/good","Test":"TestB"}
{"Action":"output","Package":"m/good","Test":"TestB","Output":"    b_test.go:7: mlir-opt is not installed\n"}
{"Action":"output","Package":"m/good","Test":"TestB","Output":"--- SKIP: TestB (0.00s)\n"}
{"Action":"skip","Package":"m/good","Test":"TestB","Elapsed":0}
{"Action":"pass","Package":"m/good","Elapsed":1.25}
{"Action":"run","Package":"m/bad","Test":"TestC"}
{"Action":"run","Package":"m/bad","Test":"TestC/inner"}
{"Action":"output","Package":"m/bad","Test":"TestC/inner","Output":"    c_test.go:3: got 1, want 2\n"}
{"Action":"fail","Package":"m/bad","Test":"TestC/inner","Elapsed":0}
{"Action":"fail","Package":"m/bad","Test":"TestC","Elapsed":0}
{"Action":"fail","Package":"m/bad","Elapsed":0.5}
{"Action":"run","Package":"m/dead","Test":"TestD"}
{"Action":"output","Package":"m/dead","Test":"TestD","Output":"panic: oh\n"}
{"Action":"fail","Package":"m/dead","Elapsed":0.5}
{"ImportPath":"m/broken [m/broken.test]","Action":"build-output","Output":"broken.go:1:1: no\n"}
{"ImportPath":"m/broken [m/broken.test]","Action":"build-fail"}
{"Action":"output","Package":"m/broken","Output":"FAIL\tm/broken [build failed]\n"}
{"Action":"fail","Package":"m/broken","Elapsed":0,"FailedBuild":"m/broken [m/broken.test]"}
{"Action":"output","Package":"m/old","Output":"ok  \tm/old\t(cached)\n"}
{"Action":"pass","Package":"m/old","Elapsed":0}
no event
{"Action":"run","Package":"m/slow","Test":"TestE"}
{"Action":"run","Package":"m/slow","Test":"TestE/inner"}
`[1:]) {
			lines <- line
		}
		tick <- time.Now().Add(time.Minute)
	}()
	r.read(lines, tick)
	const want = `ok   m/good                              1.2s
    c_test.go:3: got 1, want 2
panic: oh
broken.go:1:1: no
FAIL	m/broken [build failed]
ok   m/old                               0.0s (cached)
no event
     m/slow                           running TestE/inner for 60s
2 packages passed; failed:
  m/bad TestC/inner
  m/bad TestC
  m/bad
  m/dead
  m/broken
skipped tests: 1: mlir-opt is not installed
`
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
	}
}
