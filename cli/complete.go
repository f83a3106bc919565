package cli

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"dmir/analysis/lint"
	"dmir/analysis/machine"
	"dmir/analysis/plan/export"
	"dmir/compile/pipeline"
	"dmir/dialect/op"
	"dmir/gpu/device"
	"dmir/syntax/diag"
)

//go:embed completion
var completionScripts embed.FS

type completionCmd struct {
	Shell string `arg:"" help:"bash, zsh or fish." enum:"bash,zsh,fish"`
}

// Help is what --help adds.
func (completionCmd) Help() string {
	return "bash: eval \"$(dmir completion bash)\" in ~/.bashrc\n" +
		"zsh:  dmir completion zsh > _dmir in a folder of $fpath, before compinit\n" +
		"fish: dmir completion fish > ~/.config/fish/completions/dmir.fish"
}

// Run prints the script by which a shell completes the words after dmir.
func (c completionCmd) Run(a *app) error {
	script, err := completionScripts.ReadFile("completion/dmir." + c.Shell)
	if err != nil {
		return err
	}
	_, err = a.stdout.Write(script)
	return err
}

// completeCmd is what the scripts call.
type completeCmd struct {
	Words []string `arg:"" optional:"" passthrough:""`
}

// Run prints what the last word may become, one candidate a line, with a tab and a
// description where there is one.
func (c completeCmd) Run(a *app) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) == 0 {
		words = []string{""}
	}
	for _, x := range complete(a.parser.Model.Node, words) {
		line := x.text
		if x.about != "" {
			line += "\t" + x.about
		}
		if _, err := fmt.Fprintln(a.stdout, line); err != nil {
			return err
		}
	}
	return nil
}

// candidate is a word and what it stands for.
type candidate struct{ text, about string }

// complete returns the words that the last of words may become, by the grammar under
// root. The shells pass "--flag=value" as one word, bash as three.
func complete(root *kong.Node, words []string) []candidate {
	node, args, flagsEnd := root, 0, false
	var pending *kong.Flag // whose value is the next word
	last := len(words) - 1
	for _, w := range words[:last] {
		switch {
		case w == "=" && pending != nil:
		case pending != nil:
			pending = nil
		case w == "--":
			flagsEnd = true
		case !flagsEnd && strings.HasPrefix(w, "-") && len(w) > 1:
			name, _, given := strings.Cut(w, "=")
			if f := flagOf(node, name); f != nil && !given && takesWord(f) {
				pending = f
			}
		default:
			if child := childOf(node, w); child != nil {
				node = child
			} else {
				args++
			}
		}
	}
	word := words[last]
	if pending != nil {
		return values(root, pending.Value, "", strings.TrimPrefix(word, "="))
	}
	if name, value, given := strings.Cut(word, "="); given && !flagsEnd {
		if f := flagOf(node, name); f != nil {
			return values(root, f.Value, name+"=", value)
		}
	}
	var out []candidate
	if strings.HasPrefix(word, "-") && word != "-" && !flagsEnd {
		for n := node; n != nil; n = n.Parent {
			for _, f := range n.Flags {
				if !f.Hidden {
					out = append(out, candidate{"--" + f.Name, firstSentence(f.Help)})
				}
			}
		}
		return matching(out, word)
	}
	if args == 0 {
		out = matching(commands(node), word)
	}
	if n := len(node.Positional); n > 0 && (args < n || node.Positional[n-1].IsCumulative()) {
		out = append(out, values(root, node.Positional[min(args, n-1)], "", word)...)
	}
	return out
}

func commands(n *kong.Node) []candidate {
	var out []candidate
	for _, c := range n.Children {
		if !c.Hidden {
			out = append(out, candidate{c.Name, firstSentence(c.Help)})
		}
	}
	return out
}

// takesWord reports whether the word after a flag is its value.
func takesWord(f *kong.Flag) bool {
	_, optional := f.Target.Interface().(tolerance)
	return !f.IsBool() && !f.IsCounter() && !optional
}

func flagOf(n *kong.Node, name string) *kong.Flag {
	for ; n != nil; n = n.Parent {
		for _, f := range n.Flags {
			if name == "--"+f.Name || f.Short != 0 && name == "-"+string(f.Short) || slices.Contains(f.Aliases, strings.TrimPrefix(name, "--")) {
				return f
			}
		}
	}
	return nil
}

func childOf(n *kong.Node, name string) *kong.Node {
	for _, c := range n.Children {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func matching(all []candidate, prefix string) []candidate {
	return slices.DeleteFunc(all, func(c candidate) bool { return !strings.HasPrefix(c.text, prefix) })
}

func firstSentence(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	if at := strings.Index(s, ". "); at >= 0 {
		s = s[:at]
	}
	return strings.TrimSuffix(s, ".")
}

// values are the values of v that begin with word, each behind before. Of a list only
// the part after the last comma is completed.
func values(root *kong.Node, v *kong.Value, before, word string) []candidate {
	if v.IsSlice() && v.Tag.Sep == ',' {
		at := strings.LastIndexByte(word, ',') + 1
		before, word = before+word[:at], word[at:]
	}
	var out []candidate
	add := func(list ...string) {
		for _, s := range list {
			if s != "" {
				out = append(out, candidate{text: s})
			}
		}
	}
	switch kind, arg, _ := strings.Cut(v.Tag.Get("complete"), ":"); kind {
	case "file":
		out = files(word, strings.Split(arg, ","))
	case "dir":
		out = files(word, nil)
	case "machine", "arch":
		cfg, _, _ := lint.Config(".")
		for _, name := range cfg.MachineNames() {
			if m, ok := cfg.Machine(name); ok && kind == "machine" {
				out = append(out, candidate{name, m.Title})
			} else if ok {
				add(m.Arch)
			}
		}
		for _, name := range []string{machine.LocalName, machine.LocalCard} {
			if m, err := machine.Local(name); err == nil && kind == "machine" {
				out = append(out, candidate{m.Name, m.Title})
			}
		}
		if kind == "arch" {
			add("none")
		}
	case "export":
		for _, f := range export.Formats() {
			out = append(out, candidate{f.Name, f.Doc})
		}
	case "pass":
		for _, p := range pipeline.For(nil) {
			out = append(out, candidate{p.Name, p.Summary})
		}
	case "rule", "article":
		for _, c := range diag.Codes() {
			if kind == "article" || lint.Lookup(c.Code) != nil {
				out = append(out, candidate{c.Code, c.Name}, candidate{c.Name, c.Code})
			}
		}
		if kind == "article" {
			for _, d := range op.All() {
				out = append(out, candidate{d.FullName(), firstSentence(d.Summary)})
			}
		}
	case "device":
		add("auto", "reference")
		for _, d := range device.Devices() {
			out = append(out, candidate{d.Name(), d.Title()})
		}
	case "command":
		out = commands(root)
	default:
		add(strings.Split(v.Enum, ",")...)
	}
	out = matching(out, word)
	slices.SortFunc(out, func(a, b candidate) int { return strings.Compare(a.text, b.text) })
	out = slices.CompactFunc(out, func(a, b candidate) bool { return a.text == b.text })
	for i := range out {
		out[i].text = before + out[i].text
	}
	return out
}

// files are the folders, with a "/" behind them, and the files with one of the
// extensions ("*": any) whose path begins with word.
func files(word string, extensions []string) []candidate {
	dir, base := filepath.Split(word)
	look := dir
	if home, err := os.UserHomeDir(); err == nil && strings.HasPrefix(dir, "~/") {
		look = home + dir[1:]
	}
	if look == "" {
		look = "."
	}
	entries, _ := os.ReadDir(look) // none where there is no such folder
	var out []candidate
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, base) || strings.HasPrefix(name, ".") && !strings.HasPrefix(base, ".") || strings.ContainsAny(name, "\n\t") {
			continue
		}
		info, err := os.Stat(filepath.Join(look, name)) // of what a link points to
		switch {
		case err != nil:
		case info.IsDir():
			out = append(out, candidate{text: dir + name + "/"})
		case slices.Contains(extensions, "*"), slices.Contains(extensions, strings.TrimPrefix(filepath.Ext(name), ".")):
			out = append(out, candidate{text: dir + name})
		}
	}
	return out
}
