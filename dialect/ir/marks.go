package ir

// Marks are the attributes that tell what part of a training step an op belongs to. A new op takes them over from
// the op that it stands for (Builder.At).
var Marks = []string{StageAttr, MicroAttr, BackwardAttr, RecomputeAttr, RecomputedAttr, RegatheredAttr, TaskAttr}

// The marks. Package op says what they mean.
const (
	StageAttr      = "dm.stage"
	MicroAttr      = "dm.micro"
	BackwardAttr   = "dm.backward"
	RecomputeAttr  = "dm.recompute"
	RecomputedAttr = "dm.recomputed"
	RegatheredAttr = "dm.regathered"
	TaskAttr       = "dm.task"
)

// CopyMarks gives o the marks of from that it has not.
func (o *Op) CopyMarks(from *Op) {
	for _, name := range Marks {
		if a := from.Attr(name); a != nil && o.Attr(name) == nil {
			o.SetAttr(name, a)
		}
	}
}
