package plan

import (
	"bufio"
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"aitk/ir"
)

// WriteSVG draws the arenas of program step (or of the first program, if there is no step) over its instructions: time runs to the right, addresses run up, and every
// stretch of life of a buffer is a rectangle with its name, bytes and place as a tooltip. Colours are categories. A line follows the live bytes, so that
// what lies free under the top of the arena is seen; red marks the peak, a dashed line the budget. The device arena comes first, then the host's.
func WriteSVG(w io.Writer, p *Plan) error {
	out := bufio.NewWriter(w)
	d := &plot{p: p, w: out}
	d.draw()
	return out.Flush()
}

// Sizes of the picture in its own units.
const (
	plotWidth  = 1200
	plotHeight = 420 // of an arena
	plotLeft   = 90
	plotTop    = 60
	plotGap    = 56 // between arenas
)

// categoryColors are by category.
func categoryColors() [NumCategories]string {
	return [NumCategories]string{
		CatParameter: "#4c78a8", CatOptimizerState: "#72b7b2", CatGradient: "#e45756", CatActivation: "#f58518", CatTemporary: "#eeca3b",
		CatInput: "#54a24b", CatStatistic: "#b279a2", CatConstant: "#9d755d", CatStaging: "#bab0ac",
	}
}

type plot struct {
	p    *Plan
	w    *bufio.Writer
	prog int32
	n    int // instructions
}

func (d *plot) draw() {
	spaces := d.arenas()
	height := plotTop + len(spaces)*(plotHeight+plotGap) + 40
	fmt.Fprintf(d.w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="Helvetica,Arial,sans-serif" font-size="11">`+"\n", plotWidth+plotLeft+20, height)
	fmt.Fprintf(d.w, `<rect width="100%%" height="100%%" fill="white"/>`+"\n")
	title := "plan of " + cmp.Or(plain(d.p.Model), "a graph")
	if len(d.p.Programs) > 0 {
		if _, at := d.p.Program("step"); at >= 0 {
			d.prog = at
		}
		pr := &d.p.Programs[d.prog]
		d.n = len(pr.Instrs)
		title = "program " + plain(pr.Name) + " of " + cmp.Or(plain(d.p.Model), "a graph")
	}
	d.text(plotLeft, 18, 14, "start", "#000", title)
	d.text(plotLeft, 34, 11, "start", "#444", d.p.headline())
	x := plotLeft
	for c, color := range categoryColors() {
		name := Category(c).String()
		fmt.Fprintf(d.w, `<rect x="%d" y="42" width="10" height="10" fill="%s"/>`, x, color)
		d.text(float64(x+14), 51, 11, "start", "#000", name)
		x += 30 + 6*len(name)
	}
	if d.n > 0 {
		for k, s := range spaces {
			d.arena(s, float64(plotTop+k*(plotHeight+plotGap)))
		}
	}
	fmt.Fprintf(d.w, "</svg>\n")
}

// arenas are the spaces that have one.
func (d *plot) arenas() (list []ir.Space) {
	for s := range ir.NumSpaces {
		if a := d.p.Arena(s); a != nil && a.Bytes > 0 && s != ir.Disk {
			list = append(list, s)
		}
	}
	return list
}

// at is the place of an instruction.
func (d *plot) at(pc int32) float64 {
	return plotLeft + float64(pc)*plotWidth/float64(max(d.n, 1))
}

func (d *plot) arena(s ir.Space, top float64) {
	a := d.p.Arena(s)
	whole := max(a.Bytes, a.BudgetBytes, 1)
	colors := categoryColors()
	y := func(bytes int64) float64 { return top + plotHeight - float64(bytes)/float64(whole)*plotHeight }
	fmt.Fprintf(d.w, `<rect x="%d" y="%.2f" width="%d" height="%.2f" fill="#f7f7f7" stroke="#999"/>`+"\n", plotLeft, y(a.Bytes), plotWidth, float64(a.Bytes)/float64(whole)*plotHeight)
	for i := range d.p.Buffers {
		b := &d.p.Buffers[i]
		if b.Type.Space != s || b.Bytes == 0 {
			continue
		}
		for _, sp := range b.Live {
			if sp.Program != d.prog || sp.Start >= sp.End {
				continue
			}
			fmt.Fprintf(d.w, `<rect x="%.2f" y="%.2f" width="%.2f" height="%.2f" fill="%s" stroke="white" stroke-width="0.3"><title>`, d.at(sp.Start), y(b.Offset+b.Bytes), d.at(sp.End)-d.at(sp.Start),
				y(b.Offset)-y(b.Offset+b.Bytes), colors[b.Category%NumCategories])
			d.escape(fmt.Sprintf("%s %s: %s (%d B) at %#x, instructions %d to %d, %s", d.p.bufferName(BufferID(i)), plain(b.Name), FormatBytes(b.Bytes), b.Bytes, b.Offset, sp.Start, sp.End, b.Category))
			fmt.Fprintf(d.w, "</title></rect>\n")
		}
	}
	d.live(s, y)
	if a.BudgetBytes >= 0 {
		fmt.Fprintf(d.w, `<line x1="%d" x2="%d" y1="%.2f" y2="%.2f" stroke="#000" stroke-dasharray="6 4"/>`+"\n", plotLeft, plotLeft+plotWidth, y(a.BudgetBytes), y(a.BudgetBytes))
		d.text(plotLeft+plotWidth, y(a.BudgetBytes)-3, 10, "end", "#000", "budget "+FormatBytes(a.BudgetBytes))
	}
	d.text(plotLeft-6, y(a.Bytes)+10, 10, "end", "#444", FormatBytes(a.Bytes))
	d.text(plotLeft-6, y(0), 10, "end", "#444", "0")
	d.text(plotLeft, y(0)+14, 10, "start", "#444", s.String()+" arena, instructions 0 to "+fmt.Sprint(d.n))
}

// live draws the live bytes and marks their peak, where it is in this program.
func (d *plot) live(s ir.Space, y func(int64) float64) {
	list := LiveBytes(d.p, d.prog)[s]
	if len(list) == 0 {
		return
	}
	var path strings.Builder
	fmt.Fprintf(&path, "M%.2f %.2f", d.at(0), y(list[0]))
	for pc, n := range list {
		if pc > 0 && n != list[pc-1] {
			fmt.Fprintf(&path, " H%.2f V%.2f", d.at(int32(pc)), y(n))
		}
	}
	fmt.Fprintf(&path, " H%.2f", d.at(int32(len(list))))
	fmt.Fprintf(d.w, `<path d="%s" fill="none" stroke="#222" stroke-width="1"/>`+"\n", path.String())
	if peak := PeakOf(d.p, s); peak.Program == d.prog {
		fmt.Fprintf(d.w, `<line x1="%.2f" x2="%.2f" y1="%.2f" y2="%.2f" stroke="#d00" stroke-width="1.5"><title>peak %s at instruction %d</title></line>`+"\n",
			d.at(peak.At), d.at(peak.At), y(0), y(peak.Bytes), FormatBytes(peak.Bytes), peak.At)
	}
}

func (d *plot) text(x, y, size float64, anchor, color, s string) {
	fmt.Fprintf(d.w, `<text x="%.2f" y="%.2f" font-size="%g" text-anchor="%s" fill="%s">`, x, y, size, anchor, color)
	d.escape(s)
	fmt.Fprintf(d.w, "</text>\n")
}

// escape writes text in which nothing is markup. The writer keeps its error for Flush.
func (d *plot) escape(s string) { _ = xml.EscapeText(d.w, []byte(s)) }
