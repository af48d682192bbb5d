package archive

import (
	"bytes"
	"strconv"

	"github.com/amble-crawler/amble/internal/warc"
)

// journalLine is a line of the journal of a WARC file.
type journalLine struct {
	offset, length int64
	entry          []byte // of the index, with its newline; empty: the record has none
}

// appendJournal appends a line. An entry, which is the start of a line of the index, is completed with the offset and the file's name.
func appendJournal(b []byte, offset, length int64, name string, entry []byte) []byte {
	b = strconv.AppendInt(b, offset, 10)
	b = append(b, ' ')
	b = strconv.AppendInt(b, length, 10)
	if entry == nil {
		return append(b, '\n')
	}
	b = append(b, ' ')
	b = append(b, entry...)
	return warc.AppendEnd(b, offset, name)
}

// parseJournal reads a line. One without its newline was not written as a whole, and is not ok.
func parseJournal(line []byte) (j journalLine, ok bool) {
	text, found := bytes.CutSuffix(line, []byte("\n"))
	if !found {
		return j, false
	}
	offset, rest, _ := bytes.Cut(text, []byte(" "))
	length, entry, has := bytes.Cut(rest, []byte(" "))
	var err, other error
	j.offset, err = strconv.ParseInt(string(offset), 10, 64)
	j.length, other = strconv.ParseInt(string(length), 10, 64)
	if err != nil || other != nil || j.offset < 0 || j.length <= 0 {
		return j, false
	}
	if has {
		if !unbroken(entry) {
			return j, false
		}
		j.entry = line[len(text)-len(entry):]
	}
	return j, true
}

// unbroken reports whether an entry is still as appendJournal wrote it, as far as can be seen from its ends and from bytes that it never has: a power
// cut may leave holes in a file that is not synced.
func unbroken(entry []byte) bool {
	return bytes.HasSuffix(entry, []byte(`"}`)) && bytes.Contains(entry, []byte(` {"url":"`)) && bytes.IndexByte(entry, 0) < 0
}
