package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
)

func versionCommand() command {
	return command{name: "version", short: "version, commit, Go, build tags, CPU level", run: version}
}

// build is what the linker knows of this program.
type build struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
	Target  string `json:"target"`
	Tags    string `json:"tags"`
	CPU     string `json:"cpu_level"`
}

// thisBuild reads the build information; what is not known is said so.
func thisBuild() build {
	b := build{Version: "(devel)", Commit: "unknown", Go: runtime.Version(), Target: runtime.GOOS + "/" + runtime.GOARCH, CPU: "portable"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" {
		b.Version = v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			if s.Value == "true" {
				b.Commit += " with changes"
			}
		case "-tags":
			b.Tags = s.Value
		}
	}
	return b
}

// toolVersion goes into plans. It leaves out the commit: the same version makes the same plan bytes.
func toolVersion() string {
	v, _, _ := strings.Cut(thisBuild().Version, "+")
	return "aitk " + v
}

func version(c *call) error {
	b := thisBuild()
	if c.wants("json") {
		return c.show(map[string]func(io.Writer) error{"json": func(w io.Writer) error { return writeJSON(w, b) }})
	}
	tags := b.Tags
	if tags == "" {
		tags = "none"
	}
	_, err := fmt.Fprintf(c.stdout, "aitk %s, commit %s\n%s for %s, build tags: %s, kernels: %s\n", b.Version, b.Commit, b.Go, b.Target, tags, b.CPU)
	return err
}

// writeJSON is how every verb prints its --json.
func writeJSON(w io.Writer, x any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	return enc.Encode(x)
}
