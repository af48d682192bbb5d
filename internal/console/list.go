//go:build !core

package console

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/output/csvout"
)

// Table is how a list is printed.
type Table[T any] struct {
	Name   string // of the list in a JSON object
	Noun   string // one of it, for people
	Titles []string
	Cells  func(*T) []string
	// Write returns a function that writes in another form than those of the Printer; nil: there is none.
	Write func(io.Writer) func(*T) error
}

// List is a list that is being printed. It holds one row at a time, and as text a page of them.
type List[T any] struct {
	Rows int // printed so far

	command *cobra.Command
	format  Format
	table   Table[T]
	file    *outFile
	out     *bufio.Writer
	row     func(*T) error
	flush   func() error
}

// NewList begins to print a list. The caller calls End.
func NewList[T any](p *Printer, command *cobra.Command, table Table[T]) (*List[T], error) {
	l := &List[T]{command: command, format: p.Format(), table: table, flush: func() error { return nil }}
	to := command.OutOrStdout()
	if p.file != "" && p.file != "-" {
		var err error
		if l.file, err = createOutFile(p.file); err != nil {
			return nil, Exit(ExitProblem, err)
		}
		to = l.file
	}
	l.out = bufio.NewWriterSize(to, 1<<16)
	switch {
	case table.Write != nil:
		l.row, l.format = table.Write(l.out), Lines
	case l.format == CSV:
		rows := csvout.New[T](l.out)
		l.row, l.flush = rows.Write, rows.Flush
	case l.format == Text:
		rows := NewTable(l.out, table.Titles...)
		l.row, l.flush = func(value *T) error { return rows.Row(table.Cells(value)...) }, rows.Flush
	default:
		l.row = l.object
	}
	return l, nil
}

// object writes a row as a line, or as a part of the one object.
func (l *List[T]) object(value *T) error {
	if l.format == JSON {
		before := ","
		if l.Rows == 0 {
			before = fmt.Sprintf("{%q:[", l.table.Name)
		}
		if _, err := l.out.WriteString(before); err != nil {
			return err
		}
	}
	return WriteJSON(l.out, value)
}

// Row prints one row.
func (l *List[T]) Row(value *T) error {
	err := l.row(value)
	l.Rows++
	return err
}

// End completes the list, and returns err or its own error. What a JSON object has besides the list is rest, a
// struct; note is for people. A file is removed after an error.
func (l *List[T]) End(err error, rest any, note string) error {
	own := l.flush()
	if l.format == JSON {
		own = errors.Join(own, l.rest(rest))
	}
	notes := l.command.ErrOrStderr()
	if l.format == Text {
		notes = l.out
	}
	if note != "" {
		_, written := fmt.Fprintln(notes, note)
		own = errors.Join(own, written)
	}
	own = errors.Join(own, l.out.Flush())
	if l.file == nil {
		return errors.Join(err, own)
	}
	if err = l.file.finish(errors.Join(err, own)); err != nil {
		return Exit(ExitProblem, fmt.Errorf("write to %s: %w", l.file.name, err))
	}
	_, err = fmt.Fprintf(l.command.ErrOrStderr(), "%s: %s\n", l.file.name, Plural(l.Rows, l.table.Noun))
	return err
}

// rest ends the one object.
func (l *List[T]) rest(rest any) error {
	fields, err := json.Marshal(rest)
	if err != nil {
		return err
	}
	begin := ""
	if l.Rows == 0 {
		begin = fmt.Sprintf("{%q:[", l.table.Name)
	}
	end := "]}\n"
	if inner := bytes.TrimSuffix(fields[1:], []byte("}")); fields[0] == '{' && len(inner) > 0 {
		end = "]," + string(inner) + "}\n"
	}
	_, err = l.out.WriteString(begin + end)
	return err
}
