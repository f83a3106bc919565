package plan

// passed is how often a value is converted on link k in a step.
func (m *model) passed(k *link, l load) float64 {
	again := 1.0
	if k.node >= 0 && k.phase != once {
		again = m.nodes[k.node].again(l.recompute)
	}
	if l.course != nil {
		if k.deferred {
			return l.course.least.once[k.layer]
		}
		return l.course.least.runs(k.phase, k.layer, false, again)
	}
	micro, single := m.grid.weights(l)
	if k.phase == once {
		return single * k.times
	}
	return micro * k.times * again
}

// conversions is what link k takes w times, by the choices at its ends; nil where all take nothing. Many choices give the value one
// layout, and each pair of layouts is priced once.
func (m *model) conversions(k *link, w float64) []float64 {
	have, of := layouts(m.vars[k.from].size(), func(i int) layout { return m.made(k, i) })
	want, to := layouts(m.vars[k.to].size(), func(i int) layout { return m.wanted(k, i) })
	each := m.grid.converting(m.values[k.value], have, want)
	m.work.Add("conversions", len(each))
	zero := true
	for i := range each {
		each[i] *= w
		zero = zero && each[i] == 0
	}
	if zero {
		return nil
	}
	table := make([]float64, 0, len(of)*len(to))
	for _, a := range of {
		row := each[a*len(want):][:len(want)]
		for _, b := range to {
			table = append(table, row[b])
		}
	}
	return table
}

// layouts are the different ones of n choices, and which of them each choice has.
func layouts(n int, at func(i int) layout) (all []layout, of []int) {
	of = make([]int, n)
	seen := map[layout]int{}
	for i := range of {
		l := at(i)
		k, ok := seen[l]
		if !ok {
			k = len(all)
			seen[l] = k
			all = append(all, l)
		}
		of[i] = k
	}
	return all, of
}

func transposed(t []float64, rows, cols int) []float64 {
	out := make([]float64, len(t))
	for a := range rows {
		for b := range cols {
			out[b*rows+a] = t[a*cols+b]
		}
	}
	return out
}
