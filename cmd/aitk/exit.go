package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"

	"aitk/ir"
	"aitk/passes"
	"aitk/runtime/train"
)

// Exit codes that scripts rely on. Kinds of ir.Error are numbered like them.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitUnsupported = 3
	exitDoesNotFit  = 4
	exitInterrupted = 130
)

// errQuiet ends the program with a code and without a message: what there is to say has been said.
type errQuiet struct{ code int }

func (e errQuiet) Error() string { return fmt.Sprintf("exit %d", e.code) }

// usagef is a mistake on the command line.
func usagef(format string, args ...any) error {
	return ir.Errorf(ir.Usage, ir.Origin{}, format, args...)
}

// report prints the one message of a failure and gives the exit code.
func report(c *call, err error) int {
	if err == nil {
		return 0
	}
	if q, ok := errors.AsType[errQuiet](err); ok {
		return q.code
	}
	code := exitCode(err)
	if _, ok := errors.AsType[*train.Interrupted](err); code == exitInterrupted && !ok {
		err = errors.New("interrupted")
	}
	fmt.Fprintf(c.stderr, "aitk: %v\n", err)
	return code
}

func exitCode(err error) int {
	if errors.Is(err, context.Canceled) {
		return exitInterrupted
	}
	if _, ok := errors.AsType[*passes.FitError](err); ok {
		return exitDoesNotFit
	}
	switch k := ir.KindOf(err); k {
	case ir.Usage, ir.Unsupported, ir.DoesNotFit, ir.Numeric:
		return int(k) + 1
	}
	return exitFailed
}

// bugMessage says what went wrong when a broken invariant of ours came up outside a pass. The pass driver reports those inside one; here
// it only matters that the process ends with code 1 and not with Go's own 2, which means wrong usage.
func bugMessage(recovered any) string {
	if recovered == nil {
		return ""
	}
	return fmt.Sprintf("aitk: %v\nThis is a fault of aitk, not of your input. Please report it with the command and the lines below.\n%s", recovered, debug.Stack())
}

// cannotOpen makes the message of a missing file name the argument that asked for it. A file that is not there is a failure and no wrong
// usage, whichever flag names it.
func cannotOpen(what, path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %s does not exist", what, path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: %s may not be read", what, path)
	}
	return fmt.Errorf("%s: %w", what, err)
}
