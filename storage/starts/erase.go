//go:build !core

package starts

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/amble-crawler/amble/internal/system"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// ledgerFiller takes the place of what is erased from a line: no host name has it.
const ledgerFiller = "^"

// Erase rewrites the start ledger of a process that has ended without the names of a set: lines
// before the committed offset go, and of others what names them, so that the offsets of the lines
// stay. All other hosts keep their restart holds. If dry is set, it only counts. commit is called with
// the number of lines that named them when the new file is durable, before it replaces the old one.
func Erase(dir string, committed uint64, names weburl.Names, dry bool, commit func(lines int) error) error {
	path := filepath.Join(dir, FileName)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("erase from the start ledger: %w", err)
	}
	lines := 0
	for line := range bytes.Lines(text) {
		if names.In(line) {
			lines++
		}
	}
	if lines == 0 || dry {
		return commit(lines)
	}
	info, err := os.Stat(path)
	if err == nil {
		err = system.ReplaceFile(path, eraseLines(string(text), committed, names), info.Mode().Perm(),
			func() error { return commit(lines) })
	}
	if err != nil {
		return fmt.Errorf("erase from the start ledger: %w", spaceError(err))
	}
	return nil
}

// eraseLines returns a ledger with the lines behind the committed offset.
func eraseLines(text string, committed uint64, names weburl.Names) []byte {
	header, rest, _ := strings.Cut(text, "\n")
	base, boot, ok := parseLedgerHeader(header)
	end := base + uint64(len(rest))
	if !ok || committed < base || committed > end { // it says that every host may have had a request
		return fmt.Appendf(nil, "%s %d -\n", ledgerMagic, max(committed, end))
	}
	if boot == "" {
		boot = "-"
	}
	b := fmt.Appendf(nil, "%s %d %s\n", ledgerMagic, committed, boot)
	for line := range strings.Lines(rest[committed-base:]) {
		switch {
		case !strings.HasSuffix(line, "\n"): // a request that was never sent
		case names.In([]byte(line)):
			b = append(b, eraseLine(strings.TrimSuffix(line, "\n"), names)+"\n"...)
		default:
			b = append(b, line...)
		}
	}
	return b
}

// eraseLine returns a line of the same length that does not name the hosts of a set. The time and the
// delay of a request stay, and its host and note if only the other of them names one.
func eraseLine(line string, names weburl.Names) string {
	fill := func(n int) string { return strings.Repeat(ledgerFiller, n) }
	fields := strings.Fields(line)
	_, isStart := parseStart(line)
	_, isWait := parseWait(line)
	var short []string // the line with one field, the filler, left out
	at := 0
	switch {
	case isWait:
		short, at = []string{waitMagic, fields[1], "", fields[3]}, 2
	case isStart && names.Has(fields[2]):
		short, at = []string{fields[0], "-", "", fields[3]}, 2
	case isStart && len(fields) == 5 && !names.In([]byte(fields[2])):
		short, at = []string{fields[0], fields[1], fields[2], fields[3], ""}, 4
	default: // no line of a ledger: the filler is none either
		return fill(len(line))
	}
	missing := len(line) - len(strings.Join(short, " "))
	if missing <= 0 {
		return fill(len(line))
	}
	short[at] = fill(missing)
	return strings.Join(short, " ")
}
