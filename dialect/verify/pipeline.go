package verify

import (
	"slices"
	"strings"

	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/dialect/shard"
	"dmir/dialect/types"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// staged checks the attributes of o that divide a training step: dm.stage and dm.recompute.
func (v *verifier) staged(o *ir.Op) {
	if o.Verbatim {
		return
	}
	at := func(name string) source.Span { return origin.AttrSpan(o, v.m.Src, name) }
	if a := o.Attr(op.StageAttr); a != nil {
		n, ok := whole(a)
		switch {
		case o.Name == op.Func:
			v.report("DM198", at(op.StageAttr), "a function has no stage").Help = "write dm.stage on ops and calls in it"
		case !ok || n < 0:
			v.report("DM198", at(op.StageAttr), "dm.stage is %s, not the number of a stage", clip(a.String())).Help = "write dm.stage = 0"
		}
	}
	if a := o.Attr(op.RecomputeAttr); a != nil {
		n, numbered := whole(a)
		switch {
		case o.Name == op.Func:
			v.report("DM199", at(op.RecomputeAttr), "a function is not computed again as a whole").Help = "write dm.recompute on ops and calls in it"
		case a != types.Attr(types.Unit{}) && (!numbered || n < 1):
			v.report("DM199", at(op.RecomputeAttr), "dm.recompute is %s, and it has no value", clip(a.String())).Help = "write {dm.recompute}"
		}
	}
}

// whole is an integer of 64 bits; ok is false for anything else.
func whole(a types.Attr) (n int64, ok bool) {
	i, ok := a.(types.Int)
	return i.V, ok && (i.Elem == types.InvalidElem || i.Elem == types.I64)
}

// stages checks that the stages in the text of the function o do not go back.
func (v *verifier) stages(o *ir.Op) {
	b := o.Body(0)
	if b == nil {
		return
	}
	if p, before := op.StageBack(b.Ops); p != nil {
		n, _ := op.StageOf(p)
		last, _ := op.StageOf(before)
		d := v.report("DM198", origin.AttrSpan(p, v.m.Src, op.StageAttr), "stage %d follows stage %d", n, last)
		d.Help = "stages are numbered along the model: move the op, or give it a stage from " + types.Int{V: last}.String() + " on"
		d.Related = []diag.Related{{Span: origin.AttrSpan(before, v.m.Src, op.StageAttr), Message: "the later stage"}}
	}
}

// pipeline checks the attributes of the function o that make it a pipeline.
func (v *verifier) pipeline(o *ir.Op) {
	at := func(name string) source.Span { return origin.AttrSpan(o, v.m.Src, name) }
	if a := o.Attr(op.MicrobatchesAttr); a != nil {
		if n, ok := whole(a); !ok || n < 1 {
			v.report("DM199", at(op.MicrobatchesAttr), "dm.microbatches is %s, not a positive number", clip(a.String())).Help = "write dm.microbatches = 8 : i64"
			return
		}
	}
	axis, name := o.Attr(op.PipelineAttr), o.Attr(op.ScheduleAttr)
	if name != nil {
		word, ok := name.(types.Str)
		switch {
		case !ok || !slices.Contains(op.Schedules, string(word)):
			d := v.report("DM199", at(op.ScheduleAttr), "there is no schedule %s", clip(name.String()))
			d.Help = "the schedules are " + strings.Join(op.Schedules, ", ")
			if near := diag.Suggest(string(word), op.Schedules); near != "" {
				d.Help = "did you mean " + near + "? " + d.Help
				d.Fixes = []diag.Fix{{Title: "Write " + near, Safe: true, Edits: []diag.Edit{{Span: d.Span, Text: types.Str(near).String()}}}}
			}
			return
		case axis == nil:
			v.report("DM199", at(op.ScheduleAttr), "dm.schedule stands without dm.pipeline").Help = "name the axis of the mesh along which the stages lie: dm.pipeline = \"pipe\""
			return
		}
	}
	if axis != nil {
		v.pipelineAxis(o, axis, at(op.PipelineAttr))
	}
}

// pipelineAxis checks that axis, the value of dm.pipeline of the function o, is an axis of its mesh.
func (v *verifier) pipelineAxis(o *ir.Op, axis types.Attr, at source.Span) {
	f := v.m.Func(o.Str("sym_name"))
	if f == nil || f.Op != o {
		return
	}
	on, problem := shard.MeshOf(v.m, f)
	switch {
	case problem != nil || on == nil && v.unreadMesh():
		return // reported elsewhere
	case on == nil:
		d := v.report("DM199", at, "the function has dm.pipeline and no mesh")
		if d.Help = "define one, dm.mesh @pod {pipe = 4}, and where there are several divide a value over it"; len(mesh.All(v.m)) > 1 {
			d.Message = "the function has dm.pipeline, and its values do not tell which of the meshes it runs on"
		}
		return
	}
	var names []string
	for _, a := range on.Axes {
		names = append(names, a.Name)
	}
	word, ok := axis.(types.Str)
	if ok && slices.Contains(names, string(word)) {
		return
	}
	d := v.report("DM199", at, "dm.pipeline is %s, which is no axis of mesh @%s: it has %s", clip(axis.String()), on.Name, on)
	d.Help = "name an axis of the mesh"
	if near := diag.Suggest(string(word), names); near != "" {
		d.Help = "did you mean " + types.Str(near).String() + "?"
	}
}

// unreadMesh reports whether a mesh of the file has an error.
func (v *verifier) unreadMesh() bool {
	v.find("")
	for _, m := range v.meshes {
		if m == nil {
			return true
		}
	}
	return false
}
