package op

import (
	"slices"

	"dmir/dialect/ir"
)

// Bucket is the collectives of o, a dm.kernel that holds nothing else: devices run them as one, so that their latency is taken
// once. They agree in all but what they move (BucketKey), and none reads what another gives. It is nil of other ops.
func Bucket(o *ir.Op) []*ir.Op {
	if !IsBucket(o) {
		return nil
	}
	body := o.Body(0)
	members := body.Ops[:len(body.Ops)-1]
	if len(members) < 2 || !Ends(body.Ops[len(body.Ops)-1]) {
		return nil
	}
	key := BucketKey(members[0])
	for _, m := range members {
		if key == "" || BucketKey(m) != key || m.Operands[0].Op != nil && m.Operands[0].Op.Parent == body {
			return nil
		}
	}
	return members
}

// IsBucket reports whether o, which is valid, is a Bucket.
func IsBucket(o *ir.Op) bool {
	return o.Name == Kernel && o.Body(0) != nil && len(o.Body(0).Ops) > 2 && Of(o.Body(0).Ops[0]).Is(Collective)
}

// BucketKey is the same for collectives that may be of one Bucket, and empty for those that may be of none.
func BucketKey(o *ir.Op) string {
	if !slices.Contains(bucketed, o.Name) || !Valid(o) || len(o.Operands) != 1 || o.In(0) == nil || o.Attr(RegatheredAttr) != nil {
		return ""
	}
	key := o.Name + " " + Str(o, "reduction") + " " + o.In(0).Elem.String()
	for _, a := range Strings(o, "axes") {
		key += " " + a
	}
	return key
}

var bucketed = []string{AllReduce, ReduceScatter, AllGather}
