package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A setting may be a list of items with settings of their own: a slice of structs. A pointer field
// is nil if the item does not set it.

// isItems reports whether s is such a list.
func (s setting) isItems() bool { return s.isList() && s.typ.Elem().Kind() == reflect.Struct }

// readItems reads the items of a list. lines holds the line of each.
func (s setting) readItems(node *yaml.Node) (value any, lines []int, bad *mismatch) {
	items := reflect.MakeSlice(s.typ, 0, len(node.Content))
	for i, item := range node.Content {
		line := item.Line
		read, bad := readItem(s.typ.Elem(), resolved(item), i+1)
		if bad != nil {
			return nil, nil, bad
		}
		items = reflect.Append(items, read)
		lines = append(lines, line)
	}
	return items.Interface(), lines, nil
}

// readItem reads one item, the n-th of its list.
func readItem(typ reflect.Type, node *yaml.Node, n int) (reflect.Value, *mismatch) {
	item := reflect.New(typ).Elem()
	if node.Kind != yaml.MappingNode {
		return item, &mismatch{read: kindName(node) + " as item " + strconv.Itoa(n), want: "want settings such as " +
			names(typ)[0] + ": in each item", line: node.Line}
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		where := func(message string) *mismatch {
			return &mismatch{read: fmt.Sprintf("item %d with %s", n, shown(name.Value)), want: message, line: name.Line}
		}
		field, known := fieldOf(item, name.Value)
		switch {
		case !known:
			return item, where("unknown key; an item has: " + strings.Join(names(typ), ", "))
		case seen[name.Value]:
			return item, where("is set twice; keep one")
		}
		seen[name.Value] = true
		target := field.Type()
		if target.Kind() == reflect.Pointer {
			target = target.Elem()
		}
		converted, _, bad := setting{typ: target}.convertNode(value)
		if bad != nil {
			return item, where(bad.want)
		}
		set(field, reflect.ValueOf(converted))
	}
	return item, nil
}

// set sets a field, or what it points to.
func set(field, value reflect.Value) {
	if field.Kind() == reflect.Pointer {
		field.Set(reflect.New(field.Type().Elem()))
		field = field.Elem()
	}
	field.Set(value)
}

func fieldOf(item reflect.Value, name string) (reflect.Value, bool) {
	for i := range item.NumField() {
		if item.Type().Field(i).Tag.Get("mapstructure") == name {
			return item.Field(i), true
		}
	}
	return reflect.Value{}, false
}

func names(typ reflect.Type) []string {
	var all []string
	for i := range typ.NumField() {
		all = append(all, typ.Field(i).Tag.Get("mapstructure"))
	}
	return all
}

// formatItems formats the items of a list as YAML on one line.
func formatItems(list reflect.Value) string {
	var items []string
	for i := range list.Len() {
		item := list.Index(i)
		var fields []string
		for j := range item.NumField() {
			field := item.Field(j)
			if field.IsZero() {
				continue
			}
			text := format(reflect.Indirect(field).Interface())
			switch value := field.Interface().(type) {
			case []string:
				text = formatWords(value)
			case map[string]string:
				text = formatMap(value)
			}
			if field.Kind() == reflect.String {
				text = strconv.Quote(text)
			}
			fields = append(fields, item.Type().Field(j).Tag.Get("mapstructure")+": "+text)
		}
		items = append(items, "{"+strings.Join(fields, ", ")+"}")
	}
	return "[" + strings.Join(items, ", ") + "]"
}

func formatWords(words []string) string {
	var quoted []string
	for _, word := range words {
		quoted = append(quoted, strconv.Quote(word))
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// formatMap formats a mapping as YAML on one line, in the order of its names.
func formatMap(values map[string]string) string {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		pairs = append(pairs, strconv.Quote(name)+": "+strconv.Quote(values[name]))
	}
	return "{" + strings.Join(pairs, ", ") + "}"
}
