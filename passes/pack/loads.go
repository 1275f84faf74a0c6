package pack

// loads is, by section, how many bytes are not placed yet: a tree over sections that answers where most are, with addition over ranges. What a node
// holds is relative to its parent: the larger of two siblings is 0, so the most below a node is the sum of the values from it up to the root.
type loads struct {
	size int // sections lie at size+1 and following: the queries go between two leaves outside the range
	rel  []int64
}

// fill starts with the load of each section.
func (l *loads) fill(load []int64) {
	if l.rel == nil {
		l.size = 1
		for l.size < len(load)+2 {
			l.size *= 2
		}
		l.rel = make([]int64, 2*l.size)
	}
	clear(l.rel)
	copy(l.rel[l.size+1:], load)
	for k := l.size - 1; k > 0; k-- {
		l.settle(k)
	}
}

// settle moves what the children of k have in common up into k.
func (l *loads) settle(k int) {
	a, b := &l.rel[2*k], &l.rel[2*k+1]
	m := max(*a, *b)
	*a, *b = *a-m, *b-m
	l.rel[k] += m
}

// take subtracts from the sections [a, e).
func (l *loads) take(a, e int32, bytes int64) {
	s, t := int(a)+l.size, int(e)+l.size+1
	for ; s^t != 1; s, t = s/2, t/2 {
		if s&1 == 0 {
			l.rel[s+1] -= bytes
		}
		if t&1 == 1 {
			l.rel[t-1] -= bytes
		}
		if s < l.size { // the children have changed
			l.settle(s)
			l.settle(t)
		}
	}
	if s < l.size {
		l.settle(s)
		l.settle(t)
	}
	for k := s / 2; k > 0; k /= 2 {
		l.settle(k)
	}
}

// most is the first of the sections [a, e) with the most bytes, and those.
func (l *loads) most(a, e int32) (section int32, bytes int64) {
	const absent = -infinite
	s, t := int(a)+l.size, int(e)+l.size+1
	left, right := int64(absent), int64(absent) // relative to the parents of s and t
	first, last := 0, 0                         // their nodes
	for ; s^t != 1; s, t = s/2, t/2 {
		if s&1 == 0 && l.rel[s+1] > left {
			left, first = l.rel[s+1], s+1
		}
		if t&1 == 1 && l.rel[t-1] >= right {
			right, last = l.rel[t-1], t-1
		}
		if left > absent {
			left += l.rel[s/2]
		}
		if right > absent {
			right += l.rel[t/2]
		}
	}
	if right > left {
		left, first = right, last
	}
	for s /= 2; s > 0; s /= 2 {
		left += l.rel[s]
	}
	for first < l.size {
		first *= 2
		if l.rel[first] < l.rel[first+1] {
			first++
		}
	}
	return int32(first - l.size - 1), left
}
