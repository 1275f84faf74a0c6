package plan

import (
	"bufio"
	"bytes"
	"fmt"
	"html"
	"io"
)

// WriteHTML writes one page without scripts or links: the summary, the picture of the arenas, and what became of every content of the step and why.
func WriteHTML(w io.Writer, p *Plan) error {
	out := bufio.NewWriter(w)
	var summary bytes.Buffer
	if err := WriteSummary(&summary, p); err != nil {
		return err
	}
	fmt.Fprintf(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>plan of %s</title>\n", html.EscapeString(plain(p.Model)))
	fmt.Fprintf(out, "<style>body{font-family:Helvetica,Arial,sans-serif;font-size:13px;margin:16px}pre{white-space:pre-wrap}td,th{padding:2px 10px;text-align:left;vertical-align:top}"+
		"td.n{text-align:right}tr.recomputed{background:#fdebd8}tr.swapped{background:#dceaf7}</style></head><body>\n")
	fmt.Fprintf(out, "<pre>%s</pre>\n", html.EscapeString(summary.String()))
	if err := WriteSVG(out, p); err != nil {
		return err
	}
	if s := p.bindingText(); s != "" {
		fmt.Fprintf(out, "<p>%s</p>\n", html.EscapeString(s))
	}
	reruns, windows := p.absences()
	fmt.Fprintf(out, "<table><tr><th>value</th><th>bytes</th><th>is</th><th>at</th><th>why</th></tr>\n")
	for _, d := range p.Report.Decisions {
		fmt.Fprintf(out, "<tr class=\"%s\"><td>%s</td><td class=\"n\">%d</td><td>%s</td><td>%s</td><td>%s</td></tr>\n", html.EscapeString(plain(d.What)), html.EscapeString(plain(p.symbolName(d.Symbol))),
			p.Symbols[d.Symbol].Bytes, html.EscapeString(plain(d.What)), html.EscapeString(where(reruns[d.Symbol], windows[d.Symbol])), html.EscapeString(plain(d.Why)))
	}
	fmt.Fprintf(out, "</table></body></html>\n")
	return out.Flush()
}
