package config

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// settingValue is one value of one setting from one source, converted to the type of its field.
type settingValue struct {
	setting setting
	value   any
	origin  origin
}

// origin is the source of a value and, for a list, of each item.
type origin struct {
	Source
	items []Source
	text  string
}

// item returns the source of the i-th item of a list.
func (o origin) item(i int) Source {
	if i < len(o.items) {
		return o.items[i]
	}
	return o.Source
}

// mismatch is a value that does not have the type of its setting.
type mismatch struct {
	read, want string
	line       int // of the file; 0: that of the setting
}

// convert parses the text of a scalar as the type of s. convertList parses lists.
func (s setting) convert(text string) (any, *mismatch) {
	value, err := parseAs(s.typ, text)
	if err != nil {
		return nil, &mismatch{read: s.show(text), want: "want " + wanted(s.typ)}
	}
	return value, nil
}

// show quotes a value of s for a message, without revealing a secret.
func (s setting) show(text string) string {
	if s.is("secret") || s.key == "fetch.proxy" && strings.Contains(text, "@") {
		return "a value of " + strconv.Itoa(len(text)) + " bytes"
	}
	return shown(text)
}

var errValue = errors.New("invalid value")

func parseAs(typ reflect.Type, text string) (any, error) {
	switch typ {
	case reflect.TypeFor[time.Duration]():
		return time.ParseDuration(text)
	case reflect.TypeFor[ByteSize]():
		return ParseByteSize(text)
	}
	switch typ.Kind() {
	case reflect.String:
		return text, nil
	case reflect.Bool:
		if text != "true" && text != "false" {
			return nil, errValue
		}
		return text == "true", nil
	case reflect.Int:
		return strconv.Atoi(text)
	case reflect.Int64:
		return strconv.ParseInt(text, 10, 64)
	case reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, errValue
		}
		return f, nil
	}
	return nil, errValue
}

// wanted describes a type to people, with an example.
func wanted(typ reflect.Type) string {
	switch typ {
	case reflect.TypeFor[time.Duration]():
		return "a duration with its unit, such as 500ms, 2s or 1h30m"
	case reflect.TypeFor[ByteSize]():
		return "a size in whole bytes, KiB, MiB or GiB, such as 10MiB"
	}
	switch typ.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	default:
		return "text"
	}
}

// isList reports whether s holds several values.
func (s setting) isList() bool { return s.typ.Kind() == reflect.Slice }

// convertNode reads a YAML node as the type of s. lines holds the line of each item of a list.
func (s setting) convertNode(node *yaml.Node) (value any, lines []int, bad *mismatch) {
	node = resolved(node)
	switch {
	case s.isList():
		return s.convertList(node)
	case s.typ.Kind() == reflect.Map:
		value, bad = convertMap(node)
		return value, nil, bad
	case node.Kind == yaml.MappingNode:
		return nil, nil, &mismatch{read: "a mapping", want: "want " + wanted(s.typ)}
	case node.Kind == yaml.SequenceNode:
		return nil, nil, &mismatch{read: "a list", want: "want " + wanted(s.typ)}
	case isNull(node) && s.typ.Kind() == reflect.String:
		return "", nil, nil
	case isNull(node):
		return nil, nil, &mismatch{read: "no value", want: "want " + wanted(s.typ) +
			", or remove the line for the default"}
	}
	value, bad = s.convert(node.Value)
	return value, nil, bad
}

func (s setting) convertList(node *yaml.Node) (value any, lines []int, bad *mismatch) {
	items := []string{}
	switch {
	case isNull(node) && s.isItems():
		return reflect.MakeSlice(s.typ, 0, 0).Interface(), nil, nil
	case isNull(node):
		return items, nil, nil
	case node.Kind == yaml.MappingNode:
		return nil, nil, &mismatch{read: "a mapping", want: "want a list, one item a line after a dash, or [a, b]"}
	case node.Kind != yaml.SequenceNode:
		return nil, nil, &mismatch{read: s.show(node.Value),
			want: "want a list, one item a line after a dash, or [a, b]"}
	}
	if s.isItems() {
		return s.readItems(node)
	}
	for i, item := range node.Content {
		line := item.Line
		item = resolved(item)
		if s.key == "crawl.seeds" && item.Kind == yaml.MappingNode {
			text, bad := seedText(item)
			if bad != nil {
				return nil, nil, bad
			}
			items, lines = append(items, text), append(lines, line)
			continue
		}
		if item.Kind != yaml.ScalarNode || isNull(item) {
			return nil, nil, &mismatch{read: kindName(item) + " as item " + strconv.Itoa(i+1),
				want: "want a list of plain values"}
		}
		items = append(items, item.Value)
		lines = append(lines, line)
	}
	return items, lines, nil
}

// convertMap reads a mapping of names to texts.
func convertMap(node *yaml.Node) (map[string]string, *mismatch) {
	values := map[string]string{}
	if node.Kind != yaml.MappingNode {
		return nil, &mismatch{read: kindName(node), want: "want a mapping of names to texts, such as {price: .price}"}
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], resolved(node.Content[i+1])
		if _, twice := values[name.Value]; twice {
			return nil, &mismatch{read: shown(name.Value), want: shown(name.Value) + " is set twice; keep one"}
		}
		if name.Kind != yaml.ScalarNode || value.Kind != yaml.ScalarNode || isNull(value) {
			return nil, &mismatch{read: kindName(value), want: "want a text for " + shown(name.Value)}
		}
		values[name.Value] = value.Value
	}
	return values, nil
}

// resolved returns the target of an alias. YAML allows no alias of an alias.
func resolved(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode && node.Alias != nil {
		return node.Alias
	}
	return node
}

func isNull(node *yaml.Node) bool { return node.Kind == yaml.ScalarNode && node.Tag == "!!null" }

func kindName(node *yaml.Node) string {
	switch {
	case node.Kind == yaml.MappingNode:
		return "a mapping"
	case node.Kind == yaml.SequenceNode:
		return "a list"
	case isNull(node):
		return "no value"
	default:
		return "a single value"
	}
}

// convertText parses a value from outside the file. A list is separated by commas, or is YAML in
// brackets if an item contains a comma.
func (s setting) convertText(text string) (any, *mismatch) {
	if !s.isList() {
		return s.convert(text)
	}
	if s.isItems() && !strings.HasPrefix(text, "[") {
		return nil, &mismatch{read: s.show(text), want: "want a YAML list in one line, such as [{" +
			names(s.typ.Elem())[0] + ": ...}]"}
	}
	if !strings.HasPrefix(text, "[") {
		items := strings.Split(text, ",")
		for i := range items {
			items[i] = strings.TrimSpace(items[i])
		}
		return slices.DeleteFunc(items, func(item string) bool { return item == "" }), nil
	}
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil || len(document.Content) == 0 {
		return nil, &mismatch{read: s.show(text),
			want: "want items separated by commas, or a YAML list such as ['a,b', c]"}
	}
	value, _, bad := s.convertList(resolved(document.Content[0]))
	return value, bad
}

// ByteSize is a number of bytes. In text it is a whole number and a unit: 10MiB, 500KB, 4096.
type ByteSize int64

// Binary units of a ByteSize.
const (
	KiB ByteSize = 1 << (10 * (iota + 1))
	MiB
	GiB
	TiB
)

var errByteSize = errors.New("not a size")

// ParseByteSize parses a whole number of bytes with an optional unit: B, KiB, MiB, GiB, TiB (powers
// of 1024) or KB, MB, GB, TB (powers of 1000), in any case. It refuses negative numbers, fractions
// and numbers of more than 63 bits.
func ParseByteSize(text string) (ByteSize, error) {
	digits := 0
	for digits < len(text) && '0' <= text[digits] && text[digits] <= '9' {
		digits++
	}
	n, err := strconv.ParseInt(text[:digits], 10, 64)
	if err != nil {
		return 0, errByteSize
	}
	unit, known := unitSize(strings.TrimLeft(text[digits:], " "))
	if !known || n > math.MaxInt64/unit {
		return 0, errByteSize
	}
	return ByteSize(n * unit), nil
}

func unitSize(unit string) (int64, bool) {
	switch strings.ToLower(unit) {
	case "", "b":
		return 1, true
	case "kb":
		return 1e3, true
	case "mb":
		return 1e6, true
	case "gb":
		return 1e9, true
	case "tb":
		return 1e12, true
	case "kib":
		return int64(KiB), true
	case "mib":
		return int64(MiB), true
	case "gib":
		return int64(GiB), true
	case "tib":
		return int64(TiB), true
	}
	return 0, false
}

// String formats the size in the largest binary unit that divides it, so that ParseByteSize returns
// the same number.
func (b ByteSize) String() string {
	for _, unit := range []struct {
		size ByteSize
		name string
	}{{TiB, "TiB"}, {GiB, "GiB"}, {MiB, "MiB"}, {KiB, "KiB"}} {
		if b != 0 && b%unit.size == 0 {
			return strconv.FormatInt(int64(b/unit.size), 10) + unit.name
		}
	}
	return strconv.FormatInt(int64(b), 10) + "B"
}

// format formats a value as in the file.
func format(value any) string {
	switch v := value.(type) {
	case time.Duration:
		return formatDuration(v)
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case []string:
		return "[" + strings.Join(v, ", ") + "]"
	default:
		if list := reflect.ValueOf(v); list.Kind() == reflect.Slice {
			return formatItems(list)
		}
		return fmt.Sprint(v)
	}
}

// formatDuration omits the zero units that time.Duration.String appends: 1h, not 1h0m0s.
func formatDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
