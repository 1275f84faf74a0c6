package ir

import (
	"errors"
	"fmt"
	"strings"
)

// Origin says where a node came from, for messages.
type Origin struct {
	File   string // model file as the user named it
	Node   string // the exporter's node name, or a name of ours for what a pass made
	OpType string // ONNX op type with domain where it is not ai.onnx; empty for nodes of ours
	Opset  int64
	Index  int32  // position in the file's node list, from 0
	Scope  string // module path: layers.0/attn
}

// String is "Node" with what helps to find it.
func (o Origin) String() string {
	switch {
	case o.Node != "" && o.OpType != "":
		return fmt.Sprintf("node %q (%s, #%d)", o.Node, o.OpType, o.Index)
	case o.OpType != "":
		return fmt.Sprintf("unnamed node #%d (%s)", o.Index, o.OpType)
	case o.Node != "":
		return fmt.Sprintf("node %q", o.Node)
	}
	return ""
}

// Error is a user's mistake or a limit of ours: what, where, why, and the way out. It is returned, never panicked.
type Error struct {
	Origin Origin
	Cause  error
	Remedy string
	Kind   Kind
}

// Kind selects the exit code of the command line.
type Kind uint8

// The kinds of failure that callers tell apart.
const (
	Failed      Kind = iota // exit 1
	Usage                   // exit 2
	Unsupported             // exit 3
	DoesNotFit              // exit 4
	Numeric                 // exit 5
)

func (e *Error) Error() string {
	var parts []string
	if e.Origin.File != "" {
		parts = append(parts, e.Origin.File)
	}
	if s := e.Origin.String(); s != "" {
		parts = append(parts, s)
	}
	s := strings.Join(parts, ": ")
	if e.Cause != nil {
		if s != "" {
			s += ": "
		}
		s += e.Cause.Error()
	}
	if e.Remedy != "" {
		s += "; " + e.Remedy
	}
	return s
}

func (e *Error) Unwrap() error { return e.Cause }

// Errorf builds an Error at an origin.
func Errorf(kind Kind, o Origin, format string, args ...any) *Error {
	return &Error{Origin: o, Kind: kind, Cause: fmt.Errorf(format, args...)}
}

// KindOf finds the kind of the first *Error in err's tree; Failed if there is none.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Failed
}

// Bug is a broken invariant of ours. It is panicked; only the pass driver recovers it.
type Bug struct{ Msg string }

func (b *Bug) Error() string { return "internal error: " + b.Msg }

// Bugf builds a Bug to panic with.
func Bugf(format string, args ...any) *Bug { return &Bug{Msg: fmt.Sprintf(format, args...)} }
