package main

import (
	"errors"
	"os"
	"path/filepath"
)

// writable finds out before hours are spent whether a file can be written at their end: in a folder that takes new files.
func writable(flag, path string) error {
	st, err := os.Stat(path)
	if err == nil && !st.Mode().IsRegular() {
		return nil // a pipe or a device, which takes what it takes
	}
	if err == nil { // what lies there may be one that nobody may write
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return usagef("--%s %s cannot be written: %w", flag, path, errors.Unwrap(err))
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return probe(flag, path, filepath.Dir(path))
}

// writableFolder does the same for a folder, which is made when it is first needed: then for the folder it will be made in.
func writableFolder(flag, path string) error {
	for dir := filepath.Clean(path); ; dir = filepath.Dir(dir) {
		st, err := os.Stat(dir)
		switch {
		case err == nil && !st.IsDir():
			return usagef("--%s %s: %s is no folder", flag, path, dir)
		case err == nil:
			return probe(flag, path, dir)
		case !errors.Is(err, os.ErrNotExist) || dir == filepath.Dir(dir):
			return usagef("--%s %s: %w", flag, path, err)
		}
	}
}

// probe makes a file in a folder and removes it.
func probe(flag, path, dir string) error {
	f, err := os.CreateTemp(dir, ".aitk-probe-*")
	if err != nil {
		return usagef("--%s %s: no file can be made in %s: %w", flag, path, dir, errors.Unwrap(err))
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
