package machine

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"dmir/dialect/types"
)

// CacheSpec is a cache as TOML writes it.
type CacheSpec struct {
	Size      *Bytes          `toml:"size" doc:"Size of the cache, of one core's where each has one"`
	PerCore   *bool           `toml:"per_core" doc:"Whether each core has a cache of that size; absent, all cores share it"`
	Bandwidth *BytesPerSecond `toml:"bandwidth" doc:"Bandwidth of all cores together for as many reads as writes"`
	Read      *BytesPerSecond `toml:"read_bandwidth" doc:"Bandwidth of all cores together for kernels that only read; absent, bandwidth"`
	Random    *BytesPerSecond `toml:"random_bandwidth" doc:"Bandwidth of all cores together for lines that are read at random; absent, read_bandwidth"`
	Rows      *BytesPerSecond `toml:"random_rows_bandwidth" doc:"Bandwidth of all cores together for rows of four lines that are read at random; absent, of which each begins with a line at random"`
}

// processor lays what s says about a processor over what m, a machine called name, has.
func (s *Spec) processor(m *Machine, name string) error {
	copyTo(&m.Read, s.Read)
	copyTo(&m.Random, s.Random)
	copyTo(&m.RandomRows, s.RandomRows)
	copyTo(&m.Grain, s.Grain)
	copyTo(&m.Call, s.Call)
	copyTo(&m.Mispredict, s.Mispredict)
	if err := s.cachesOf(m, name); err != nil {
		return err
	}
	ops, err := byOp(m.Ops, s.Ops, name, "ops")
	if err != nil {
		return err
	}
	rows, err := byOp(m.Rows, s.Rows, name, "rows")
	if err != nil {
		return err
	}
	m.Ops, m.Rows = ops, rows
	if err := s.productsOf(m, name); err != nil {
		return err
	}
	switch {
	case m.Read < 0 || m.Random < 0 || m.RandomRows < 0 || m.Grain < 0 || m.Call < 0 || m.Mispredict < 0:
		return wrong(name, "", "a negative quantity")
	case !m.CPU && s.ofProcessors() != "":
		return wrong(name, s.ofProcessors(), "read_bandwidth, random_bandwidth, random_rows_bandwidth, grain, call_latency, mispredict, caches, ops, rows and products are those of a CPU; write cpu = true")
	case m.Read > 0 && 2*m.Read <= m.Reach():
		return wrong(name, "read_bandwidth", "read_bandwidth is no more than half of the bandwidth, so that writes would take no time")
	}
	return nil
}

// ofProcessors is the first key of s that only processors have, "" where there is none.
func (s *Spec) ofProcessors() string {
	for _, k := range []struct {
		name string
		set  bool
	}{
		{"read_bandwidth", s.Read != nil},
		{"random_bandwidth", s.Random != nil},
		{"random_rows_bandwidth", s.RandomRows != nil},
		{"grain", s.Grain != nil},
		{"call_latency", s.Call != nil},
		{"mispredict", s.Mispredict != nil},
		{"caches", len(s.Caches) > 0},
		{"ops", len(s.Ops) > 0},
		{"rows", len(s.Rows) > 0},
		{"products", len(s.Products) > 0},
	} {
		if k.set {
			return k.name
		}
	}
	return ""
}

func (s *Spec) cachesOf(m *Machine, name string) error {
	all := slices.Clone(m.Caches)
	for _, key := range slices.Sorted(maps.Keys(s.Caches)) {
		spec, title := s.Caches[key], strings.ToUpper(key)
		i := slices.IndexFunc(all, func(c Cache) bool { return c.Name == title })
		if i < 0 {
			i = len(all)
			all = append(all, Cache{Name: title})
		}
		c := &all[i]
		copyTo(&c.Size, spec.Size)
		copyTo(&c.Bandwidth, spec.Bandwidth)
		copyTo(&c.Read, spec.Read)
		copyTo(&c.Random, spec.Random)
		copyTo(&c.RandomRows, spec.Rows)
		if spec.PerCore != nil {
			c.PerCore = *spec.PerCore
		}
		switch {
		case c.Size <= 0:
			return wrong(name, "caches."+key, `caches.%s.size is missing; write for example size = "2 MiB"`, key)
		case !(c.Bandwidth > 0):
			return wrong(name, "caches."+key, `caches.%s.bandwidth is missing; write for example bandwidth = "400 GB/s"`, key)
		case c.Read > 0 && 2*c.Read <= c.Bandwidth:
			return wrong(name, "caches."+key+".read_bandwidth", "caches.%s.read_bandwidth is no more than half of the bandwidth, so that writes would take no time", key)
		case c.Random < 0 || c.RandomRows < 0:
			return wrong(name, "caches."+key, "a negative quantity")
		case c.PerCore && m.SMs == 0:
			return wrong(name, "caches."+key+".per_core", "caches.%s is one of each core, and sms, the number of cores, is missing", key)
		}
	}
	slices.SortStableFunc(all, func(a, b Cache) int { return cmp.Compare(a.holds(m), b.holds(m)) })
	m.Caches = all
	return nil
}

// holds is the size of all caches of the level.
func (c Cache) holds(m *Machine) int64 {
	if c.PerCore {
		return c.Size * int64(m.SMs)
	}
	return c.Size
}

// byOp lays what a table of a machine's file says of ops over what the machine called name has.
func byOp[F ~float64](has map[types.Elem]map[string]float64, given map[string]map[string]F, name, table string) (map[types.Elem]map[string]float64, error) {
	if len(given) == 0 {
		return has, nil
	}
	all := map[types.Elem]map[string]float64{}
	for e, of := range has {
		all[e] = maps.Clone(of)
	}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		e, ok := types.ElemByName(key)
		if !ok || !e.IsFloat() {
			return nil, wrong(name, table+"."+key, "%s.%s: %q is not a floating-point element type", table, key, key)
		}
		if all[e] == nil {
			all[e] = map[string]float64{}
		}
		for _, op := range slices.Sorted(maps.Keys(given[key])) {
			if x := given[key][op]; x > 0 {
				all[e][op] = float64(x)
			} else {
				return nil, wrong(name, table+"."+key+"."+op, "%s.%s.%s must be more than 0", table, key, op)
			}
		}
	}
	return all, nil
}
