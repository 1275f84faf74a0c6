// Package regular opens files that have content and an end. A pipe or a device in the place of a file would make an open wait for a writer,
// or act; so what lies at a path is looked at before it is opened.
//
// The package knows paths and kinds of files, nothing of what is in them.
//
// Invariant: nothing but regular files is ever opened.
package regular

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// Open opens a regular file for reading. Errors name the path; a folder, a pipe or a device is one.
func Open(path string) (*os.File, error) {
	if err := Check(path); err != nil {
		return nil, err
	}
	return os.Open(path)
}

// Check tells whether a path leads to a regular file.
func Check(path string) error {
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	what := ""
	switch mode := st.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		what = "folder"
	case mode&os.ModeNamedPipe != 0:
		what = "named pipe"
	case mode&os.ModeSocket != 0:
		what = "socket"
	default:
		what = "device"
	}
	return fmt.Errorf("%s is a %s, not a regular file", path, what)
}

// ReadFile reads all of a regular file.
func ReadFile(path string) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(f)
	return raw, errors.Join(err, f.Close())
}
