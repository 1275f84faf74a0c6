// Package durable writes files that are there whole or not at all, whenever the process or the machine stops: a file is filled under another
// name beside its place, made durable, and renamed. Until then, and after any failure, what was there before is untouched.
//
// The package knows bytes and names of files, nothing of what is in them.
//
//	f, err := durable.Create(path)
//	defer f.Close()                     // removes what was not committed
//	_, err = f.Write(content)
//	err = f.Commit()
//
// Invariants: only Commit touches the path, and only if everything before it has worked; a device, a pipe and a folder are never replaced.
package durable

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// File is a file on its way. It is written like any file; Commit puts it in its place.
type File struct {
	*os.File
	path string
	done bool
}

// Create begins a file that will stand at path. It gets the permissions of the file that it replaces, else those of any new file.
//
// A symbolic link is followed: the file that it leads to is replaced, not the link.
func Create(path string) (*File, error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	old, err := os.Stat(path)
	if err == nil && !old.Mode().IsRegular() { // a rename would replace the device or the pipe itself
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	f, terr := createBeside(path)
	if terr != nil {
		return nil, terr
	}
	w := &File{File: f, path: path}
	if err == nil {
		if err := f.Chmod(old.Mode().Perm()); err != nil {
			return nil, errors.Join(err, w.Close())
		}
	}
	return w, nil
}

// createBeside makes a file in path's folder that no other process has. os.CreateTemp's would be private to the user.
func createBeside(path string) (*os.File, error) {
	for k := 0; ; k++ {
		name := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.tmp-%d-%d", filepath.Base(path), os.Getpid(), k))
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		if err == nil || !errors.Is(err, os.ErrExist) || k == 1000 {
			return f, err
		}
	}
}

// Commit makes the file durable and puts it in its place. After an error Close removes it.
func (f *File) Commit() error {
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.File.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), f.path); err != nil {
		return err
	}
	f.done = true
	return SyncFolder(filepath.Dir(f.path))
}

// Close removes the file unless Commit has put it in its place. It may be called at any time and twice.
func (f *File) Close() error {
	if f.done {
		return nil
	}
	f.done = true
	err := f.File.Close()
	if errors.Is(err, os.ErrClosed) {
		err = nil
	}
	return errors.Join(err, os.Remove(f.Name()))
}

// WriteFile is Create, what fill writes, and Commit.
func WriteFile(path string, fill func(io.Writer) error) (err error) {
	f, err := Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b := bufio.NewWriter(f)
	if err := fill(b); err != nil {
		return err
	}
	if err := b.Flush(); err != nil {
		return err
	}
	return f.Commit()
}

// SyncFolder makes renames in a folder durable. Windows cannot open folders for this and needs no such thing.
func SyncFolder(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
