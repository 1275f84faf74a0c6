// Command aitk trains ONNX networks within a byte budget: it plans where every tensor lies and when it moves or is computed again, and
// runs that plan.
//
// Only this package reads flags and the environment and prints to standard output; it computes nothing itself. Each verb has a file of its own
// and a row in commands; each flag has one row in the tables of flags.go. What is printed for reading goes to standard output,
// progress and warnings to standard error, and every failure is one message that begins with "aitk: " and an exit code (exit.go).
package main

import (
	"context"
	"fmt"
	"io"
	"os"
)

// command is one verb.
type command struct {
	name     string
	args     string // what stands behind the verb, for help
	min, max int    // how many arguments
	short    string // one line
	long     string // more, for `aitk help VERB`
	run      func(*call) error
}

// commands lists the verbs in the order of a day's work.
func commands() []command {
	return []command{
		inspectCommand(),
		lintCommand(),
		opsCommand(),
		passesCommand(),
		planCommand(),
		compileCommand(),
		runCommand(),
		trainCommand(),
		evalCommand(),
		exportCommand(),
		estimateCommand(),
		optCommand(),
		solveCommand(),
		diffCommand(),
		doctorCommand(),
		calibrateCommand(),
		versionCommand(),
	}
}

// call is one run of the program: what was asked for and where answers go.
type call struct {
	ctx            context.Context
	stdin          io.Reader
	stdout, stderr io.Writer
	lines          io.Writer // what stdout was where --metrics - takes it
	cmd            *command
	args           []string
	settings
	cleanup []func() // run in reverse before the program ends
}

func main() {
	ctx, stop := interruptible(os.Stderr)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the program without the process around it.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (code int) {
	c := &call{ctx: ctx, stdin: stdin, stdout: stdout, stderr: stderr}
	defer func() {
		if broken := bugMessage(recover()); broken != "" {
			fmt.Fprint(stderr, broken)
			code = exitFailed
		}
	}()
	defer c.close()
	return report(c, dispatch(c, args))
}

func (c *call) close() {
	for _, f := range c.cleanup {
		defer f()
	}
}

// dispatch finds the verb, reads its flags and runs it.
func dispatch(c *call, args []string) error {
	if len(args) == 0 {
		writeVerbs(c.stderr)
		return errQuiet{exitUsage}
	}
	verb, rest := args[0], args[1:]
	switch verb {
	case "help", "-h", "-help", "--help":
		return help(c.stdout, rest)
	}
	cmd, err := findCommand(verb)
	if err != nil {
		return err
	}
	c.cmd = cmd
	wantsHelp, err := c.parse(rest)
	if wantsHelp {
		return help(c.stdout, []string{verb})
	}
	if err != nil {
		return err
	}
	if n := len(c.args); n < cmd.min || n > cmd.max {
		return usagef("aitk %s %s: got %s", cmd.name, cmd.args, countArgs(c.args))
	}
	if err := c.checkViews(); err != nil {
		return err
	}
	return cmd.run(c)
}

func countArgs(args []string) string {
	switch len(args) {
	case 0:
		return "no argument"
	case 1:
		return fmt.Sprintf("1 argument, %q", args[0])
	}
	return fmt.Sprintf("%d arguments, %q", len(args), args)
}

func findCommand(verb string) (*command, error) {
	var names []string
	for _, c := range commands() {
		if c.name == verb {
			return &c, nil
		}
		names = append(names, c.name)
	}
	return nil, usagef("no verb %q%s; `aitk help` lists them", verb, didYouMean(verb, names))
}
