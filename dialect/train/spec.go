package train

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"dmir/syntax/diag"
)

// Spec says how a model is trained. Read and ReadJSON give the defaults of PyTorch.
type Spec struct {
	Loss, Reduction string
	IgnoreIndex     int64
	LabelSmoothing  float64
	Dim             int // of the classes; Auto: see classes
	Output          string

	Optimizer                         string
	LR, WeightDecay, Momentum         float64
	Beta1, Beta2, Eps                 float64
	Nesterov, ScheduledLR, OnlyMatrix bool

	Parameters []string // patterns of the names of arguments, of a program that does not tell which are parameters
	Freeze     []string // patterns of the names of parameters that stay
	BatchNorm  string
}

// Auto is a dimension of the classes that follows from the rank.
const Auto = math.MinInt

// values are what a key may be.
type values struct {
	words []string // one of these; nil: see read
	of    []string // the losses or optimizers that have the key; nil: all
	want  string   // "a number", for messages
	read  func(s *Spec, text string) bool
}

// ownLoss is the loss that the model itself returns.
const ownLoss = "output"

var (
	losses     = []string{"cross_entropy", "nll", "mse", "bce_with_logits", ownLoss}
	optimizers = []string{"sgd", "momentum", "adam", "adamw"}
	adams      = []string{"adam", "adamw"}
	descents   = []string{"sgd", "momentum"}
)

var keys = map[string]values{
	"loss":            {words: losses, read: func(s *Spec, v string) bool { s.Loss = v; return true }},
	"reduction":       {words: []string{"mean", "sum"}, of: losses[:4], read: func(s *Spec, v string) bool { s.Reduction = v; return true }},
	"ignore_index":    {of: losses[:2], want: "a whole number", read: func(s *Spec, v string) (ok bool) { s.IgnoreIndex, ok = whole(v); return ok }},
	"label_smoothing": {of: losses[:1], want: "a number from 0 to 1", read: func(s *Spec, v string) bool { return number(&s.LabelSmoothing, v, 0, 1) }},
	"dim":             {of: losses[:2], want: "the number of a dimension", read: func(s *Spec, v string) bool { n, ok := whole(v); s.Dim = int(n); return ok }},
	"output":          {want: "the name of an output", read: func(s *Spec, v string) bool { s.Output = v; return v != "" }},

	"optimizer": {words: optimizers, read: func(s *Spec, v string) bool { s.Optimizer = v; return true }},
	"lr": {want: "a number of 0 or more, or input", read: func(s *Spec, v string) bool {
		s.ScheduledLR = v == "input"
		return s.ScheduledLR || number(&s.LR, v, 0, math.MaxFloat32)
	}},
	"weight_decay": {want: "a number of 0 or more", read: func(s *Spec, v string) bool { return number(&s.WeightDecay, v, 0, math.MaxFloat32) }},
	"decay":        {words: []string{"all", "matrices"}, read: func(s *Spec, v string) bool { s.OnlyMatrix = v == "matrices"; return true }},
	"momentum":     {of: descents, want: "a number of 0 or more", read: func(s *Spec, v string) bool { return number(&s.Momentum, v, 0, math.MaxFloat32) }},
	"nesterov":     {words: []string{"true", "false"}, of: descents, read: func(s *Spec, v string) bool { s.Nesterov = v == "true"; return true }},
	"beta1":        {of: adams, want: "a number of at least 0 and below 1", read: func(s *Spec, v string) bool { return number(&s.Beta1, v, 0, 1) && s.Beta1 < 1 }},
	"beta2":        {of: adams, want: "a number of at least 0 and below 1", read: func(s *Spec, v string) bool { return number(&s.Beta2, v, 0, 1) && s.Beta2 < 1 }},
	"eps":          {of: adams, want: "a number of 0 or more", read: func(s *Spec, v string) bool { return number(&s.Eps, v, 0, math.MaxFloat32) }},

	"freeze":     {want: "a pattern of names, as h.0.*", read: func(s *Spec, v string) bool { return pattern(&s.Freeze, v) }},
	"parameters": {want: "a pattern of names, as params.*", read: func(s *Spec, v string) bool { return pattern(&s.Parameters, v) }},
	"batch_norm": {words: []string{"train", "eval"}, read: func(s *Spec, v string) bool { s.BatchNorm = v; return true }},
}

// Keys are those of a specification, sorted.
func Keys() []string { return slices.Sorted(maps.Keys(keys)) }

func whole(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

func number(to *float64, text string, low, high float64) bool {
	v, err := strconv.ParseFloat(text, 64)
	*to = v
	return err == nil && v >= low && v <= high
}

// pattern adds a pattern of names to those of a key.
func pattern(to *[]string, text string) bool {
	_, err := path.Match(text, "")
	*to = append(*to, text)
	return err == nil && text != ""
}

// entry is a key with its value.
type entry struct{ key, value string }

func (e entry) String() string { return e.key + "=" + e.value }

// Read reads "loss=cross_entropy,optimizer=adamw,lr=0.001". An error is an *Error.
func Read(text string) (*Spec, error) {
	var list []entry
	for part := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(part, "=")
		if !ok {
			return nil, bad(part, "write loss=cross_entropy,optimizer=adamw,lr=0.001", "is not key=value")
		}
		list = append(list, entry{strings.TrimSpace(key), strings.TrimSpace(value)})
	}
	return read(list)
}

// repeats reports whether a key may be given several times.
func repeats(key string) bool { return key == "freeze" || key == "parameters" }

// ReadJSON reads an object with the keys of Read. "betas" may stand for beta1 and beta2, and keys that repeat may have lists. An
// error is an *Error.
func ReadJSON(text []byte) (*Spec, error) {
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, bad(string(text), `write {"loss": "cross_entropy", "optimizer": "adamw", "lr": 0.001}`, "is no object in JSON")
	}
	var list []entry
	for _, key := range slices.Sorted(maps.Keys(all)) {
		names := []string{key}
		members, isList := all[key].([]any)
		switch {
		case !isList:
			members = []any{all[key]}
		case key == "betas" && len(members) == 2:
			names = []string{"beta1", "beta2"}
		case repeats(key):
			names = slices.Repeat(names, len(members))
		default:
			members = []any{fmt.Sprint(all[key])}
		}
		for i, name := range names {
			list = append(list, entry{name, plain(members[i])})
		}
	}
	return read(list)
}

// plain is a value of JSON as it stands in the text of a specification.
func plain(v any) string {
	if x, ok := v.(float64); ok {
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	return fmt.Sprint(v)
}

func read(list []entry) (*Spec, error) {
	s := &Spec{Reduction: "mean", IgnoreIndex: -100, Dim: Auto, LR: 1e-3, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, BatchNorm: "train"}
	seen := map[string]bool{}
	for _, e := range list {
		k, known := keys[e.key]
		if !known {
			help := "the keys are " + strings.Join(Keys(), ", ")
			if near := diag.Suggest(e.key, Keys()); near != "" {
				help = "did you mean " + near + "? " + help
			}
			return nil, bad(e.String(), help, "%s is no key", e.key)
		}
		if seen[e.key] && !repeats(e.key) {
			return nil, bad(e.String(), "give each key once", "gives %s a second time", e.key)
		}
		seen[e.key] = true
		if k.words != nil && !slices.Contains(k.words, e.value) {
			help := "write one of " + strings.Join(k.words, ", ")
			if near := diag.Suggest(e.value, k.words); near != "" {
				help = "did you mean " + near + "? " + help
			}
			return nil, bad(e.String(), help, "%s is no value of %s", e.value, e.key)
		}
		if !k.read(s, e.value) {
			return nil, bad(e.String(), "write "+k.want, "is not %s", k.want)
		}
	}
	if !seen["loss"] {
		return nil, bad("loss=", "write loss=cross_entropy, or one of "+strings.Join(losses[1:], ", "), "is missing")
	}
	if !seen["optimizer"] {
		return nil, bad("optimizer=", "write optimizer=adamw, or one of "+strings.Join(optimizers[:3], ", "), "is missing")
	}
	for _, e := range list {
		if of := keys[e.key].of; of != nil && !slices.Contains(of, s.Loss) && !slices.Contains(of, s.Optimizer) {
			return nil, bad(e.String(), "remove it", "is for %s", strings.Join(of, " and "))
		}
	}
	if s.Optimizer == "adamw" && !seen["weight_decay"] {
		s.WeightDecay = 0.01
	}
	if s.Optimizer == "momentum" && !seen["momentum"] {
		s.Momentum = 0.9
	}
	if s.Nesterov && s.Momentum == 0 {
		return nil, bad("nesterov=true", "add momentum=0.9", "needs a momentum")
	}
	return s, nil
}

// matches reports whether a pattern, in which * stands for any part without a "/", is of name.
func matches(pattern, name string) bool {
	ok, _ := path.Match(pattern, name)
	return ok
}
