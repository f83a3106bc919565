package sass

import "strings"

// Counts are the instructions that a thread issues in a part of a kernel.
type Counts struct {
	Instrs  int
	Slots   float64 // of the busiest pipe, in issue slots: 1 of them holds one instruction of any kind
	Pipe    string  // which one that is: "issue", "alu", "fma", "imad", "xu", "f64", "lsu"
	Bytes   int     // that loads and stores of global memory move
	Vector  int     // of them by accesses of 16 bytes
	Wide    int     // additions, multiplications, shifts and comparisons of 64-bit integers
	Float64 int     // instructions of double precision
	Tensor  int     // HMMA, HGMMA and similar
	Bulk    int     // loads and stores by the copy engine
	Local   int     // accesses of local memory
}

// rates are how many instructions of a thread the pipes of a multiprocessor
// take in a clock, beside the 128 that its four schedulers issue: CUDA C++
// Programming Guide, "Throughput of Native Arithmetic Instructions", compute
// capability 9.0. 32-bit multiplication with a sum of 64 bits passes twice.
var rates = map[string]float64{"alu": 64, "fma": 128, "imad": 64, "xu": 16, "f64": 64, "lsu": 32}

// Lanes is how many multiply-adds of f32 a multiprocessor of an architecture computes in a clock.
func Lanes(arch string) float64 { return rate(arch, "fma") }

// rate is that of a pipe on an architecture. Before compute capability 8.6 a multiprocessor has 64 lanes for
// multiply-adds of f32 and of integers; only those for data centers have lanes for double precision.
func rate(arch, pipe string) float64 {
	early := arch == "sm_70" || arch == "sm_80"
	switch {
	case pipe == "fma" && early:
		return 64
	case pipe == "f64" && early:
		return 32
	case pipe == "f64" && (arch == "sm_86" || arch == "sm_89" || arch == "sm_120"):
		return 2
	}
	return rates[pipe]
}

// pipe is the pipe that limits an instruction and how many passes it takes; "" if
// only the issue rate limits it.
func pipe(i Instr) (name string, passes float64) {
	switch i.Base() {
	case "IADD3", "IADD", "VIADD", "VIADDMNMX", "LOP3", "SHF", "SHL", "SHR", "ISETP", "FSETP", "ICMP", "SEL", "FSEL", "IMNMX", "VIMNMX", "FMNMX",
		"FMNMX3", "PRMT", "LEA", "IABS", "PLOP3", "F2FP", "I2FP", "BMSK", "SGXT", "HMNMX2", "HSETP2", "FCHK", "LOP", "FLO":
		return "alu", 1
	case "IMAD":
		if i.Has("WIDE") || i.Has("HI") {
			return "imad", 2
		}
		return "imad", 1
	case "MUFU", "F2F", "F2I", "I2F", "FRND", "POPC", "BREV":
		return "xu", 1
	case "FADD", "FMUL", "FFMA":
		return "fma", 1
	case "DADD", "DMUL", "DFMA", "DSETP", "DMNMX":
		return "f64", 1
	case "LDG", "STG", "LDS", "STS", "LDL", "STL", "SHFL", "ATOMG", "ATOMS", "RED", "LDSM", "STSM", "LDGSTS", "MATCH":
		return "lsu", 1
	}
	return "", 0
}

// moved is how many bytes of global memory an instruction moves.
func moved(i Instr) int {
	switch i.Base() {
	case "LDG", "STG", "LDGSTS", "RED", "ATOMG":
	default:
		return 0
	}
	switch {
	case i.Has("128"):
		return 16
	case i.Has("64"):
		return 8
	case i.Has("U16") || i.Has("S16"):
		return 2
	case i.Has("U8") || i.Has("S8"):
		return 1
	}
	return 4
}

// wide reports whether an instruction is arithmetic of 64-bit integers, beyond
// what an address of one access needs (one IMAD.WIDE or LEA).
func wide(i Instr) bool {
	switch i.Base() {
	case "IADD3", "IMAD", "ISETP", "LEA", "IADD":
		return i.Has("X") || i.Has("EX") || i.Has("64")
	case "SHF":
		return i.Has("U64") || i.Has("S64")
	}
	return false
}

func tensor(i Instr) bool {
	switch i.Base() {
	case "HMMA", "HGMMA", "IMMA", "IGMMA", "QGMMA", "QMMA", "BMMA", "DMMA", "UTCHMMA", "UTCQMMA":
		return true
	}
	return false
}

// Count counts the instructions of a region that are reached without a call,
// but those of skip. Of the arms of a switch it counts the longest.
func (k *Kernel) Count(r Region, skip ...Region) Counts {
	var c Counts
	busy := map[string]float64{}
	live := k.live()
	skip = append(skip, k.otherArms(r)...)
	for at := r.From; at < r.To && at < len(k.Code); at++ {
		if !live[at] || inside(at, skip) {
			continue
		}
		i := k.Code[at]
		if i.Base() == "NOP" {
			continue
		}
		c.Instrs++
		p, n := pipe(i)
		if p != "" {
			busy[p] += n * 128 / rate(k.Arch, p)
		}
		if p == "imad" && rate(k.Arch, "fma") < 128 {
			busy["fma"] += n * 128 / rate(k.Arch, "fma") // the same lanes
		}
		if p == "f64" {
			c.Float64++
		}
		b := moved(i)
		c.Bytes += b
		if b == 16 {
			c.Vector += b
		}
		if wide(i) {
			c.Wide++
		}
		if tensor(i) {
			c.Tensor++
		}
		switch base := i.Base(); {
		case base == "LDL" || base == "STL":
			c.Local++
		case strings.HasPrefix(base, "UTMA") || strings.HasPrefix(base, "UBLK"):
			c.Bulk++
		}
	}
	c.Slots, c.Pipe = float64(c.Instrs), "issue"
	for _, p := range []string{"alu", "imad", "fma", "xu", "f64", "lsu"} {
		if busy[p] > c.Slots {
			c.Slots, c.Pipe = busy[p], p
		}
	}
	return c
}

// otherArms are the arms of switches in a region that are not the longest of
// their switch. An arm lies between a branch forwards and its target, and is executed if
// a register equals a constant, another for each arm of the switch:
//
//	ISETP.NE.AND P5, PT, R10, 0x1, PT
//	@P5 BRA `(.L_x_6)
func (k *Kernel) otherArms(r Region) (out []Region) {
	type compared struct{ register, constant string }
	held := map[string]compared{}  // what a predicate is the inequality of
	longest := map[string]Region{} // by register
	known := map[compared]bool{}
	for at := r.From; at < r.To && at < len(k.Code); at++ {
		i := k.Code[at]
		if arm := (Region{From: at + 1, To: i.Target}); i.Base() == "BRA" && arm.From < arm.To && arm.To <= r.To {
			is, ok := held[strings.TrimPrefix(i.Guard, "@")]
			if !ok || known[is] {
				continue
			}
			known[is] = true
			other := arm
			if was := longest[is.register]; arm.To-arm.From > was.To-was.From {
				longest[is.register], other = arm, was
			}
			out = append(out, other)
			continue
		}
		args := strings.Split(strings.ReplaceAll(i.Args, ".reuse", ""), ", ")
		if delete(held, args[0]); i.Op == "ISETP.NE.AND" && len(args) == 5 && (args[3] == "RZ" || strings.HasPrefix(args[3], "0x")) {
			held[args[0]] = compared{args[2], args[3]}
		}
	}
	return out
}

func inside(at int, rs []Region) bool {
	for _, r := range rs {
		if r.From <= at && at < r.To {
			return true
		}
	}
	return false
}

// Hot is the part of a kernel that moves most of its bytes: of the innermost
// regions with accesses of global memory that with the most of them. Loops in it
// that move nothing are a part of it, counted once.
func (k *Kernel) Hot() (Region, Counts) {
	regions := k.Regions()
	moves := func(r Region) bool { return k.Count(r).Bytes > 0 }
	var hot Region
	var counts Counts
	found := false
	for _, r := range regions {
		var skip []Region
		for _, o := range regions {
			if o != r && r.From <= o.From && o.To <= r.To && moves(o) {
				skip = append(skip, o)
			}
		}
		c := k.Count(r, skip...)
		if c.Bytes == 0 {
			continue
		}
		if !found || r.Depth > hot.Depth || r.Depth == hot.Depth && c.Bytes > counts.Bytes {
			hot, counts, found = r, c, true
		}
	}
	if !found {
		return regions[0], k.Count(regions[0])
	}
	return hot, counts
}
