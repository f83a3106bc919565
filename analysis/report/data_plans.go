package report

// Plans are the plans that a search found for a training step: for one number of devices, or for
// several in a sweep.
type Plans struct {
	Model   []Fact       `json:"model"`   // what the step computes
	Results []PlanResult `json:"results"` // by number of devices
}

// Fact is a figure with its name.
type Fact struct {
	Name  string `json:"name"`
	Label string `json:"label"`
}

// PlanResult is the plans for one number of devices. Times are those of a step.
type PlanResult struct {
	Devices      int       `json:"devices"`
	Plans        []PlanRow `json:"plans"` // the best one first
	Limit        int64     `json:"memory_limit_bytes"`
	LimitLabel   string    `json:"memory_limit_label"`
	Searched     int       `json:"searched"` // settings that were looked at
	BoundNs      int64     `json:"bound_ns"` // no plan of the space takes less
	BoundLabel   string    `json:"bound_label"`
	GapLabel     string    `json:"gap_label"` // how far the best plan may be from the best there is, as a share of it
	ElapsedLabel string    `json:"elapsed_label"`

	// Of the best plan; 0 and "" without one.
	TimeNs    int64   `json:"time_ns"`
	TimeLabel string  `json:"time_label"`
	Cost      float64 `json:"device_ns_per_token"`
	CostLabel string  `json:"cost_label"`
}

// PlanRow is a plan.
type PlanRow struct {
	Rank         int         `json:"rank"` // from 1
	Axes         string      `json:"axes"` // "pipe 4 × data 2 × tensor 8"
	Names        []string    `json:"names"`
	Chunks       int         `json:"chunks"` // stages on each device of the pipeline
	Microbatches int         `json:"microbatches"`
	Schedule     string      `json:"schedule"` // "" without a pipeline
	Recompute    string      `json:"recompute"`
	TimeNs       int64       `json:"time_ns"`
	TimeLabel    string      `json:"time_label"`
	Slower       string      `json:"slower_label"` // than the best plan: "+4.2 %"; "" of the best one
	ComputeNs    int64       `json:"compute_ns"`
	ComputeLabel string      `json:"compute_label"`
	ExposedNs    int64       `json:"exposed_ns"` // communication that nothing hides
	ExposedLabel string      `json:"exposed_label"`
	BubbleNs     int64       `json:"bubble_ns"` // in which the pipeline waits
	BubbleLabel  string      `json:"bubble_label"`
	BubbleShare  string      `json:"bubble_share_label"`
	OtherNs      int64       `json:"other_ns"` // the rest of the time
	OtherLabel   string      `json:"other_label"`
	Tokens       float64     `json:"tokens_per_s"`
	TokensLabel  string      `json:"tokens_label"`
	MFU          float64     `json:"model_flop_utilization"`
	MFULabel     string      `json:"mfu_label"`
	Memory       int64       `json:"memory_bytes"` // of the device that holds most
	MemoryLabel  string      `json:"memory_label"`
	MemoryShare  string      `json:"memory_share_label"` // of the limit
	MemoryParts  []PlanPart  `json:"memory_parts"`
	Sent         []SentOn    `json:"sent"` // by a device in a step
	SentBytes    int64       `json:"sent_bytes"`
	SentLabel    string      `json:"sent_label"`
	Gap          float64     `json:"gap"` // to the bound of plans with these axes, micro-batches and schedule, as a share of the time
	GapLabel     string      `json:"gap_label"`
	Stages       []PlanStage `json:"stages"`
	Why          string      `json:"why"` // against the best plan
	Pipeline     *Pipeline   `json:"pipeline,omitempty"`
}

// PlanPart is a part of what a device holds.
type PlanPart struct {
	Name  string `json:"name"` // "parameters"
	Bytes int64  `json:"bytes"`
	Label string `json:"label"`
}

// PlanStage is what the devices at one place of the pipeline run.
type PlanStage struct {
	Place
	Layers        int    `json:"layers"`
	ForwardLabel  string `json:"forward_label"`  // for one micro-batch
	BackwardLabel string `json:"backward_label"` // with the gradient of weights
	WeightLabel   string `json:"weight_label"`   // the part of it that is the gradient of weights
	TransferLabel string `json:"transfer_label"` // of what it sends on
	OnceLabel     string `json:"once_label"`     // once in a step: gradients reduced, parameters updated
	Memory        int64  `json:"memory_bytes"`
	MemoryLabel   string `json:"memory_label"`
	MemoryShare   string `json:"memory_share_label"` // of the limit
}

// Pipeline is what each device at a place of a pipeline does in a step.
type Pipeline struct {
	TimeNs int64          `json:"time_ns"`
	Micro  int            `json:"microbatches"`
	Lanes  []PipelineLane `json:"lanes"` // by place
}

// PipelineLane is the tasks of a device, in order, in columns. A pipeline of very many tasks has the
// shares of equal parts of the step instead of them.
type PipelineLane struct {
	Stages       []int          `json:"stages"`
	Kinds        string         `json:"kinds"`      // a letter for each task: F, B or W
	Stage        []int          `json:"stage"`      // of each task; null where the device has one stage
	Micro        []int          `json:"microbatch"` // of each task
	GapNs        []int64        `json:"gap_ns"`     // the idle time before each task
	RunNs        []int64        `json:"run_ns"`     // the time that each task takes
	Shares       *PipelineShare `json:"shares,omitempty"`
	OnceStartNs  int64          `json:"once_start_ns"` // gradients are reduced and parameters updated
	OnceEndNs    int64          `json:"once_end_ns"`
	IdleLabel    string         `json:"idle_label"`
	ExposedLabel string         `json:"exposed_label"` // the part of it that is due to transfers
	BubbleLabel  string         `json:"bubble_label"`
	InFlight     int            `json:"in_flight"` // the most micro-batches whose activations it holds
}

// PipelineShare is how much of each of equally long parts of a step goes to tasks of a kind, in percent.
type PipelineShare struct {
	Forward  []int `json:"forward_percent"`
	Backward []int `json:"backward_percent"`
	Weight   []int `json:"weight_percent"`
}
