package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Source says where a setting was set: a file with a line, an environment variable, a flag, an
// argument.
type Source struct {
	Name string // the file, "AMBLE_LOG_LEVEL", "--set", "argument 2"; empty: the default
	Line int    // counted from 1; 0: no line is known
	rank int    // rank of the source: file, environment, flags, patch
}

// The order in which problems are reported.
const (
	rankFile = iota
	rankEnvironment
	rankFlag
	rankPatch
	rankArgument
)

// String returns "file:line", the name alone if there is no line, or "default".
func (s Source) String() string {
	switch {
	case s.Name == "":
		return "default"
	case s.Line > 0:
		return s.Name + ":" + strconv.Itoa(s.Line)
	default:
		return s.Name
	}
}

// Problem is one problem of the settings.
type Problem struct {
	Source  Source
	Key     string // the setting, such as politeness.delay; empty: the file as a whole
	Read    string // the value that was read, quoted if it is text; empty: there is none
	Message string // what is allowed, or what to do
}

// String returns the problem as one line.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.Source.String())
	if p.Key != "" {
		b.WriteString(": " + p.Key)
	}
	b.WriteString(": ")
	if p.Read != "" {
		b.WriteString("read " + p.Read + "; ")
	}
	b.WriteString(p.Message)
	return b.String()
}

// Errors lists all problems that Load found, in the order of the file, then of the environment,
// then of the flags.
type Errors []Problem

// Error has one line for each problem.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, p := range e {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// report collects problems while settings are read and checked.
type report struct {
	problems Errors
	failed   map[string]bool // settings whose value is invalid
}

func newReport() *report { return &report{failed: map[string]bool{}} }

func (r *report) add(p Problem) {
	r.problems = append(r.problems, p)
	r.failed[p.Key] = true
}

// sorted returns the problems in the order of their sources.
func (r *report) sorted() Errors {
	slices.SortStableFunc(r.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Source.rank, b.Source.rank), cmp.Compare(a.Source.Line, b.Source.Line))
	})
	return r.problems
}

// longestShown bounds the part of a value in a message.
const longestShown = 60

// shown quotes a value for a message, and shortens a long one.
func shown(text string) string {
	if len(text) <= longestShown {
		return strconv.Quote(text)
	}
	cut := longestShown
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return fmt.Sprintf("%q... (%d bytes)", text[:cut], len(text))
}
