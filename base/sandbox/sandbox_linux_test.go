package sandbox

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"dmir/testkit/need"
)

// What a process in a sandbox may do, each tried by a shell inside and outside of one.
func TestStart(t *testing.T) {
	if Kernel() == "" {
		need.OK(t, errors.New("this kernel has no Landlock (Linux 5.13 or newer)"))
	}
	shell := need.Tool(t, "bash", "apt-get install bash")
	dir := t.TempDir()
	for _, name := range []string{"home", "work"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "file"), []byte("words"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Addr().String())
	policy := Policy{Read: append(Libraries(shell), shell, "/usr/bin"), Write: []string{filepath.Join(dir, "work"), "/dev/null"}}
	online := policy
	online.Network = true
	for _, c := range []struct {
		script         string
		inside, within bool // whether it succeeds under policy, and under online
	}{
		{`read -r x <work/file || [ "$x" = words ]`, true, true},
		{`echo more >work/file && echo new >work/new && rm work/new && mkdir work/d && rmdir work/d`, true, true},
		{`mv work/file work/other && mv work/other work/file`, true, true},
		{`: <home/file`, false, false},
		{`ls home`, false, false},
		{`: >home/file`, false, false},
		{`: >home/new`, false, false},
		{`rm home/file`, false, false},
		{`ln -s ../home/file work/link && : <work/link`, false, false},
		{`cp /usr/bin/true work/program && work/program && rm work/program`, true, true},
		{`exec 3<>/dev/tcp/127.0.0.1/` + port, false, true},
		{`exec 3<>/dev/udp/127.0.0.1/9`, false, true},
	} {
		for _, p := range []struct {
			name   string
			policy Policy
			want   bool
		}{{"offline", policy, c.inside}, {"online", online, c.within}} {
			cmd := exec.Command(shell, "--norc", "-c", c.script)
			cmd.Dir = dir
			var out strings.Builder
			cmd.Stderr = &out
			if err := Start(cmd, p.policy); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); (err == nil) != p.want {
				t.Errorf("%s: %s: %v %s, want success %t", p.name, c.script, err, out.String(), p.want)
			}
		}
		os.Remove(filepath.Join(dir, "work", "link"))
	}
	// This process, whose threads start others, is not restricted.
	if got, err := os.ReadFile(filepath.Join(dir, "home", "file")); err != nil || string(got) != "words" {
		t.Errorf("home/file has %q, %v", got, err)
	}
}

func TestChoice(t *testing.T) {
	program := need.Tool(t, "true", "apt-get install coreutils")
	for choice, want := range map[string]string{"off": "", "require": "", "maybe": "neither"} {
		if choice == "require" && Kernel() == "" {
			want = "no Landlock"
		}
		t.Setenv(Variable, choice)
		cmd := exec.Command(program)
		err := Start(cmd, Policy{Read: append(Libraries(program), program, "/usr/bin"), Write: []string{"/dev/null"}})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error %v, want %q", choice, err, want)
		}
		if err == nil {
			if err := cmd.Wait(); err != nil {
				t.Errorf("%s: %v", choice, err)
			}
		}
	}
}
