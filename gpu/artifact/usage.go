package artifact

// Usage is the resources of one kernel, as the tool chain reports them.
type Usage struct {
	Name        string
	Registers   int // of a thread
	Shared      int // bytes of static shared memory of a block
	SpillStores int // bytes that a thread writes because it has too few registers
	SpillLoads  int // bytes that it reads back
	Stack       int // bytes of local memory of a thread
	Constant    int // bytes of constant memory, the parameters among them
}

// Spills reports whether the kernel keeps registers in memory.
func (u *Usage) Spills() bool { return u.SpillStores > 0 || u.SpillLoads > 0 }
