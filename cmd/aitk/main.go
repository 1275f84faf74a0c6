// Command aitk trains ONNX networks within a byte budget: it plans where every tensor lies and when it moves or is computed again, and
// runs that plan. Each verb has a file of its own; this one holds their table. Only this package reads flags and the environment and prints to
// standard output; it computes nothing itself.
package main

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"
)

// command is one verb.
type command struct {
	name, short string
	run         func(args []string, stdout, stderr io.Writer) int // exit code
}

func commands() []command {
	return []command{
		{"version", "version, commit, Go", version},
	}
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run finds the verb. Exit code 2 is wrong usage.
func run(args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 {
		for _, c := range commands() {
			if c.name == args[0] {
				return c.run(args[1:], stdout, stderr)
			}
		}
		fmt.Fprintf(stderr, "aitk: unknown verb %q\n", args[0])
	}
	fmt.Fprintln(stderr, "usage: aitk VERB [flags]")
	for _, c := range commands() {
		fmt.Fprintf(stderr, "  %-10s %s\n", c.name, c.short)
	}
	return 2
}

func version(args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 {
		fmt.Fprintf(stderr, "aitk version: takes no arguments, got %q\n", args)
		return 2
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		fmt.Fprintln(stdout, "aitk without build information")
		return 0
	}
	commit := "unknown commit"
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			commit = s.Value
		}
	}
	fmt.Fprintf(stdout, "aitk %s, %s, %s\n", info.Main.Version, commit, info.GoVersion)
	return 0
}
