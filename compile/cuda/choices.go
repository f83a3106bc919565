package cuda

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"

	"dmir/analysis/machine"
	"dmir/base/atomicfile"
	"dmir/compile/kernel"
)

// Choices are the tiles measured to be the fastest, by product and
// architecture; they override the model. They are safe for concurrent use.
type Choices struct {
	mu    sync.Mutex
	tiles map[string]Config
}

// NewChoices returns empty choices.
func NewChoices() *Choices { return &Choices{tiles: map[string]Config{}} }

// ReadChoices reads choices from a file; a file that does not exist has none.
func ReadChoices(path string) (*Choices, error) {
	c := NewChoices()
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &c.tiles); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// Write writes the choices to a file.
func (c *Choices) Write(path string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	text, err := json.MarshalIndent(c.tiles, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(path, 0o644, func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
}

// Set stores the tile for products like t on an architecture.
func (c *Choices) Set(t *kernel.Tiled, arch string, tile Config) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tiles[shapeOf(t).key(arch)] = tile
}

// Put stores a tile for a product, both named as in artifact.Step; it reports
// whether the tile exists.
func (c *Choices) Put(product, tile string) bool {
	of, ok := machine.ParseTile(tile)
	if !ok {
		return false
	}
	name := machine.Tile{Path: of.Path, Rows: of.Rows, Cols: of.Cols, Step: of.Step, Pair: of.Pair}.String()
	for _, t := range allTiles {
		if t.String() == name {
			t.Splits, t.Cluster, t.Phases, t.StreamK = of.Splits, of.Cluster, of.Phases, of.StreamK
			c.mu.Lock()
			defer c.mu.Unlock()
			c.tiles[product] = t
			return true
		}
	}
	return false
}

// Find returns the tile for products like t, if there is one that can compute
// it.
func (c *Choices) Find(t *kernel.Tiled, target Target) (Config, bool) {
	if c == nil {
		return Config{}, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := shapeOf(t)
	tile, ok := c.tiles[p.key(target.Arch)]
	return tile, ok && p.can(t, tile, target)
}

// can reports whether tile c, which may come from a file, can compute p.
func (p productShape) can(t *kernel.Tiled, c Config, target Target) bool {
	known := slices.ContainsFunc(allTiles, func(k Config) bool {
		k.Splits, k.Cluster, k.Phases, k.StreamK = c.Splits, c.Cluster, c.Phases, c.StreamK
		return k == c
	})
	if _, tensor := p.tensorElem(); !known || !tensor && c.Path != Fma {
		return false
	}
	if c.Path.warpgroups() && (target.Arch != "sm_90a" || !c.feeds(t) || !p.pairs(c, target.Machine)) {
		return false
	}
	if c.Cluster && !p.clusters(c, target) {
		return false
	}
	if c.StreamK && !p.streams(c, target.Machine) {
		return false
	}
	unsplit := c.Splits <= 1
	return p.takes(c) && int64(c.shared(p.sum)) <= target.Machine.SharedMemory && c.Splits <= mostSplits && (unsplit || !p.half && !p.reduces)
}
