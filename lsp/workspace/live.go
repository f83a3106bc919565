package workspace

import (
	"reflect"
	"runtime/debug"
	"sync"

	"dmir/analysis/config"
	"dmir/analysis/program"
	"dmir/compile/kernel"
	"dmir/syntax/diag"
	"dmir/syntax/parse"
	"dmir/syntax/source"
)

// live is the analysis of a document. There is one, and it goes from version to
// version as they are looked at: to follow a change costs a small part of what
// loading the text does. Whoever looks at it holds it, and it waits for them.
type live struct {
	address  Address
	settings Settings
	configs  *configs

	mu     sync.RWMutex // held for writing while the analysis goes on to another version
	number int          // of the version that l is about
	src    *source.File // its text
	l      *loaded      // nil before anyone looked

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
	conf    *config.Config
	choices []diag.Diagnostic // what is wrong with the settings
	again   func(*source.File) *program.Program
	tidied  sync.Once
}

// tidy gives back what reading a text of n bytes left behind, once.
func (l *loaded) tidy(n int) {
	if n >= largeText {
		l.tidied.Do(func() { go debug.FreeOSMemory() })
	}
}

// maxSteps is how many changes are followed one by one; after more of them the
// text is read afresh.
const maxSteps = 64

func newLive(a Address, src *source.File, set Settings, configs *configs) *live {
	return &live{address: a, settings: set, configs: configs, src: src, news: make(chan struct{})}
}

// add notes the steps to a new version and gives its number.
func (v *live) add(steps []step) int {
	v.waiting.Lock()
	defer v.waiting.Unlock()
	v.last++
	close(v.news)
	v.news = make(chan struct{})
	for _, s := range steps {
		s.number = v.last
		v.steps = append(v.steps, s)
	}
	return v.last
}

// newer is closed once there is a newer version than number.
func (v *live) newer(number int) <-chan struct{} {
	v.waiting.Lock()
	defer v.waiting.Unlock()
	if v.last > number {
		return past
	}
	return v.news
}

// past is closed.
var past = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// hold is the analysis of a version, or of none where a newer one has been
// looked at. It stays as it is until release.
func (v *live) hold(number int) (l *loaded, release func(), ok bool) {
	for {
		v.mu.RLock()
		if v.l != nil && v.number >= number {
			if v.number > number {
				v.mu.RUnlock()
				return nil, nil, false
			}
			return v.l, v.mu.RUnlock, true
		}
		v.mu.RUnlock()
		v.advance(number)
	}
}

// advance brings the analysis to a version, unless it is there or beyond.
func (v *live) advance(number int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.l != nil && v.number >= number {
		return
	}
	steps := v.take(number)
	if len(steps) > 0 {
		v.src = steps[len(steps)-1].src
	}
	v.number = number
	if !v.follow(steps) {
		v.l = nil // so that there are never two in memory
		v.l = v.load(v.src)
	}
}

// take is the steps to a version.
func (v *live) take(number int) []step {
	v.waiting.Lock()
	defer v.waiting.Unlock()
	n := 0
	for n < len(v.steps) && v.steps[n].number <= number {
		n++
	}
	steps := v.steps[:n:n]
	v.steps = append([]step(nil), v.steps[n:]...)
	return steps
}

// follow takes the analysis through the steps; false where it is to be made anew.
func (v *live) follow(steps []step) (ok bool) {
	if v.l == nil || len(steps) > maxSteps || !v.sameConfig() {
		return false
	}
	l := v.l
	v.l = nil // whatever goes wrong, nobody sees half of a change
	for _, s := range steps {
		if !l.prog.Splice(s.src, s.Change) {
			return false
		}
	}
	v.l = l
	return true
}

func (v *live) sameConfig() bool {
	conf := v.configs.forFile(v.address.base())
	return conf == v.l.conf || reflect.DeepEqual(conf, v.l.conf)
}

func (v *live) load(src *source.File) *loaded {
	l := &loaded{conf: v.configs.forFile(v.address.base())}
	target, ok := l.conf.Machine(v.settings.Target)
	if !ok {
		target, _ = l.conf.Machine("")
		l.choices = append(l.choices, unknownTarget(v.settings.Target, l.conf, target.Name))
	}
	opts := program.Options{Target: target, Bind: v.settings.Bind, Config: l.conf, OneKernel: kernel.Unfit}
	defer collector.rest(src.Len())()
	l.again = func(src *source.File) *program.Program { return program.Load(src, opts) }
	l.prog = program.Load(src, opts)
	return l
}

// warm builds the grammars and tables that the first document would wait for.
var warm = sync.OnceFunc(func() {
	defer collector.rest(0)()
	program.Load(source.New("", "func.func @f(%a: tensor<1xf32>) -> tensor<1xf32> {\n"+
		"  %0 = dm.exp %a : tensor<1xf32>\n"+
		"  %1 = \"dm.add\"(%0, %0) {a = 1 : i64} : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>\n"+
		"  return %1 : tensor<1xf32>\n}\n"), program.Options{})
})
