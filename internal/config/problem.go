package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Source says where something was given: a file with a line, a variable of the environment, a flag, an argument.
type Source struct {
	Name  string // the file, "AMBLE_LOG_LEVEL", "--set", "argument 2"; empty: the default
	Line  int    // counted from 1; 0: no line is known
	order int    // file, environment, flags, patch
}

// The order in which problems are reported.
const (
	orderFile = iota
	orderEnvironment
	orderFlag
	orderPatch
	orderArgument
)

// String returns "file:line", the name alone where there is no line, or "default".
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

// Problem is one thing that is wrong with the settings.
type Problem struct {
	Source  Source
	Key     string // the setting, such as politeness.delay; empty where the file as a whole is meant
	Read    string // the value that was read, quoted where it was text; empty where there is none
	Message string // what is allowed, or what to do
}

// String is one line for people.
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

// Errors is every problem that Load found, in the order of the file, then of the environment, then of the flags.
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
	failed   map[string]bool // settings whose value could not be used
}

func newReport() *report { return &report{failed: map[string]bool{}} }

func (r *report) add(p Problem) {
	r.problems = append(r.problems, p)
	r.failed[p.Key] = true
}

// sorted returns the problems in the order in which people look for them.
func (r *report) sorted() Errors {
	slices.SortStableFunc(r.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Source.order, b.Source.order), cmp.Compare(a.Source.Line, b.Source.Line))
	})
	return r.problems
}

// longestShown bounds what a message repeats of a value.
const longestShown = 60

// shown quotes a value for a message, shortened where it is long.
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
