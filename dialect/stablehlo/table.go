package stablehlo

// conversions are those of the ops by name.
var conversions map[string]conversion

// operands are how many an op has at least: one where nothing stands here.
var operands = map[string]int{
	"composite": 0, "constant": 0, "custom_call": 0, "dynamic_update_slice": 2, "gather": 2, "global.load": 0, "iota": 0,
	"optimization_barrier": 0, "pad": 2, "reduce": 2, "reduce_window": 2, "return": 0, "scatter": 3, "while": 0,
}

// resultless are the ops that may have no result.
var resultless = map[string]bool{
	"case": true, "composite": true, "custom_call": true, "if": true, "optimization_barrier": true, "return": true, "while": true,
}

func init() {
	conversions = map[string]conversion{
		"bitcast_convert": convertBitcast, "broadcast_in_dim": convertBroadcast, "dynamic_broadcast_in_dim": convertBroadcast, "case": convertCase, "clamp": convertClamp,
		"compare": convertCompare, "composite": convertComposite, "concatenate": convertConcatenate, "constant": convertConstant,
		"convert": convertConvert, "convolution": convertConvolution, "custom_call": convertCustomCall, "dot": convertDot,
		"dot_general": convertDotGeneral, "dynamic_slice": convertDynamicSlice, "dynamic_update_slice": convertDynamicUpdateSlice,
		"gather": convertGather, "if": convertIf, "iota": convertIota, "is_finite": convertFinite,
		"optimization_barrier": convertSame, "pad": convertPad, "reduce": convertReduce,
		"reduce_precision": convertReducePrecision, "reduce_window": convertReduceWindow, "reshape": convertReshape,
		"return": convertReturn, "reverse": convertReverse, "rng": convertRng, "batch_norm_inference": convertBatchNormInference, "round_nearest_afz": convertRoundAway, "scatter": convertScatter,
		"select":     convertSelect,
		"shift_left": convertShift, "shift_right_logical": convertShift, "shift_right_arithmetic": convertShift,
		"popcnt": convertPopcnt, "count_leading_zeros": convertLeadingZeros, "select_and_scatter": convertSelectAndScatter, "slice": convertSlice, "sort": convertSort,
		"global.load": convertLoad, "global.load.indirect": convertLoad,
		"square": convertSquare, "erfc": convertErfc,
		"tan": convertTan, "transpose": convertTranspose, "while": convertWhile,
	}
	for name := range unary {
		conversions[name] = convertUnary
	}
	for name := range binary {
		conversions[name] = convertBinary
	}
}
