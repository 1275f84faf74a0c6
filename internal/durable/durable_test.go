package durable_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"aitk/internal/durable"
)

// folder holds the file "x" with the content "old" and unusual permissions.
func folder(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// holds checks a file's content and that nothing else lies in its folder.
func holds(t *testing.T, path, want string) {
	t.Helper()
	if raw, err := os.ReadFile(path); err != nil || string(raw) != want {
		t.Errorf("%q, error %v, want %q", raw, err, want)
	}
	if list, err := os.ReadDir(filepath.Dir(path)); err != nil || len(list) != 1 {
		t.Errorf("%v lie in the folder, error %v", list, err)
	}
}

func TestWriteFile(t *testing.T) {
	path := folder(t)
	broken := errors.New("broken")
	err := durable.WriteFile(path, func(w io.Writer) error {
		_, err := io.WriteString(w, "new")
		return errors.Join(err, broken)
	})
	if !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	holds(t, path, "old")
	if err := durable.WriteFile(path, func(w io.Writer) error { _, err := io.WriteString(w, "new"); return err }); err != nil {
		t.Error(err)
	}
	holds(t, path, "new")
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("permissions %v, error %v", st.Mode(), err)
	}
}

// Two writers of one file have files of their own; the last to commit wins. What was not committed goes with Close, which may be called twice.
func TestCommitAndClose(t *testing.T) {
	path := folder(t)
	var files [3]*durable.File
	for i := range files {
		f, err := durable.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(string(rune('a' + i))); err != nil {
			t.Fatal(err)
		}
		files[i] = f
	}
	if err := errors.Join(files[1].Commit(), files[0].Commit()); err != nil {
		t.Error(err)
	}
	for _, f := range files {
		if err := errors.Join(f.Close(), f.Close()); err != nil {
			t.Error(err)
		}
	}
	holds(t, path, "a")
}

// A file that cannot be made durable does not take the place of the old one.
func TestFailedCommit(t *testing.T) {
	path := folder(t)
	f, err := durable.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.File.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Commit(); err == nil {
		t.Error("a closed file was committed")
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	holds(t, path, "old")
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{dir, os.DevNull, filepath.Join(dir, "no", "such", "folder")} {
		if f, err := durable.Create(path); err == nil {
			t.Errorf("%s: no error", path)
			f.Close()
		}
	}
}
