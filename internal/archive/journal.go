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

// entryLine is an entry as a record carries it, before anybody knows in which file it will be, and where: the line
// of the index without its end.
func entryLine(e *warc.Entry) []byte {
	at := *e
	at.Offset, at.Filename = 0, ""
	line := at.Append(nil)
	return bytes.TrimSuffix(line, []byte(entryEnd("0", "")))
}

// entryEnd is how a line of the index ends.
func entryEnd(offset, name string) string {
	return `"offset":"` + offset + `","filename":"` + name + "\"}\n"
}

// appendJournal appends a line. An entry is completed with the offset and the file's name, which needs no escaping in JSON.
func appendJournal(b []byte, offset, length int64, name string, entry []byte) []byte {
	b = strconv.AppendInt(b, offset, 10)
	b = append(b, ' ')
	b = strconv.AppendInt(b, length, 10)
	if entry == nil {
		return append(b, '\n')
	}
	b = append(b, ' ')
	b = append(b, entry...)
	return append(b, entryEnd(strconv.FormatInt(offset, 10), name)...)
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
		if _, err := warc.ParseEntry(entry); err != nil {
			return j, false
		}
		j.entry = line[len(text)-len(entry):]
	}
	return j, true
}
