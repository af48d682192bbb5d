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

// parseJournal reads a line. One without its newline was not written as a whole, and is not ok; nor is one that a power cut left a hole in.
func parseJournal(line []byte) (j journalLine, ok bool) {
	if j, ok = splitJournal(line); ok && j.entry != nil {
		_, err := warc.ParseEntry(j.entry)
		ok = err == nil
	}
	return j, ok
}

// splitJournal reads a line that this process wrote, or has read before.
func splitJournal(line []byte) (j journalLine, ok bool) {
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
		return journalLine{}, false
	}
	if has {
		j.entry = line[len(text)-len(entry):]
	}
	return j, true
}
