package memory

import (
	"cmp"
	"fmt"
	"slices"
)

// This file is the simulator's execution of swaps; the lanes' clock is in bus.go.

// placeSwaps checks the swaps' positions and sorts them by the stages in which they act.
func (m *machine) placeSwaps() error {
	m.freeAt, m.inAt, m.outAt = make([][]int32, m.n+1), make([][]int32, m.n+1), make([][]int32, m.n+1)
	m.outNo, m.reused = make([]int, len(m.s.Swaps)), make([]bool, len(m.s.Swaps))
	last := make([]int32, len(m.p.Values)) // by value: its swap before, + 1
	for i := range m.s.Swaps {
		s, k := &m.s.Swaps[i], int32(i)
		if err := m.checkSwap(s); err != nil {
			return err
		}
		if i > 0 {
			if b := &m.s.Swaps[i-1]; b.After > s.After || b.After == s.After && b.Value >= s.Value {
				return fmt.Errorf("swap of value %d after stage %d: not in order", s.Value, s.After)
			}
		}
		if l := last[s.Value]; l > 0 && !s.Wraps && !s.Write {
			m.reused[l-1] = true
		}
		last[s.Value] = k + 1
		m.freeAt[s.Free] = append(m.freeAt[s.Free], k)
		m.inAt[s.Before] = append(m.inAt[s.Before], k)
		if s.After < 0 {
			m.outFirst = append(m.outFirst, k)
		} else {
			m.outAt[s.After] = append(m.outAt[s.After], k)
		}
	}
	byFree := func(a, b int32) int {
		return cmp.Or(cmp.Compare(m.s.Swaps[a].Free, m.s.Swaps[b].Free), cmp.Compare(m.s.Swaps[a].Value, m.s.Swaps[b].Value))
	}
	byUse := func(a, b int32) int {
		return cmp.Or(cmp.Compare(m.s.Swaps[a].Use, m.s.Swaps[b].Use), cmp.Compare(m.s.Swaps[a].Value, m.s.Swaps[b].Value))
	}
	slices.SortFunc(m.outFirst, byFree)
	for t := range m.outAt {
		slices.SortFunc(m.outAt[t], byFree)
		slices.SortFunc(m.inAt[t], byUse)
	}
	return nil
}

func (m *machine) checkSwap(s *Swap) error {
	if s.Value < 0 || int(s.Value) >= len(m.p.Values) {
		return fmt.Errorf("swap of value %d: no such value", s.Value)
	}
	x := &m.p.Values[s.Value]
	if m.p.Lanes == nil {
		return fmt.Errorf("swap of value %d: swapping is not allowed", s.Value)
	}
	if s.Wraps {
		if s.Before < 0 || s.Before > s.Use || s.Use > s.After || s.After >= s.Free || s.Free > m.n {
			return fmt.Errorf("swap of persistent value %d: stages before %d, use %d, after %d, free %d are not in order", s.Value, s.Before, s.Use, s.After, s.Free)
		}
		if m.s.HostHome == nil || int(s.Value) >= len(m.s.HostHome) || !m.s.HostHome[s.Value] {
			return fmt.Errorf("swap of value %d crosses the end of the step, yet its home is not the host", s.Value)
		}
		if s.Write != (x.Becomes >= 0) {
			return fmt.Errorf("swap of persistent value %d across the end of the step: it is written exactly if its content changes", s.Value)
		}
		return nil
	}
	if x.NoSwap {
		return fmt.Errorf("swap of value %d, which must not be swapped", s.Value)
	}
	if s.After < -1 || s.After >= s.Free || s.Free > s.Before || s.Before > s.Use || s.Use >= m.n {
		return fmt.Errorf("swap of value %d: stages after %d, free %d, before %d, use %d are not in order", s.Value, s.After, s.Free, s.Before, s.Use)
	}
	return nil
}

// store issues the copy out of swap k at the end of its stage.
func (m *machine) store(k int32) error {
	s := &m.s.Swaps[k]
	x := &m.p.Values[s.Value]
	q := m.stored(s)
	if m.where[q] != onDevice || m.dead[q] || m.leaving[q] != 0 {
		return fmt.Errorf("swap of value %d after stage %d: its content is not on the device or already leaves it", s.Value, s.After)
	}
	m.leaving[q] = k + 1
	if !s.Write {
		if !m.onHost[s.Value] {
			return fmt.Errorf("swap of value %d after stage %d: the host does not hold the content, and it is not written", s.Value, s.After)
		}
		return nil
	}
	if !s.Wraps {
		if m.onHost[s.Value] {
			return fmt.Errorf("swap of value %d after stage %d: the host holds the content, yet it is written again", s.Value, s.After)
		}
		m.host += x.Bytes
		m.res.HostPeakBytes = max(m.res.HostPeakBytes, m.host)
	}
	m.outNo[k] = m.bus.issue(m.clock, laneOut, x.Bytes)
	m.res.SwapOutBytes += x.Bytes
	return nil
}

// stored is the value that swap s takes off the device: the Becomes of a persistent value at the end of the step.
func (m *machine) stored(s *Swap) int32 {
	if b := m.p.Values[s.Value].Becomes; s.Wraps && b >= 0 {
		return b
	}
	return s.Value
}

// free gives the device bytes of swap k back, once the copy out is complete.
func (m *machine) free(k int32) error {
	s := &m.s.Swaps[k]
	q := m.stored(s)
	if m.leaving[q] != k+1 || m.where[q] != onDevice {
		return fmt.Errorf("swap of value %d: its bytes are freed before stage %d, yet it is not being swapped out", s.Value, s.Free)
	}
	if s.Write {
		m.clock = m.bus.wait(m.clock, laneOut, m.outNo[k])
		m.onHost[s.Value] = true
	}
	if s.Wraps && q != s.Value && !m.placed[s.Value] {
		return fmt.Errorf("swap of persistent value %d: value %d is not in its place", s.Value, q)
	}
	m.leaving[q] = 0
	m.where[q] = swapped
	m.device -= m.p.Values[q].Bytes
	return nil
}

// load takes device bytes for swap k and issues its copy in.
func (m *machine) load(k int32) error {
	s := &m.s.Swaps[k]
	if m.where[s.Value] != swapped || !m.onHost[s.Value] {
		return fmt.Errorf("swap of value %d: copied in before stage %d, yet it is not on the host alone", s.Value, s.Before)
	}
	m.where[s.Value] = arriving
	m.coming[s.Value] = k
	m.device += m.p.Values[s.Value].Bytes
	m.copyIn[s.Value] = m.bus.issue(m.clock, laneIn, m.p.Values[s.Value].Bytes)
	m.res.SwapInBytes += m.p.Values[s.Value].Bytes
	return nil
}

// arrive waits for the copy in of v, if one is under way.
func (m *machine) arrive(v, stage int32) error {
	if m.where[v] != arriving {
		return nil
	}
	k := m.coming[v]
	s := &m.s.Swaps[k]
	if s.Use != stage {
		return fmt.Errorf("swap of value %d: first used again in stage %d, not %d", v, stage, s.Use)
	}
	m.clock = m.bus.wait(m.clock, laneIn, m.copyIn[v])
	m.where[v] = onDevice
	if x := &m.p.Values[v]; !s.Wraps && !m.home(v) && !x.constant() && !x.OnHost && !m.reused[k] {
		m.host -= x.Bytes
		m.onHost[v] = false
	}
	return nil
}
