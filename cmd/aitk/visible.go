package main

import (
	"strconv"
	"strings"
	"unicode"
)

// visible makes a name from a file harmless on a terminal: what cannot be printed is shown by its escape, the rest stays as it is.
func visible(name string) string {
	if !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return name
	}
	quoted := strconv.Quote(name)
	return quoted[1 : len(quoted)-1]
}
