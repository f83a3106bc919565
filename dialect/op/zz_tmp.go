package op

const (
	ShardingAttr     = "dm.sharding"
	RecomputeAttr    = "dm.recompute"
	ScheduleAttr     = "dm.schedule"
	MicrobatchesAttr = "dm.microbatches"
	PipelineAttr     = "dm.pipeline"
	StageAttr        = "dm.stage"
)
