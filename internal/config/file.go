package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxFileSize bounds the config file. A longer list of seeds belongs in crawl.seeds_file.
const maxFileSize = 16 * MiB

// readFile returns the bytes of the config file, without a byte order mark.
func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	body, err := io.ReadAll(io.LimitReader(file, int64(maxFileSize)+1))
	if err != nil {
		return nil, err
	}
	if len(body) > int(maxFileSize) {
		return nil, fmt.Errorf("larger than %v; put long lists of seeds into crawl.seeds_file", maxFileSize)
	}
	return bytes.TrimPrefix(body, []byte("\ufeff")), nil
}

// unreadable says why the file could not be read and what to do.
func unreadable(path string, err error) Problem {
	message := err.Error()
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		message = "cannot be read: " + pathError.Err.Error()
	}
	if errors.Is(err, fs.ErrNotExist) {
		message = "no such file; name a config file with -c, or omit -c to use ./config.yaml or the defaults"
	}
	return Problem{Source: Source{Name: path}, Message: message}
}

// document reads one config file.
type document struct {
	path  string
	rank  int // of the source
	words *vocabulary
	found []settingValue
	r     *report
}

func (d *document) at(line int) Source {
	if d.rank == rankPatch {
		line = 0 // no line number
	}
	return Source{Name: d.path, Line: line, rank: d.rank}
}

// read returns the settings in body and reports all problems.
func (d *document) read(body []byte) []settingValue {
	decoder := yaml.NewDecoder(bytes.NewReader(body))
	var root yaml.Node
	if err := decoder.Decode(&root); err != nil {
		if !errors.Is(err, io.EOF) { // an empty file is valid
			d.r.add(d.syntax(body, err))
		}
		return nil
	}
	var second yaml.Node
	if err := decoder.Decode(&second); err == nil {
		d.r.add(Problem{Source: d.at(second.Line),
			Message: "a second YAML document begins here; a config file is one document"})
	} else if !errors.Is(err, io.EOF) {
		d.r.add(d.syntax(body, err))
	}
	top := resolved(root.Content[0])
	switch {
	case isNull(top):
	case top.Kind != yaml.MappingNode:
		d.r.add(Problem{Source: d.at(top.Line), Read: kindName(top),
			Message: "want settings such as crawl: with its keys indented below"})
	default:
		d.settings(top, "")
	}
	return d.found
}

// settings reads the settings and sections of a mapping, whose keys begin with a prefix.
func (d *document) settings(node *yaml.Node, prefix string) {
	d.pairs(node, prefix, func(key string, name, value *yaml.Node) {
		if !d.words.sections[key] {
			d.leaf(key, name, value)
			return
		}
		section := resolved(value)
		switch {
		case isNull(section): // all keys of the section are commented out
		case section.Kind != yaml.MappingNode:
			d.r.add(Problem{Source: d.at(name.Line), Key: key, Read: kindName(section),
				Message: "is a section: want its keys indented below it"})
		default:
			d.settings(section, key+".")
		}
	})
}

// pairs calls visit for the first occurrence of each key of a mapping.
func (d *document) pairs(node *yaml.Node, prefix string, visit func(key string, name, value *yaml.Node)) {
	first := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		if name.Kind != yaml.ScalarNode {
			d.r.add(Problem{Source: d.at(name.Line), Read: kindName(name),
				Message: "want the name of a setting before the colon"})
			continue
		}
		key := prefix + name.Value
		if line, twice := first[key]; twice {
			d.r.add(Problem{Source: d.at(name.Line), Key: clipped(key), Message: "is set twice, first on line " +
				strconv.Itoa(line) + "; keep one"})
			continue
		}
		first[key] = name.Line
		visit(key, name, value)
	}
}

// leaf reads one setting.
func (d *document) leaf(key string, name, value *yaml.Node) {
	s, known := d.words.byKey[key]
	if !known {
		d.r.add(Problem{Source: d.at(name.Line), Key: clipped(key), Message: d.words.unknown(key)})
		return
	}
	if strings.Contains(name.Value, ".") {
		d.r.add(Problem{Source: d.at(name.Line), Key: key, Message: "is written in one line; in the file write " +
			s.section() + ": and below it, indented, " + s.name() + ":"})
		return
	}
	converted, lines, bad := s.convertNode(value)
	if bad != nil {
		line := name.Line
		if bad.line > 0 {
			line = bad.line
		}
		d.r.add(Problem{Source: d.at(line), Key: key, Read: bad.read, Message: bad.want})
		return
	}
	o := origin{Source: d.at(name.Line), text: resolved(value).Value}
	for _, line := range lines {
		o.items = append(o.items, d.at(line))
	}
	d.found = append(d.found, settingValue{setting: s, value: converted, origin: o})
}

// syntax turns an error of the YAML parser into a problem with its line.
func (d *document) syntax(body []byte, err error) Problem {
	if tab := tabIndented(body); tab > 0 {
		return Problem{Source: d.at(tab), Message: "is indented with a tab; YAML wants spaces"}
	}
	line, text := syntaxError(body)
	if text == "" { // cannot happen: the same bytes were parsed before
		line, text = 0, err.Error()
	}
	return Problem{Source: d.at(line), Message: "is not YAML: " + text}
}

// tabIndented returns the number of the first line with a tab in its indentation, or 0.
func tabIndented(body []byte) int {
	number := 0
	for line := range bytes.Lines(body) {
		number++
		content := bytes.TrimLeft(line, " \t")
		if len(bytes.TrimSpace(content)) > 0 && content[0] != '#' &&
			bytes.ContainsRune(line[:len(line)-len(content)], '\t') {
			return number
		}
	}
	return 0
}

// clipped shortens a foreign name for one line of a message.
func clipped(name string) string {
	unprintable := strings.ContainsFunc(name, func(c rune) bool { return !strconv.IsPrint(c) })
	if len(name) > longestShown || unprintable {
		return shown(name)
	}
	return name
}

// maxSearched is the largest file in which the line of an error is searched.
const maxSearched = 1 * MiB

// syntaxError returns what is wrong with a text that is not YAML, and in which line, counted from
// 1, or 0 if that is not known. The parser reports the line where the innermost mapping or list
// begins, which may be far above, or none. So syntaxError searches the first line with which the
// parser fails.
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

// ofParser reports whether an error is one of the parser. The scanner's errors have the right line.
func ofParser(text string) bool {
	return slices.ContainsFunc([]string{"key", "'-' indicator", "',' or", "node content", "<"}, func(what string) bool {
		return strings.HasPrefix(text, "did not find expected "+what)
	})
}

// lineEnds returns the ends of the lines, line breaks included.
func lineEnds(body []byte) (ends []int) {
	at := 0
	for l := range bytes.Lines(body) {
		at += len(l)
		ends = append(ends, at)
	}
	return ends
}

// parseError returns the error of the YAML library, and the line that it names. The library omits
// the number of the first line, and counts the lines of some errors from 0, so one line is added in
// front. The text is empty if there is no error.
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
		n-- // the added line
	}
	return n, message
}
