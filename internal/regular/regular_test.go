package regular_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aitk/internal/regular"
)

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	if raw, err := regular.ReadFile(path); err != nil || string(raw) != "content" {
		t.Errorf("%q, error %v", raw, err)
	}
	for _, c := range []struct{ path, want string }{
		{dir, "is a folder, not a regular file"},
		{os.DevNull, "is a device, not a regular file"},
	} {
		if f, err := regular.Open(c.path); err == nil || !strings.Contains(err.Error(), c.path+" "+c.want) {
			t.Errorf("%s: %v, %v", c.path, f, err)
		}
	}
	if _, err := regular.Open(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}
