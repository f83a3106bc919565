package verify

import (
	"slices"

	"dmir/dialect/ir"
	"dmir/dialect/mesh"
	"dmir/dialect/op"
	"dmir/dialect/origin"
	"dmir/dialect/shard"
	"dmir/dialect/types"
	"dmir/syntax/diag"
	"dmir/syntax/source"
)

// stages checks that the stages in the text of the function o do not go back.
func (v *verifier) stages(o *ir.Op, marked []*ir.Op) {
	if b := o.Body(0); marked == nil && b != nil {
		marked = b.Ops
	}
	if p, before := op.StageBack(marked); p != nil {
		n, _ := op.StageOf(p)
		last, _ := op.StageOf(before)
		d := v.report("DM198", origin.AttrSpan(p, v.m.Src, op.StageAttr), "stage %d follows stage %d", n, last)
		d.Help = "stages are numbered along the model: move the op, or give it a stage from " + types.Int{V: last}.String() + " on"
		d.Related = []diag.Related{{Span: origin.AttrSpan(before, v.m.Src, op.StageAttr), Message: "the later stage"}}
	}
}

// cut checks that o is a loop that can be cut into n stages. Where its number of iterations has no number yet, that is seen when it has.
func (v *verifier) cut(o *ir.Op, n int) {
	if trips, ok := op.Trips(o); o.Name == op.Scan && ok && !trips.IsConst() {
		return
	}
	if msg, help := op.CutProblem(o, n); msg != "" {
		v.report("DM198", origin.AttrNameSpan(o, v.m.Src, op.StagesAttr), "%s", msg).Help = help
	}
}

// pipeline checks the attributes of the function o that make it a pipeline.
func (v *verifier) pipeline(o *ir.Op, on func() (*mesh.Mesh, *shard.Problem)) {
	at := func(name string) source.Span { return origin.AttrSpan(o, v.m.Src, name) }
	axis := o.Attr(op.PipelineAttr)
	if name := o.Attr(op.ScheduleAttr); name != nil && op.LookupAttr(op.ScheduleAttr).Is(name) && axis == nil {
		v.report("DM199", at(op.ScheduleAttr), "dm.schedule stands without dm.pipeline").Help = "name the axis of the mesh along which the stages lie: dm.pipeline = \"pipe\""
		return
	}
	if axis != nil {
		v.pipelineAxis(o, axis, at(op.PipelineAttr), on)
	}
}

// pipelineAxis checks that axis, the value of dm.pipeline of the function o, is an axis of its mesh.
func (v *verifier) pipelineAxis(o *ir.Op, axis types.Attr, at source.Span, find func() (*mesh.Mesh, *shard.Problem)) {
	f := v.m.Func(o.Str("sym_name"))
	if f == nil || f.Op != o {
		return
	}
	on, problem := find()
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
