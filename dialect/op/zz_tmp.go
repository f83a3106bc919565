package op

const (
	RecomputeAttr = "dm.recompute"
	ScheduleAttr  = "dm.schedule"
)
