package machine

import (
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
	"testing"
)

// Each cluster is a machine that exists, with links of more and more devices, slower
// and slower, each with the source of its bandwidth and of its latency.
func TestBuiltinClusters(t *testing.T) {
	files, err := fs.Glob(data, "data/clusters/*.toml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no clusters: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(path.Base(file), ".toml")
		text, err := data.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := Parse(name, text)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		spec, _ := decode(name, text)
		base, ok := Lookup(spec.Base)
		if found, known := Lookup(name); !known || found.Title != m.Title || len(found.Links) != len(m.Links) {
			t.Errorf("%s is not what Lookup finds: %+v", file, found)
		}
		if !ok || len(base.Links) != 0 || m.Arch != base.Arch || m.Title == base.Title {
			t.Errorf("%s: its base %q is no device", file, spec.Base)
		}
		if len(m.Links) == 0 {
			t.Errorf("%s: it has no links", file)
		}
		for i, l := range m.Links {
			if l.Title == l.Name || !strings.Contains(l.Source, "atency: ") || l.Bandwidth < 1e9 || l.Bandwidth > 2e12 || l.Latency < 1e-7 || l.Latency > 1e-4 {
				t.Errorf("%s: %+v", file, l)
			}
			if in := m.Links[max(0, i-1)]; i > 0 && (l.Bandwidth > in.Bandwidth || l.Latency < in.Latency) {
				t.Errorf("%s: %s is faster than %s inside it", file, l.Name, in.Name)
			}
		}
	}
}

func TestLinks(t *testing.T) {
	const nvlink = "[links.nvlink]\ndevices = 8\nbandwidth = \"450 GB/s\"\nlatency = \"2 µs\"\n"
	for _, c := range []struct{ name, text, want string }{ // links as "name devices", or an error
		{"from the inside out", "base = \"h100\"\n[links.a]\nbandwidth = 1e9\nlatency = 1e-6\n[links.b]\ndevices = 16\nbandwidth = 2e9\nlatency = 1e-6\n" + nvlink, "nvlink 8, b 16, a 0"},
		{"on top of a cluster", "base = \"dgx-h100\"\n[links.infiniband]\ndevices = 32\nbandwidth = \"100 GB/s\"\n", "nvlink 8, infiniband 32"},
		{"a machine that is none", "base = \"h100\"\n", ""},
		{"no bandwidth", "base = \"h100\"\n[links.a]\nlatency = 1e-6\n", "machine x: links.a.bandwidth is missing or no positive number"},
		{"zero bandwidth", "base = \"h100\"\n[links.a]\nlatency = 1e-6\nbandwidth = 0.0\n", "links.a.bandwidth is missing or no positive number"},
		{"zero bandwidth in words", "base = \"h100\"\n[links.a]\nlatency = 1e-6\nbandwidth = \"0 GB/s\"\n", "must be more than 0"},
		{"boundless bandwidth", "base = \"h100\"\n[links.a]\nlatency = 1e-6\nbandwidth = inf\n", "no positive number"},
		{"no latency", "base = \"h100\"\n[links.a]\nbandwidth = 1e9\n", "links.a.latency is missing or no positive number"},
		{"no number", "base = \"h100\"\n[links.a]\nbandwidth = 1e9\nlatency = nan\n", "links.a.latency is missing or no positive number"},
		{"one device", "base = \"h100\"\n[links.a]\ndevices = 1\nbandwidth = 1e9\nlatency = 1e-6\n", "links.a.devices is 1; a link joins 2 or more"},
		{"no multiple", "base = \"h100\"\n" + nvlink + "[links.rack]\ndevices = 20\nbandwidth = 1e9\nlatency = 1e-6\n", "links.rack.devices is 20, which is no multiple of the 8 that links.nvlink joins"},
		{"as many", "base = \"h100\"\n" + nvlink + "[links.rack]\ndevices = 8\nbandwidth = 1e9\nlatency = 1e-6\n", "links.nvlink and links.rack both join 8 devices"},
		{"twice any number", "base = \"dgx-h100\"\n[links.wan]\nbandwidth = 1e9\nlatency = 1e-6\n", "links.infiniband and links.wan both join any number of devices"},
		{"unknown key", "base = \"h100\"\n[links.a]\nspeed = 3\n", "strict mode"},
	} {
		m, err := Parse("x", []byte(c.text))
		if err != nil {
			if c.want == "" || !strings.Contains(err.Error(), c.want) || strings.Count(err.Error(), "\n") > 0 {
				t.Errorf("%s: %v, want %q", c.name, err, c.want)
			}
			continue
		}
		var got []string
		for _, l := range m.Links {
			got = append(got, l.Name+" "+strconv.Itoa(l.Devices))
		}
		if s := strings.Join(got, ", "); s != c.want {
			t.Errorf("%s: %q, want %q", c.name, s, c.want)
		}
	}
	if h100, _ := Lookup("dgx-h100"); h100.Links[1].Devices != 0 || h100.Links[1].Bandwidth != 50e9 {
		t.Error("the base was changed")
	}
}

// A machine without links of its own has those of one host.
func TestJoined(t *testing.T) {
	for name, want := range map[string]string{"dgx-h100": "nvlink infiniband", "h200": "peer_link", "l40s": "host_link"} {
		m, _ := Lookup(name)
		var got []string
		for _, l := range m.Joined() {
			got = append(got, l.Name)
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s: %s, want %s", name, s, want)
		}
	}
	if l := (&Machine{}).Joined(); l != nil {
		t.Errorf("links of nothing: %v", l)
	}
}

// Any text is a machine whose links are in order, or one error.
func FuzzParse(f *testing.F) {
	files, _ := fs.Glob(data, "data/clusters/*.toml")
	for _, file := range files {
		text, _ := data.ReadFile(file)
		f.Add(string(text))
	}
	f.Add("base = \"h100\"\n[links.a]\nbandwidth = inf\nlatency = -1\ndevices = -9\n")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Parse("x", []byte(text))
		if err != nil {
			return
		}
		for i, l := range m.Links {
			last := i == len(m.Links)-1
			if !(l.Bandwidth > 0) || !(l.Latency > 0) || math.IsInf(l.Bandwidth+l.Latency, 0) || l.Devices < 0 || l.Devices == 0 && !last {
				t.Fatalf("%+v", m.Links)
			}
			if in := m.Links[max(0, i-1)]; i > 0 && l.Devices != 0 && (l.Devices <= in.Devices || l.Devices%in.Devices != 0) {
				t.Fatalf("%+v", m.Links)
			}
		}
	})
}
