package config

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxSearched is how large a file may be for the line of an error to be searched.
const maxSearched = 1 * MiB

// syntaxError is what is wrong with a text that is not YAML, and in which line, counted from 1; 0: no line is known. The parser names the line
// where the innermost mapping or list begins, which may be far above, or none; so the first line is searched with which it finds the error.
func syntaxError(body []byte) (line int, text string) {
	line, text = parseError(body)
	if text == "" || line > 0 && !ofParser(text) || len(body) > int(maxSearched) {
		return line, text
	}
	ends := lineEnds(body)
	n, _ := slices.BinarySearchFunc(ends, true, func(end int, _ bool) int {
		if l, t := parseError(body[:end]); l == line && t == text {
			return 1 // here, or before
		}
		return -1
	})
	return n + 1, text
}

// ofParser reports whether an error is one of the parser and not of the scanner, whose line is that of the error.
func ofParser(text string) bool {
	return slices.ContainsFunc([]string{"key", "'-' indicator", "',' or", "node content", "<"}, func(what string) bool {
		return strings.HasPrefix(text, "did not find expected "+what)
	})
}

// lineEnds are the ends of the lines, line breaks included.
func lineEnds(body []byte) (ends []int) {
	at := 0
	for l := range bytes.Lines(body) {
		at += len(l)
		ends = append(ends, at)
	}
	return ends
}

// parseError is the error of the YAML library, and the line that it names. The library takes the first line for no line at all, and counts the
// lines of some errors from 0; so it is given one line more in front. Empty: there is none.
func parseError(body []byte) (line int, text string) {
	decoder := yaml.NewDecoder(io.MultiReader(strings.NewReader("\n"), bytes.NewReader(body)))
	var err error
	for range 2 { // documents
		var node yaml.Node
		if err = decoder.Decode(&node); err != nil {
			break
		}
	}
	if err == nil || errors.Is(err, io.EOF) {
		return 0, ""
	}
	text = strings.TrimPrefix(err.Error(), "yaml: ")
	rest, ok := strings.CutPrefix(text, "line ")
	if !ok {
		return 0, text
	}
	number, message, _ := strings.Cut(rest, ": ")
	n, err := strconv.Atoi(number)
	if err != nil {
		return 0, text
	}
	if !ofParser(message) {
		n-- // the line in front
	}
	return n, message
}
