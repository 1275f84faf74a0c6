package memory

// cutNet is a network of whole capacities for a maximum flow (Dinic 1970). Any flow of it is a lower bound of every cut, so the bounds that rest on it need not trust that the
// flow is maximal.
type cutNet struct {
	first      []int32 // by node: its first arc, -1: none
	next, to   []int32 // by arc; arc a^1 is the opposite one
	room       []int64 // by arc
	level, now []int32
	queue      []int32
}

const (
	cutSource int32 = iota
	cutSink
)

func newCutNet() *cutNet { return &cutNet{first: []int32{-1, -1}} }

func (c *cutNet) node() int32 {
	c.first = append(c.first, -1)
	return int32(len(c.first) - 1)
}

// arc appends an arc and returns its number.
func (c *cutNet) arc(from, to int32, room int64) int32 {
	a := int32(len(c.to))
	c.to = append(c.to, to, from)
	c.room = append(c.room, room, 0)
	c.next = append(c.next, c.first[from], c.first[to])
	c.first[from], c.first[to] = a, a+1
	return a
}

// maximise sends as much flow as it can and returns how much that is. level then tells the side of the cut: -1 is that of the sink.
func (c *cutNet) maximise() (flow int64) {
	c.level, c.now = make([]int32, len(c.first)), make([]int32, len(c.first))
	for c.layer() {
		copy(c.now, c.first)
		for {
			f := c.push(cutSource, noLimit)
			if f == 0 {
				break
			}
			flow += f
		}
	}
	return flow
}

// layer numbers the nodes by their distance from the source and says whether the sink is reached.
func (c *cutNet) layer() bool {
	for i := range c.level {
		c.level[i] = -1
	}
	c.level[cutSource] = 0
	c.queue = append(c.queue[:0], cutSource)
	for k := 0; k < len(c.queue); k++ {
		u := c.queue[k]
		for a := c.first[u]; a >= 0; a = c.next[a] {
			if v := c.to[a]; c.room[a] > 0 && c.level[v] < 0 {
				c.level[v] = c.level[u] + 1
				c.queue = append(c.queue, v)
			}
		}
	}
	return c.level[cutSink] >= 0
}

// push sends up to limit from u towards the sink.
func (c *cutNet) push(u int32, limit int64) (sent int64) {
	if u == cutSink {
		return limit
	}
	for ; c.now[u] >= 0; c.now[u] = c.next[c.now[u]] {
		a := c.now[u]
		if c.room[a] == 0 || c.level[c.to[a]] != c.level[u]+1 {
			continue
		}
		f := c.push(c.to[a], min(limit-sent, c.room[a]))
		c.room[a] -= f
		c.room[a^1] += f
		if sent += f; sent == limit {
			return sent
		}
	}
	return sent
}
