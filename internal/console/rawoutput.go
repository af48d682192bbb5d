//go:build !core

package console

import (
	"io"
	"os"

	"golang.org/x/term"
)

// RawOutput returns the unescaped output, unless that is a terminal.
func RawOutput(w io.Writer) io.Writer {
	p, ok := w.(*PlainWriter)
	if !ok {
		return w
	}
	if file, isFile := p.W.(*os.File); isFile && term.IsTerminal(int(file.Fd())) {
		return p
	}
	return p.W
}
