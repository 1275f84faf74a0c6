package durable_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"aitk/internal/durable"
)

// What is written to a link goes to the file behind it, and the link stays.
func TestLink(t *testing.T) {
	path := folder(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	if err := durable.WriteFile(link, func(w io.Writer) error { _, err := io.WriteString(w, "new"); return err }); err != nil {
		t.Fatal(err)
	}
	holds(t, path, "new")
	if st, err := os.Lstat(link); err != nil || st.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link became %v, error %v", st.Mode(), err)
	}
}
