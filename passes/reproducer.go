package passes

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Reproducer is a pass run as text: what went in, with which options, and what went wrong. `aitk opt` replays it. Its file form is a
// text archive: sections headed by lines "-- name --".
//
//	-- passes --
//	cse
//	-- options --
//	accumulate=4
//	-- in.ir --
//	graph @step ...
//	-- failure --
//	pass cse on program step: internal error: ...
type Reproducer struct {
	Passes  []string
	Options []Setting
	Graph   string // text form of the program before the pass
	Failure string
}

// Encode gives the file form.
func (r *Reproducer) Encode() []byte {
	var opts strings.Builder
	for _, s := range r.Options {
		fmt.Fprintf(&opts, "%s=%s\n", s.Key, s.Value)
	}
	return formatArchive([]section{
		{"passes", strings.Join(r.Passes, "\n") + "\n"},
		{"options", opts.String()},
		{"in.ir", r.Graph},
		{"failure", r.Failure},
	})
}

// DecodeReproducer reads the file form; unknown sections are passed over.
func DecodeReproducer(data []byte) (*Reproducer, error) {
	r := &Reproducer{}
	seen := false
	for _, s := range parseArchive(data) {
		switch s.name {
		case "passes":
			r.Passes = strings.Fields(s.text)
		case "options":
			for _, line := range strings.Split(strings.TrimSpace(s.text), "\n") {
				if line == "" {
					continue
				}
				k, v, ok := strings.Cut(line, "=")
				if !ok {
					return nil, fmt.Errorf("option %q is not of the form key=value", line)
				}
				r.Options = append(r.Options, Setting{k, v})
			}
		case "in.ir":
			r.Graph, seen = s.text, true
		case "failure":
			r.Failure = s.text
		}
	}
	if !seen {
		return nil, fmt.Errorf("no section in.ir")
	}
	return r, nil
}

// Write stores the reproducer as crash-<hash of its content>.txtar in dir, which is made if need be, and returns the path.
func (r *Reproducer) Write(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	data := r.Encode()
	key := sha256.Sum256([]byte(strings.Join(r.Passes, ",") + "\x00" + r.Graph))
	path := filepath.Join(dir, "crash-"+hex.EncodeToString(key[:6])+".txtar")
	return path, os.WriteFile(path, data, 0o644)
}

type section struct{ name, text string }

func formatArchive(sections []section) []byte {
	var b bytes.Buffer
	for _, s := range sections {
		fmt.Fprintf(&b, "-- %s --\n%s", s.name, s.text)
		if s.text != "" && !strings.HasSuffix(s.text, "\n") {
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}

// parseArchive splits at the section lines; what stands before the first one is a comment and left out.
func parseArchive(data []byte) []section {
	var sections []section
	for _, line := range strings.SplitAfter(string(data), "\n") {
		bare := strings.TrimRight(line, "\r\n")
		if strings.HasPrefix(bare, "-- ") && strings.HasSuffix(bare, " --") && len(bare) > 6 {
			sections = append(sections, section{name: strings.TrimSpace(bare[3 : len(bare)-3])})
			continue
		}
		if len(sections) > 0 {
			sections[len(sections)-1].text += line
		}
	}
	return sections
}
