package workspace

import (
	"cmp"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"sync"

	"dmir/analysis/program"
	"dmir/compile/kernel"
	"dmir/compile/planned"
	"dmir/compile/tensor"
	"dmir/lsp/feature"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// analysis is the one analysis of a document. It is spliced from version to version
// on first use, which costs a small part of loading the text. Readers hold
// a read lock; updates wait for them.
type analysis struct {
	address  Address
	settings Settings
	configs  *configs

	mu     sync.RWMutex // held for writing while the analysis is brought to another version
	number int          // of the version that l is about
	src    *source.File // its text
	l      *loaded      // nil before the first read
	kept   feature.Kept // of versions before l

	waiting sync.Mutex // guards what follows
	last    int        // number of the newest version
	steps   []step     // that lead to it from the version number
	news    chan struct{}
}

// step is a change and the text it leads to.
type step struct {
	parse.Change
	src    *source.File
	number int // of the version that this is the last step to, or one of the steps to
}

// loaded is what is known about a version.
type loaded struct {
	prog    *program.Program
	applied                   // the configuration
	choices []diag.Diagnostic // problems of the settings
	again   func(*source.File) *program.Program
	tidied  sync.Once
}

// tidy returns the memory that reading a text of n bytes left behind to the system,
// once.
func (l *loaded) tidy(n int) {
	if n >= largeText {
		l.tidied.Do(func() { go debug.FreeOSMemory() })
	}
}

// maxSteps is how many changes are spliced one by one; after more of them the text
// is loaded.
const maxSteps = 64

func newAnalysis(a Address, src *source.File, set Settings, configs *configs) *analysis {
	return &analysis{address: a, settings: set, configs: configs, src: src, news: make(chan struct{})}
}

// add records the steps to a new version and returns its number.
func (a *analysis) add(steps []step) int {
	a.waiting.Lock()
	defer a.waiting.Unlock()
	a.last++
	close(a.news)
	a.news = make(chan struct{})
	for _, s := range steps {
		s.number = a.last
		a.steps = append(a.steps, s)
	}
	return a.last
}

// newer returns a channel that is closed once there is a newer version than number.
func (a *analysis) newer(number int) <-chan struct{} {
	a.waiting.Lock()
	defer a.waiting.Unlock()
	if a.last > number {
		return past
	}
	return a.news
}

// past is closed.
var past = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// hold returns the analysis of a version under a read lock, which release returns.
// ok is false if a newer version has been analysed.
func (a *analysis) hold(number int) (l *loaded, release func(), ok bool) {
	for {
		a.mu.RLock()
		if a.l != nil && a.number >= number {
			if a.number > number {
				a.mu.RUnlock()
				return nil, nil, false
			}
			return a.l, a.mu.RUnlock, true
		}
		a.mu.RUnlock()
		a.advance(number)
	}
}

// advance brings the analysis to a version, unless it is there or beyond.
func (a *analysis) advance(number int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.l != nil && a.number >= number {
		return
	}
	steps := a.take(number)
	if len(steps) > 0 {
		a.src = steps[len(steps)-1].src
	}
	a.number = number
	if !a.follow(steps) {
		a.l = nil // so that there are never two in memory
		a.l = a.load(a.src)
		a.kept.Doubt = a.l.doubt
	}
}

// drop forgets the analysis, unless somebody reads it.
func (a *analysis) drop() {
	if a.mu.TryLock() {
		a.l = nil
		a.mu.Unlock()
	}
}

// take removes and returns the steps to a version.
func (a *analysis) take(number int) []step {
	a.waiting.Lock()
	defer a.waiting.Unlock()
	n := 0
	for n < len(a.steps) && a.steps[n].number <= number {
		n++
	}
	steps := a.steps[:n:n]
	a.steps = append([]step(nil), a.steps[n:]...)
	return steps
}

// follow splices the steps into the analysis; it returns false if the text has to
// be loaded.
func (a *analysis) follow(steps []step) (ok bool) {
	if a.l == nil || len(steps) > maxSteps || !a.sameConfig() {
		a.kept = feature.Kept{}
		return false
	}
	l := a.l
	a.l = nil // so that a panic leaves no half of a change
	ok = true
	for _, s := range steps {
		if ok {
			a.kept.Record(l.prog, s.Start, s.End)
			ok = l.prog.Splice(s.src, s.Change)
		}
		a.kept.Move(s.Start, s.End, s.Length)
		if s.Start == 0 && s.Length == s.src.Len() {
			a.kept = feature.Kept{Doubt: l.doubt} // another text
		}
	}
	if ok {
		a.l = l
	}
	return ok
}

func (a *analysis) sameConfig() bool {
	now := a.configs.forFile(a.address.base())
	return now == a.l.applied || reflect.DeepEqual(now, a.l.applied)
}

func (a *analysis) load(src *source.File) *loaded {
	l := &loaded{applied: a.configs.forFile(a.address.base())}
	target, ok := l.conf.Machine(a.settings.Target)
	if !ok {
		target, _ = l.conf.Machine("")
		l.choices = append(l.choices, unknownTarget(a.settings.Target, l.conf, target.Name))
		l.doubt = cmp.Or(l.doubt, "the setting dmir.target names no machine")
	}
	opts := program.Options{Target: target, Bind: a.settings.Bind, Config: l.conf, Arrays: tensor.In(filepath.Dir(a.address.base())), OneKernel: kernel.Unfit, Compiled: planned.Figures}
	defer collector.rest(src.Len())()
	l.again = func(src *source.File) *program.Program { return program.Load(src, opts) }
	l.prog = program.Load(src, opts)
	return l
}

// warm builds the grammars and tables that the first document needs.
var warm = sync.OnceFunc(func() {
	defer collector.rest(0)()
	program.Load(source.New("", "func.func @f(%a: tensor<1xf32>) -> tensor<1xf32> {\n"+
		"  %0 = dm.exp %a : tensor<1xf32>\n"+
		"  %1 = \"dm.add\"(%0, %0) {a = 1 : i64} : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>\n"+
		"  return %1 : tensor<1xf32>\n}\n"), program.Options{})
})
