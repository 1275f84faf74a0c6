package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"aitk/internal/durable"
	"aitk/runtime/train/metrics"
)

// metricsFile is where metrics go, opened when the run really begins. A new file is written as the run goes, so that it can be watched
// and a killed run leaves its lines. Where a file of that name exists, the lines of a new run go beside it under a name that can be seen
// (FILE.new) and take its place once the run is through; a run that goes on from a checkpoint keeps the lines before its first step and
// writes on behind them.
type metricsFile struct {
	c      *call
	w      io.Writer
	f      *os.File
	beside string // where f lies until the run is through; "": in its place
}

// Write implements io.Writer.
func (m *metricsFile) Write(p []byte) (int, error) { return m.w.Write(p) }

// writer is nil where no metrics were asked for: an interface that holds no writer.
func (m *metricsFile) writer() io.Writer {
	if m.c.metrics == "" {
		return nil
	}
	return m
}

// begin opens the file for the lines from a step on; goesOn tells that the lines before it are there, header included.
func (m *metricsFile) begin(first int64) (goesOn bool, err error) {
	path := m.c.metrics
	switch path {
	case "":
		return false, nil
	case "-":
		m.w = m.c.lines
		return false, nil
	}
	if m.f, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666); errors.Is(err, os.ErrExist) {
		st, serr := os.Stat(path)
		switch {
		case serr != nil:
			err = serr
		case !st.Mode().IsRegular(): // a pipe or a device has no content to spare
			m.f, err = os.OpenFile(path, os.O_WRONLY, 0)
		case st.Size() == 0:
			m.f, err = os.OpenFile(path, os.O_WRONLY, 0)
		case m.c.resume != "":
			m.f, err = openBefore(path, first)
			goesOn = err == nil
		default:
			m.beside = path + ".new"
			m.f, err = os.OpenFile(m.beside, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, st.Mode().Perm())
		}
	}
	if err != nil {
		return false, fmt.Errorf("--metrics: %w", err)
	}
	m.w = m.f
	return goesOn, nil
}

// openBefore opens metrics to write on after the lines of steps before first. What lies behind them is cut off: the run does those steps again.
func openBefore(path string, first int64) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	keep, err := bytesBefore(f, first)
	if err == nil && keep == 0 {
		err = usagef("%s holds no metrics of a run, and --resume writes on behind them: name another file", path)
	}
	if err == nil {
		err = f.Truncate(keep)
	}
	if err == nil {
		_, err = f.Seek(keep, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// bytesBefore is how long the header and the whole lines of steps before first are; 0 without a header.
func bytesBefore(r io.Reader, first int64) (int64, error) {
	b := bufio.NewReader(r)
	keep := int64(0)
	for {
		line, err := b.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return keep, nil
		}
		if err != nil {
			return 0, err
		}
		var x struct {
			Schema string `json:"schema"`
			Step   *int64 `json:"step"`
		}
		bad := json.Unmarshal(line, &x) != nil
		if bad || keep == 0 && x.Schema != metrics.Schema || keep > 0 && (x.Step == nil || *x.Step >= first) {
			return keep, nil
		}
		keep += int64(len(line))
	}
}

// finish closes the file and, if the run was good, puts it in its place. A failed run keeps its lines where they are, and it is said where.
func (m *metricsFile) finish(good bool) error {
	if m.f == nil {
		return nil
	}
	if m.beside == "" {
		return m.f.Close()
	}
	if !good {
		fmt.Fprintf(m.c.stderr, "the metrics of this run are in %s; %s is as it was\n", m.beside, m.c.metrics)
		return m.f.Close()
	}
	if err := errors.Join(m.f.Sync(), m.f.Close()); err != nil {
		return err
	}
	if err := os.Rename(m.beside, m.c.metrics); err != nil {
		return err
	}
	return durable.SyncFolder(filepath.Dir(m.c.metrics))
}
