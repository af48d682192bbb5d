// Package csvout writes values of one type as CSV (RFC 4180), for spreadsheets and databases. Its columns are the
// names of the JSON object of the type, so a column means what the field means. No cell is JSON, and none is a formula.
package csvout

import (
	"encoding/csv"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Spreader is a value that takes several columns.
type Spreader interface {
	// CSVColumns returns the names of the columns: the same for every value of the type.
	CSVColumns() []string
	// CSVCells returns as many cells.
	CSVCells() []string
}

// Writer writes values of one type, one a line after a line of names. A cell is empty if the JSON object does not
// have the field. It is not safe for concurrent use.
type Writer[T any] struct {
	csv    *csv.Writer
	fields []field
	cells  []string
}

// field is one field of a type: a column, or several.
type field struct {
	index     []int
	names     []string
	omitEmpty bool
	spread    bool
}

// New returns a Writer to w. The line of names is written first, also if no value follows.
func New[T any](w io.Writer) *Writer[T] {
	c := &Writer[T]{csv: csv.NewWriter(w), fields: fieldsOf(reflect.TypeFor[T](), nil)}
	_ = c.csv.Write(names(c.fields)) // Flush returns its error
	return c
}

func names(fields []field) (all []string) {
	for _, f := range fields {
		all = append(all, f.names...)
	}
	return all
}

// fieldsOf returns the fields of a struct; those of embedded structs stand in their place.
func fieldsOf(t reflect.Type, above []int) (fields []field) {
	for i := range t.NumField() {
		f := t.Field(i)
		at := append(slices.Clone(above), i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			fields = append(fields, fieldsOf(f.Type, at)...)
			continue
		case name == "" || name == "-":
			continue
		}
		one := field{index: at, names: []string{name}, omitEmpty: strings.Contains(options, "omit")}
		if s, spreads := reflect.Zero(f.Type).Interface().(Spreader); spreads {
			one.names, one.spread = s.CSVColumns(), true
		}
		fields = append(fields, one)
	}
	return fields
}

// Write writes the line of a value.
func (c *Writer[T]) Write(value *T) error {
	c.cells = c.cells[:0]
	all := reflect.ValueOf(value).Elem()
	for _, f := range c.fields {
		v := all.FieldByIndex(f.index)
		switch {
		case f.spread:
			for _, cell := range v.Interface().(Spreader).CSVCells() {
				c.cells = append(c.cells, Defuse(cell))
			}
		case f.omitEmpty && v.IsZero():
			c.cells = append(c.cells, "")
		default:
			c.cells = append(c.cells, cell(v))
		}
	}
	return c.csv.Write(c.cells)
}

// Flush writes what is buffered, and returns the first error of all writes.
func (c *Writer[T]) Flush() error {
	c.csv.Flush()
	return c.csv.Error()
}

// cell returns the text of a value. Numbers are as in JSON; only text can be a formula.
func cell(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.FormatInt(v.Int(), 10)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return strconv.FormatUint(v.Uint(), 10)
	case reflect.Float32, reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'f', -1, 64)
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	}
	return Defuse(text(v))
}

// text returns a value as text: the parts of a list or an object are separated by semicolons.
func text(v reflect.Value) string {
	switch value := v.Interface().(type) {
	case time.Time:
		return value.UTC().Format(time.RFC3339Nano)
	case fmt.Stringer:
		return value.String()
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return ""
		}
		return text(v.Elem())
	case reflect.Slice:
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = text(v.Index(i))
		}
		return strings.Join(parts, "; ")
	case reflect.Map:
		parts := make([]string, 0, v.Len())
		for at := v.MapRange(); at.Next(); {
			parts = append(parts, text(at.Key())+": "+text(at.Value()))
		}
		slices.Sort(parts)
		return strings.Join(parts, "; ")
	}
	return fmt.Sprint(v.Interface())
}

// Defuse returns a text that a spreadsheet takes for text: one that could begin a formula gets an apostrophe before it.
func Defuse(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r\n＝＋－＠", []rune(text[:min(len(text), 4)])[0]) {
		return "'" + text
	}
	return text
}
