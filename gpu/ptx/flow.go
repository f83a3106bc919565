package ptx

// next are the instructions that may follow instruction i; len(list) is the end.
func next(list []op, i int) (a, b int) {
	o := &list[i]
	switch {
	case o.kind == opBranch && o.guard < 0:
		return o.target, o.target
	case o.kind == opBranch:
		return i + 1, o.target
	case o.kind == opExit && o.guard < 0:
		return len(list), len(list)
	case o.kind == opExit:
		return i + 1, len(list)
	}
	return i + 1, i + 1
}

// postDominators is, for each branch, the nearest instruction that every path
// from it to the end passes; len(list) is the end. It is the algorithm of Cooper,
// Harvey and Kennedy over basic blocks, backwards. For instructions that are no
// branches it is the next.
func postDominators(list []op) []int {
	n := len(list)
	start := make([]bool, n+1) // of blocks
	start[0], start[n] = true, true
	for i := range list {
		if k := list[i].kind; k == opBranch || k == opExit {
			a, b := next(list, i)
			start[a], start[b], start[min(i+1, n)] = true, true, true
		}
	}
	var first []int
	block := make([]int, n+1)
	for i := 0; i <= n; i++ {
		if start[i] {
			first = append(first, i)
		}
		block[i] = len(first) - 1
	}
	end := len(first) - 1 // the block of the end
	succ := make([][]int, end+1)
	pred := make([][]int, end+1)
	for b := range end {
		x, y := next(list, first[b+1]-1)
		succ[b] = append(succ[b], block[x])
		if y != x {
			succ[b] = append(succ[b], block[y])
		}
		for _, s := range succ[b] {
			pred[s] = append(pred[s], b)
		}
	}
	order, number := reverse(pred, end)
	parent := make([]int, end+1)
	for b := range parent {
		parent[b] = -1
	}
	parent[end] = end
	for changed := true; changed; {
		changed = false
		for _, b := range order {
			if b == end {
				continue
			}
			best := -1
			for _, s := range succ[b] {
				if parent[s] < 0 {
					continue
				}
				if best < 0 {
					best = s
					continue
				}
				for x := s; x != best; {
					for number[x] < number[best] {
						x = parent[x]
					}
					for number[best] < number[x] {
						best = parent[best]
					}
				}
			}
			if best >= 0 && parent[b] != best {
				parent[b], changed = best, true
			}
		}
	}
	after := make([]int, n)
	for i := range list {
		after[i] = min(i+1, n)
		if list[i].kind == opBranch {
			if after[i] = n; parent[block[i]] >= 0 {
				after[i] = first[parent[block[i]]]
			}
		}
	}
	return after
}

// reverse is the reverse post-order of the reversed graph from end, and each block's
// number, greatest first, in it.
func reverse(pred [][]int, end int) (order, number []int) {
	number = make([]int, len(pred))
	seen := make([]bool, len(pred))
	type frame struct{ at, child int }
	stack := []frame{{end, 0}}
	seen[end] = true
	var post []int
	for len(stack) > 0 {
		f := &stack[len(stack)-1]
		if f.child < len(pred[f.at]) {
			p := pred[f.at][f.child]
			f.child++
			if !seen[p] {
				seen[p] = true
				stack = append(stack, frame{p, 0})
			}
			continue
		}
		number[f.at] = len(post)
		post = append(post, f.at)
		stack = stack[:len(stack)-1]
	}
	for i := len(post) - 1; i >= 0; i-- {
		order = append(order, post[i])
	}
	return order, number
}

// reaches reports whether a path leads from instruction `from` to `to` without
// passing `without`, and how many instructions it has looked at.
func reaches(list []op, from, to, without int) (found bool, looked int) {
	seen := make([]bool, len(list)+1)
	todo := []int{from}
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		looked++
		if i == to {
			return true, looked
		}
		if i == len(list) || i == without || seen[i] {
			continue
		}
		seen[i] = true
		a, b := next(list, i)
		todo = append(todo, a, b)
	}
	return false, looked
}
