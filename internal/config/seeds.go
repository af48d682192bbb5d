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
	"unicode/utf8"

	"github.com/amble-crawler/amble/internal/crawl"
	"github.com/amble-crawler/amble/internal/weburl"
)

// BadSeed is a seed that cannot be used, or a seeds file that cannot be read.
type BadSeed struct {
	Source Source
	Text   string // as read, shortened; empty: the file as a whole
	Reason string // what is wrong, and what to do
}

// String returns the bad seed as one line.
func (b BadSeed) String() string {
	if b.Text == "" {
		return b.Source.String() + ": " + b.Reason
	}
	return b.Source.String() + ": read " + shown(b.Text) + "; " + b.Reason
}

// VisitSeeds passes on the URLs to start from: those of crawl.seeds, those of the file crawl.seeds_file, and extra, the
// arguments of the command line. A bad one goes to bad, with its source and the reason, as does a file that cannot be
// read. The file may be of any length: each seed is passed on as soon as it is read, and nothing is kept.
func VisitSeeds(c *Config, extra []string, good func(crawl.Seed), bad func(BadSeed)) {
	v := seedVisitor{good: good, bad: bad}
	from := c.origins["crawl.seeds"]
	for i, text := range c.Crawl.Seeds {
		v.visit(text, from.item(i))
	}
	if c.Crawl.SeedsFile != "" {
		v.visitFile(c.Crawl.SeedsFile, c.origins["crawl.seeds_file"].Source)
	}
	for i, text := range extra {
		v.visitArgument(text, Source{Name: "argument " + strconv.Itoa(i+1), rank: rankArgument})
	}
}

type seedVisitor struct {
	good func(crawl.Seed)
	bad  func(BadSeed)
}

func (v seedVisitor) visit(text string, from Source) { v.visitWith(text, 0, from) }

func (v seedVisitor) visitWith(text string, priority int8, from Source) {
	u, reason := parseSeed(text)
	if reason != "" {
		v.bad(BadSeed{Source: from, Text: shortened(text), Reason: reason})
		return
	}
	v.good(crawl.Seed{URL: u, Source: from.String(), Priority: priority})
}

// visitArgument is visit with a hint if the argument is a file.
func (v seedVisitor) visitArgument(text string, from Source) {
	if info, err := os.Stat(text); err == nil && info.Mode().IsRegular() {
		v.bad(BadSeed{Source: from, Text: text, Reason: "is a file, not a URL; to read seeds from it use --set " +
			"crawl.seeds_file=" + text})
		return
	}
	v.visit(text, from)
}

// parseSeed returns the URL, or the reason why there is none.
func parseSeed(text string) (weburl.URL, string) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return weburl.URL{}, "is empty; want a URL such as https://example.com/"
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return weburl.URL{}, "is not UTF-8 text; want a URL such as https://example.com/"
	case strings.ContainsAny(text, " \t\r\n"):
		return weburl.URL{}, "contains white space; want one URL, in which a space is written %20"
	}
	u, err := weburl.Parse(text)
	if err == nil {
		return u, ""
	}
	return weburl.URL{}, seedReason(text, err)
}

func seedReason(text string, err error) string {
	switch {
	case errors.Is(err, weburl.ErrTooLong):
		return fmt.Sprintf("is too long (%d bytes); a URL may have %d bytes", len(text), weburl.MaxLength)
	case errors.Is(err, weburl.ErrNoHost):
		return "has no host; want a URL such as https://example.com/"
	case errors.Is(err, weburl.ErrScheme):
		if full, ok := withScheme(text); ok {
			return "has no scheme; did you mean " + full + "?"
		}
		if scheme, _, ok := strings.Cut(text, "://"); ok {
			return scheme + " is not supported; want a URL that begins with http:// or https://"
		}
		return "is not a URL; want one such as https://example.com/"
	}
	if cause := errors.Unwrap(err); cause != nil {
		err = cause
	}
	return "is not a URL that can be fetched (" + err.Error() + ")"
}

// withScheme returns the URL that a host without a scheme stands for, such as example.com or
// localhost:8080.
func withScheme(text string) (string, bool) {
	if strings.Contains(text, "://") || strings.ContainsAny(text, "@\\") {
		return "", false
	}
	u, err := weburl.Parse("https://" + strings.TrimLeft(text, "/"))
	if err != nil || !strings.ContainsAny(u.Host(), ".:") && u.Host() != "localhost" {
		return "", false
	}
	return u.String(), true
}

// shortened bounds what a BadSeed keeps of a text.
func shortened(text string) string {
	const most = 4 * longestShown
	if len(text) > most {
		return strings.Clone(text[:most])
	}
	return text
}

const (
	// maxSeedLine bounds a line of the seeds file, in bytes: three times the longest URL, and room
	// for a comment.
	maxSeedLine = 8 << 10
	// maxBadLines bounds the reports about one file, which may not be a list of URLs at all.
	maxBadLines = 1000
)

// visitFile reads a seeds file. setBy is the source of its name.
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

// visitLines reads one URL a line, with an optional priority after it. It skips empty lines, and
// comments from a # at the start of a line or after white space; it tolerates a byte order mark and
// CRLF. It holds one line at a time.
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
			limited.bad(BadSeed{Source: from, Text: shortened(string(line)),
				Reason: fmt.Sprintf("the line is too long (%d bytes); one URL a line", length)})
		} else if text := withoutComment(line); len(text) > 0 {
			limited.visitLine(string(text), from)
		}
		if err == io.EOF {
			break
		}
	}
	if bad > maxBadLines {
		v.bad(BadSeed{Source: Source{Name: name},
			Reason: fmt.Sprintf("%d more lines are bad; is this a list of URLs?", bad-maxBadLines)})
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
	number, isPriority := strings.CutPrefix(text[at+1:], "priority=")
	if at < 0 || !isPriority {
		v.visit(text, from)
		return
	}
	priority, err := strconv.Atoi(number)
	if err != nil || priority < leastPriority || priority > mostPriority {
		v.bad(BadSeed{Source: from, Text: shortened(text),
			Reason: fmt.Sprintf("priority: want a whole number from %d to %d", leastPriority, mostPriority)})
		return
	}
	v.visitWith(text[:at], int8(priority), from)
}

// readLine returns the next line without its end. If the line is longer than the buffer it returns
// its beginning and its true length. The bytes are valid until the next call.
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

// withoutComment cuts a comment and the white space around the rest. A # inside a word begins a
// fragment.
func withoutComment(line []byte) []byte {
	for i, c := range line {
		if c == '#' && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t') {
			line = line[:i]
			break
		}
	}
	return bytes.TrimSpace(line)
}
