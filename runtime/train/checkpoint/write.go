package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"aitk/internal/durable"
	"aitk/internal/safetensors"
)

// Write makes a checkpoint in a folder and returns its path. fill writes the tensors announced by specs. If a checkpoint of the same step
// lies there already it is kept where its content is the same, else it is replaced. On any error the folder holds what it held before.
func Write(dir string, m Manifest, specs []safetensors.Spec, fill func(w *safetensors.Writer) error) (path string, err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	temp := filepath.Join(dir, fmt.Sprintf("%s%d-%d", tempPrefix, m.Step, os.Getpid()))
	if err := os.RemoveAll(temp); err != nil { // of an earlier process with our number
		return "", err
	}
	if err := os.Mkdir(temp, 0o777); err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("checkpoint of step %d: %w", m.Step, err), os.RemoveAll(temp))
		}
	}()
	if err := writeParams(filepath.Join(temp, paramsFile), specs, fill); err != nil {
		return "", err
	}
	m.Schema, m.Files = Schema, []File{{Name: paramsFile}}
	if m.Files[0].Bytes, m.Files[0].SHA256, err = digest(filepath.Join(temp, paramsFile)); err != nil {
		return "", err
	}
	raw, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return "", err
	}
	if err := writeFile(filepath.Join(temp, manifestFile), append(raw, '\n')); err != nil {
		return "", err
	}
	if err := durable.SyncFolder(temp); err != nil {
		return "", err
	}
	path = filepath.Join(dir, Name(m.Step))
	return path, publish(dir, temp, path, &m)
}

func writeParams(path string, specs []safetensors.Spec, fill func(w *safetensors.Writer) error) (err error) {
	w, err := safetensors.Create(path, nil, specs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if err := fill(w); err != nil {
		return err
	}
	return w.Commit()
}

// writeFile writes a file and makes it durable. Its folder is not published yet, so it needs no name of its own on the way.
func writeFile(path string, raw []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// publish renames a finished folder to its place. A folder cannot replace another that is not empty, so an older one goes aside first; a
// kill between the two renames is what Clean repairs.
func publish(dir, temp, path string, m *Manifest) error {
	if old, err := readManifest(path); err == nil && complete(path, m.Step) && old.same(m) {
		return os.RemoveAll(temp)
	}
	aside := filepath.Join(dir, asidePrefix+strings.TrimPrefix(Name(m.Step), stepPrefix))
	if err := os.RemoveAll(aside); err != nil {
		return err
	}
	had := true
	if err := os.Rename(path, aside); errors.Is(err, os.ErrNotExist) {
		had = false
	} else if err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		if had {
			err = errors.Join(err, os.Rename(aside, path))
		}
		return err
	}
	if err := durable.SyncFolder(dir); err != nil {
		return err
	}
	return os.RemoveAll(aside)
}

// same compares what two checkpoints hold.
func (m *Manifest) same(o *Manifest) bool {
	return m.Step == o.Step && m.Compare(o) == nil && len(m.Files) == 1 && len(o.Files) == 1 && m.Files[0] == o.Files[0]
}

// Keep removes the oldest checkpoints beyond the newest n; n < 1 keeps all. Each goes aside under one rename before it is taken apart.
func Keep(dir string, n int64) error {
	steps, err := List(dir)
	if err != nil || n < 1 || int64(len(steps)) <= n {
		return err
	}
	for _, step := range steps[:int64(len(steps))-n] {
		path := filepath.Join(dir, Name(step))
		trash := filepath.Join(dir, fmt.Sprintf("%s%d-%d", tempPrefix, step, os.Getpid()))
		if err := os.Rename(path, trash); err != nil {
			return err
		}
		if err := os.RemoveAll(trash); err != nil {
			return err
		}
	}
	return nil
}

// Clean puts right what a killed run left in a folder: unfinished checkpoints go, and a checkpoint that was set aside comes back if nothing took
// its place. Complete checkpoints are not touched.
func Clean(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if step, ok := stepOf(e.Name(), asidePrefix); ok && complete(path, step) {
			place := filepath.Join(dir, Name(step))
			if _, err := os.Lstat(place); errors.Is(err, os.ErrNotExist) {
				if err := os.Rename(path, place); err != nil {
					return err
				}
				continue
			}
			if !complete(place, step) {
				continue // neither is thrown away while there is doubt
			}
		}
		if strings.HasPrefix(e.Name(), tempPrefix) || strings.HasPrefix(e.Name(), asidePrefix) {
			if err := os.RemoveAll(path); err != nil {
				return err
			}
		}
	}
	return nil
}
