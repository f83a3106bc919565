package main

import (
	"errors"
	"fmt"
	"strings"

	"dmir/analysis/cost"
	"dmir/analysis/machine"
	"dmir/analysis/network"
	"dmir/analysis/program"
	"dmir/dialect/types"
	"dmir/syntax/diag"
	syntax "dmir/syntax/source"
)

// errKind is that of a row whose kind, type or machine has no prediction.
var errKind = errors.New("no prediction")

// elems are the element types by the names of publishers.
var elems = map[string]string{
	"f16": "f16", "fp16": "f16", "bf16": "bf16", "f32": "f32", "fp32": "f32", "f64": "f64", "fp64": "f64",
	"fp32x4": "f32", "16B vectors": "f32",
	"fp8": "f8E4M3FN", "f8": "f8E4M3FN", "e4m3": "f8E4M3FN", "f8e4m3": "f8E4M3FN",
}

// sameKernels are the machines whose kernels are those of another one: the H800 has the H100's processor and memory
// with slower links; of an A100 whose memory is not stated the larger one is taken.
var sameKernels = map[string]string{"h800": "h100", "a100": "a100-80", "gb200": "gb200-nvl72"}

// A prediction is what the model says of a row, and what was published, in seconds.
type prediction struct {
	row                  *row
	predicted, published float64
	bound                string
}

func (p prediction) error() float64 { return p.predicted/p.published - 1 }

// predict predicts a row with the programs and the cost model that users have.
func predict(r *row) (prediction, error) {
	name := r.Machine
	if also := sameKernels[name]; also != "" {
		name = also
	}
	m, ok := machine.Lookup(name)
	if clusters[name] != "" && strings.Contains("all_reduce all_gather reduce_scatter all_to_all send_recv", r.Kind) {
		m, ok = machine.Lookup(clusters[name])
	}
	if !ok {
		return prediction{}, fmt.Errorf("%w for machine %s", errKind, r.Machine)
	}
	m = m.Serial() // as published kernels were launched
	p := prediction{row: r}
	var flop, moved float64
	switch r.Kind {
	case "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv":
		seconds, err := collective(r)
		moved = float64(r.integer("bytes", 0)) * r.bus()
		if err != nil {
			return p, err
		}
		p.predicted, p.bound = seconds, cost.Network
	default:
		text, err := programOf(r)
		if err != nil {
			return p, err
		}
		loaded := program.Load(syntax.New("row.dmir", text), program.Options{Target: m})
		for _, d := range loaded.Diags {
			if d.Severity == diag.Error {
				return p, fmt.Errorf("%s: %s\n%s", r.name(), d.Message, text)
			}
		}
		f := loaded.Funcs[len(loaded.Funcs)-1]
		t := f.Time(m)
		if !t.Known {
			return p, fmt.Errorf("%s has no time\n%s", r.name(), text)
		}
		p.predicted, p.bound = t.Ns/1e9, t.Bound
		if r.isolated {
			p.predicted += events
		}
		n, _ := f.FLOP.Int()
		b, _ := f.Moved().Int()
		flop, moved = float64(n), float64(b)
	}
	if n := r.flop(); n > 0 {
		flop = n
	}
	switch r.Unit {
	case "us":
		p.published = r.Value / 1e6
	case "ms":
		p.published = r.Value / 1e3
	case "s":
		p.published = r.Value
	case "TFLOP/s":
		p.published = flop / (r.Value * 1e12)
	case "GFLOP/s":
		p.published = flop / (r.Value * 1e9)
	case "GB/s", "TB/s":
		rate := r.Value * 1e9
		if r.Unit == "TB/s" {
			rate *= 1e3
		}
		p.published = moved / rate
	default:
		return p, fmt.Errorf("%w in %s", errKind, r.Unit)
	}
	if moved > 0 && r.flag("warm") && moved > 4<<20 {
		return p, fmt.Errorf("%w of operands that lie in the cache", errKind)
	}
	if floor := max(flop/m.Peak(r.Kind == "gemm" || r.Kind == "attention", loadedElem(r)), moved/m.Bandwidth); moved > 2*float64(m.L2) && p.published < floor*0.98 {
		return p, fmt.Errorf("%w of a row that is faster than the peaks of the machine", errKind)
	}
	if !(p.published > 0) {
		return p, fmt.Errorf("%s: no published time", r.name())
	}
	return p, nil
}

func loadedElem(r *row) types.Elem {
	e, _ := types.ElemByName(elems[strings.ToLower(r.text("type", "f32"))])
	return e
}

// events is what two events add to the time of what lies between them: 2.912 µs between two in a row on an H100
// (meta-pytorch/tritonbench, pull request 38, nightly output of launch_latency).
const events = 2.912e-6

// flop is what publishers count, where that differs from what dmir counts; 0 elsewhere.
func (r *row) flop() float64 {
	n := func(key string, otherwise int64) float64 { return float64(r.integer(key, otherwise)) }
	switch r.Kind {
	case "gemm":
		return 2 * n("m", 0) * n("n", 0) * n("k", 0) * n("batch", 1)
	case "attention":
		x := 4 * n("batch", 1) * n("heads", 1) * n("queries", r.integer("length", 0)) * n("kv_length", r.integer("length", 0)) * n("head", 0)
		if r.flag("causal") && !strings.Contains(r.Counts, "not halved") {
			x /= 2
		}
		switch r.text("direction", "forward") {
		case "backward":
			x *= 2.5
		case "both":
			x *= 3.5
		}
		return x
	}
	return 0
}

// clusters are those of the machines that collectives were measured on.
var clusters = map[string]string{"a100": "dgx-a100", "a100-80": "dgx-a100", "a100-40": "dgx-a100", "h100": "dgx-h100", "h200": "hgx-h200", "b200": "dgx-b200", "gb200": "gb200-nvl72"}

// bus is the part of the bytes of a collective that a device sends, by which nccl-tests computes the bandwidth of the bus.
func (r *row) bus() float64 {
	n := float64(r.integer("devices", 1))
	switch r.Kind {
	case "all_reduce":
		return 2 * (n - 1) / n
	case "send_recv":
		return 1
	}
	return (n - 1) / n
}

func collective(r *row) (float64, error) {
	kinds := map[string]network.Kind{
		"all_reduce": network.AllReduce, "all_gather": network.AllGather, "reduce_scatter": network.ReduceScatter, "all_to_all": network.AllToAll, "send_recv": network.Permute,
	}
	cluster, ok := machine.Lookup(r.text("cluster", clusters[r.Machine]))
	if !ok {
		return 0, fmt.Errorf("%w for collectives of %s", errKind, r.Machine)
	}
	nodes := max(1, r.integer("nodes", 1))
	each := r.integer("devices", 8) / nodes // of a node
	axes := []network.Axis{{Name: "node", Size: int(nodes)}, {Name: "idle", Size: 1}, {Name: "device", Size: int(each)}}
	if inside := int64(cluster.Links[0].Devices); nodes > 1 && each < inside {
		if axes[1].Size = int(inside / each); inside > 8 { // racks of several nodes
			axes = []network.Axis{{Name: "node", Size: int(r.integer("devices", 8))}, {Name: "idle", Size: 1}, {Name: "device", Size: 1}}
		}
	}
	mesh, err := network.NewMesh(cluster, axes)
	if err != nil {
		return 0, err
	}
	e, err := mesh.Estimate(kinds[r.Kind], r.integer("bytes", 0), "node", "device")
	return e.Time, err
}

// programOf is the program whose time is that of a row: one kernel.
func programOf(r *row) (string, error) {
	t, ok := elems[strings.ToLower(r.text("type", "f32"))]
	if !ok {
		return "", fmt.Errorf("%w for type %s", errKind, r.text("type", ""))
	}
	n := r.integer
	switch r.Kind {
	case "gemm":
		out := t
		if o, ok := elems[strings.ToLower(r.text("out", ""))]; ok && (t != "f16" && t != "bf16" || o == "f32") && o != "f64" {
			out = o
		}
		if strings.HasPrefix(t, "f8") && strings.HasPrefix(out, "f8") {
			out = t
		}
		trans := (r.text("trans", "nn") + "nn")[:2]
		dims := func(a, b int64, swap bool) string {
			if swap {
				a, b = b, a
			}
			if x := n("batch", 1); x > 1 {
				return fmt.Sprintf("tensor<%dx%dx%dx", x, a, b)
			}
			return fmt.Sprintf("tensor<%dx%dx", a, b)
		}
		a, b, y := dims(n("m", 0), n("k", 0), trans[0] == 't')+t+">", dims(n("k", 0), n("n", 0), trans[1] == 't')+t+">", dims(n("m", 0), n("n", 0), false)+out+">"
		return fmt.Sprintf("func.func @f(%%a: %s, %%b: %s) -> %s {\n  %%y = dm.matmul %%a, %%b, transpose_a = %v, transpose_b = %v : (%s, %s) -> %s\n  return %%y : %s\n}\n",
			a, b, y, trans[0] == 't', trans[1] == 't', a, b, y, y), nil
	case "attention":
		if strings.HasPrefix(t, "f8") || r.Params["window"] != nil {
			return "", fmt.Errorf("%w for attention in %s, or with a window", errKind, t)
		}
		b, h, d := n("batch", 1), n("heads", 1), n("head", 0)
		l := n("queries", n("length", 0))
		kl, kv := n("kv_length", n("length", 0)), n("kv_heads", h)
		q := fmt.Sprintf("tensor<%dx%dx%dx%dx%s>", b, h, l, d, t)
		k := fmt.Sprintf("tensor<%dx%dx%dx%dx%s>", b, kv, kl, d, t)
		s := fmt.Sprintf("tensor<%dx%dx%dxf32>", b, h, l)
		causal := r.flag("causal")
		forward := fmt.Sprintf("  %%y, %%lse = dm.attention %%q, %%k, %%v, causal = %v : (%s, %s, %s) -> (%s, %s)\n", causal, q, k, k, q, s)
		backward := fmt.Sprintf("  %%dq, %%dk, %%dv = dm.attention_grad %%q, %%k, %%v, %%y0, %%lse0, %%y0, causal = %v : (%s, %s, %s, %s, %s, %s) -> (%s, %s, %s)\n", causal, q, k, k, q, s, q, q, k, k)
		head := fmt.Sprintf("func.func @f(%%q: %s, %%k: %s, %%v: %s, %%y0: %s, %%lse0: %s)", q, k, k, q, s)
		switch r.text("direction", "forward") {
		case "forward":
			return head + " -> " + q + " {\n" + forward + "  return %y : " + q + "\n}\n", nil
		case "backward":
			return head + " -> (" + q + ", " + k + ", " + k + ") {\n" + backward + "  return %dq, %dk, %dv : " + q + ", " + k + ", " + k + "\n}\n", nil
		case "both":
			return head + " -> (" + q + ", " + q + ", " + k + ", " + k + ") {\n" + forward + backward + "  return %y, %dq, %dk, %dv : " + q + ", " + q + ", " + k + ", " + k + "\n}\n", nil
		}
	}
	return rowsProgram(r, t)
}
