//go:build !core

package console

import (
	"encoding/json"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// Format is a form of what a command prints.
type Format int

// The forms.
const (
	Text  Format = iota // for people
	JSON                // one object
	Lines               // an object a line
	CSV
)

// Printer prints the result of a command: an object, or a list of any length. Its fields are flags.
type Printer struct {
	Default          Format // without a flag
	json, lines, csv bool
	file             string
}

// ObjectFlag adds the flag of a command that prints one object.
func (p *Printer) ObjectFlag(command *cobra.Command, usage string) {
	command.Flags().BoolVar(&p.json, "json", false, usage)
}

// ListFlags adds the flags of a command that prints a list.
func (p *Printer) ListFlags(command *cobra.Command) {
	p.ObjectFlag(command, "print one JSON object")
	command.Flags().BoolVar(&p.lines, "jsonl", false, "print one JSON object a line")
	command.MarkFlagsMutuallyExclusive("json", "jsonl")
	p.FileFlags(command)
	command.MarkFlagsMutuallyExclusive("json", "jsonl", "csv")
}

// FileFlags adds the flags of a command that prints a list in one form, or as CSV.
func (p *Printer) FileFlags(command *cobra.Command) {
	command.Flags().BoolVar(&p.csv, "csv", false, "print CSV with a line of names")
	command.Flags().StringVarP(&p.file, "output", "o", "", "write to this `file`, as its name says: .csv, .json, "+
		".jsonl, and .gz or .zst behind it; default: standard output")
}

// Format returns the form to print.
func (p *Printer) Format() Format {
	switch {
	case p.json:
		return JSON
	case p.lines:
		return Lines
	case p.csv:
		return CSV
	}
	if named, known := p.named(); known {
		return named
	}
	return p.Default
}

// named returns the form that the name of the file says.
func (p *Printer) named() (f Format, known bool) {
	switch p.ending() {
	case ".csv":
		return CSV, true
	case ".json":
		return JSON, true
	case ".jsonl", ".ndjson":
		return Lines, true
	}
	return p.Default, false
}

// ending returns the end of the name of the file, without that of its compression; empty: it has none.
func (p *Printer) ending() string {
	return strings.ToLower(filepath.Ext(strings.TrimSuffix(p.file, filepath.Ext(compression(p.file)))))
}

// Check returns what is wrong with the flags: a file holds what its name says.
func (p *Printer) Check() error {
	named, known := p.named()
	if known && named != p.Format() {
		return Usagef("the name %s says another form than the flag: leave out the flag, or name another file", p.file)
	}
	isOther := p.ending() != "" && !p.json && !p.lines && !p.csv // such as .xlsx
	if p.file != "" && !known && (isOther || p.Format() == Text) {
		return Usagef("the name %s says no form: let it end in .csv, .json or .jsonl", p.file)
	}
	return nil
}

// Object prints an object, with text for people.
func (p *Printer) Object(w io.Writer, value any, text func(io.Writer) error) error {
	if p.Format() == Text {
		return text(w)
	}
	return WriteJSON(w, value)
}

// WriteJSON writes one value on one line.
func WriteJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}
