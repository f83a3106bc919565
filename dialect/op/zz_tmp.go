package op

const (
	ShardingAttr  = "dm.sharding"
	RecomputeAttr = "dm.recompute"
	ScheduleAttr  = "dm.schedule"
)
