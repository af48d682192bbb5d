package main

import (
	"io"
	"strings"
)

// tableRows is how many rows a table aligns together. It holds no more.
const tableRows = 500

// table writes rows of any number in aligned columns.
type table struct {
	w    io.Writer
	rows [][]string
}

func newTable(w io.Writer, titles ...string) *table {
	return &table{w: w, rows: [][]string{titles}}
}

func (t *table) row(cells ...string) error {
	t.rows = append(t.rows, cells)
	if len(t.rows) < tableRows {
		return nil
	}
	return t.flush()
}

// flush writes what has gathered.
func (t *table) flush() error {
	var b strings.Builder
	writeTable(&b, t.rows)
	t.rows = t.rows[:0]
	_, err := io.WriteString(t.w, b.String())
	return err
}
