package metrics

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Progress shows how far a run is: on a terminal one line that is rewritten several times a second, elsewhere a line now and then. A nil
// *Progress shows nothing.
type Progress struct {
	w        io.Writer
	terminal bool
	every    time.Duration
	last     time.Time // of the last showing
	begin    time.Time // of the run
	first    int64     // steps done at begin
	width    int       // of the line on the terminal
}

// NewProgress writes to w; terminal says whether lines can be rewritten there. A nil w gives a nil Progress.
func NewProgress(w io.Writer, terminal bool) *Progress {
	if w == nil {
		return nil
	}
	p := &Progress{w: w, terminal: terminal, every: 10 * time.Second}
	if terminal {
		p.every = 200 * time.Millisecond
	}
	return p
}

// Begin notes when the run began, with so many steps done.
func (p *Progress) Begin(step int64, now time.Time) {
	if p != nil {
		p.begin, p.last, p.first = now, now, step
	}
}

// Step shows a finished step of total if a showing is due.
func (p *Progress) Step(s *Step, total int64, now time.Time) {
	if p == nil || now.Sub(p.last) < p.every {
		return
	}
	p.last = now
	done := s.Step + 1
	line := fmt.Sprintf("step %d/%d  loss %.4g  lr %.3g  %.4g samples/s  ETA %s", done, total, s.Loss, s.LR, s.SamplesPerSecond, clock(p.eta(done, total, now)))
	if !p.terminal {
		fmt.Fprintln(p.w, line)
		return
	}
	pad := max(p.width-len(line), 0)
	p.width = len(line)
	fmt.Fprintf(p.w, "\r%s%s", line, strings.Repeat(" ", pad))
}

// eta is the time that the rest takes at the pace so far.
func (p *Progress) eta(done, total int64, now time.Time) time.Duration {
	n := done - p.first
	if n <= 0 {
		return 0
	}
	return time.Duration(float64(now.Sub(p.begin)) / float64(n) * float64(total-done))
}

// Say writes a line of its own.
func (p *Progress) Say(format string, args ...any) {
	if p == nil {
		return
	}
	p.clear()
	fmt.Fprintf(p.w, format+"\n", args...)
}

// Close leaves the cursor on a line of its own.
func (p *Progress) Close() {
	if p != nil {
		p.clear()
	}
}

// clear takes away the line that would be rewritten.
func (p *Progress) clear() {
	if p.terminal && p.width > 0 {
		fmt.Fprintf(p.w, "\r%s\r", strings.Repeat(" ", p.width))
		p.width = 0
	}
}

// clock is h:mm:ss.
func clock(d time.Duration) string {
	s := int64(d.Round(time.Second) / time.Second)
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}
