package config

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

const (
	// maxSeedLine bounds a line of the seeds file, in bytes: three times the longest URL, and room for a comment.
	maxSeedLine = 8 << 10
	// maxBadLines bounds what is reported of one file, which may be no list of URLs at all.
	maxBadLines = 1000
)

// visitFile reads a seeds file. setBy is where the name of the file was given.
func (v seedVisitor) visitFile(path string, setBy Source) {
	file, err := os.Open(path)
	if err == nil {
		defer file.Close()
		err = v.visitLines(file, path)
	}
	if err == nil {
		return
	}
	reason := err.Error()
	if pathError := (*fs.PathError)(nil); errors.As(err, &pathError) {
		reason = pathError.Err.Error()
	}
	v.bad(BadSeed{Source: setBy, Reason: fmt.Sprintf("crawl.seeds_file: %s cannot be read: %s", path, reason)})
}

// visitLines reads one URL a line, with a priority behind it where it has one. Empty lines and what follows a # at the start of a line or after white space
// are left out; a byte order mark and CRLF are tolerated. One line is held at a time.
func (v seedVisitor) visitLines(r io.Reader, name string) error {
	lines := bufio.NewReaderSize(r, maxSeedLine+1) // with its newline
	bad := 0
	limited := seedVisitor{good: v.good, bad: func(b BadSeed) {
		if bad++; bad <= maxBadLines {
			v.bad(b)
		}
	}}
	for number := 1; ; number++ {
		line, length, err := readLine(lines)
		if err != nil && err != io.EOF {
			return err
		}
		if number == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		from := Source{Name: name, Line: number}
		if length > maxSeedLine {
			limited.bad(BadSeed{Source: from, Text: shortened(string(line)), Reason: fmt.Sprintf("the line is too long (%d bytes); one URL a line", length)})
		} else if text := withoutComment(line); len(text) > 0 {
			limited.visitLine(string(text), from)
		}
		if err == io.EOF {
			break
		}
	}
	if bad > maxBadLines {
		v.bad(BadSeed{Source: Source{Name: name}, Reason: fmt.Sprintf("%d more lines are bad; is this a list of URLs?", bad-maxBadLines)})
	}
	return nil
}

// Priorities that a seed may have.
const (
	leastPriority = -100
	mostPriority  = 100
)

// visitLine reads "https://example.com/" or "https://example.com/ priority=5".
func (v seedVisitor) visitLine(text string, from Source) {
	at := strings.LastIndexAny(text, " \t")
	number, given := strings.CutPrefix(text[at+1:], "priority=")
	if at < 0 || !given {
		v.visit(text, from)
		return
	}
	priority, err := strconv.Atoi(number)
	if err != nil || priority < leastPriority || priority > mostPriority {
		v.bad(BadSeed{Source: from, Text: shortened(text), Reason: fmt.Sprintf("priority: want a whole number from %d to %d", leastPriority, mostPriority)})
		return
	}
	v.visitWith(text[:at], int8(priority), from)
}

// readLine returns the next line without its end, or its beginning and its true length where it is longer than the buffer. The
// bytes hold until the next call.
func readLine(r *bufio.Reader) (line []byte, length int, err error) {
	line, err = r.ReadSlice('\n')
	length = len(line)
	if err == bufio.ErrBufferFull {
		line = bytes.Clone(line[:4*longestShown])
		for err == bufio.ErrBufferFull {
			var more []byte
			more, err = r.ReadSlice('\n')
			length += len(more)
		}
	}
	if err == nil {
		length-- // the newline
	}
	return bytes.TrimRight(line, "\r\n"), length, err
}

// withoutComment cuts a comment and the white space around the rest. A # inside a word begins a fragment.
func withoutComment(line []byte) []byte {
	for i, c := range line {
		if c == '#' && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t') {
			line = line[:i]
			break
		}
	}
	return bytes.TrimSpace(line)
}
