package robots

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// MaxBody bounds the octets of a robots.txt file that are read. The lines that begin within the first
// 500 KiB are, the least that RFC 9309 section 2.5 permits; the last of them may go on for 8 KiB.
// The rest is not read, and neither is a longer line there.
const MaxBody = leastRead + 8<<10

const leastRead = 512_000

// encoding is how the octets of a file encode its text.
type encoding uint8

const (
	encodingPlain encoding = iota
	encodingBOM            // UTF-8 with a byte order mark, whole or partial
	encodingUTF16          // UTF-16 with a byte order mark, either order
)

// readable returns the part of body that is read, as plain octets: its lines up to the limit, without
// a byte order mark, and with UTF-16 converted to UTF-8. It copies only to decode.
func readable(body []byte) (text []byte, enc encoding, cut bool) { return readableOf(body, false) }

// readableOf is readable for a body that may be the beginning of a longer one: truncated.
func readableOf(body []byte, truncated bool) (text []byte, enc encoding, cut bool) {
	if len(body) > MaxBody {
		body, truncated = body[:MaxBody], true
	}
	text, enc = decode(body)
	n := len(text)
	text = wholeLines(text, truncated)
	return text, enc, truncated || len(text) < n
}

// wholeLines returns the lines of text that begin within leastRead octets and are whole.
func wholeLines(text []byte, truncated bool) []byte {
	if len(text) > leastRead {
		if i := bytes.IndexAny(text[leastRead-1:], "\r\n"); i >= 0 {
			return text[:leastRead+i]
		} else if truncated || len(text) > MaxBody {
			text, truncated = text[:leastRead], true
		}
	}
	if truncated {
		return text[:bytes.LastIndexAny(text, "\r\n")+1]
	}
	return text
}

func decode(body []byte) ([]byte, encoding) {
	switch {
	case bytes.HasPrefix(body, []byte("\xFE\xFF")):
		return decodeUTF16(body[2:], 1, 0), encodingUTF16
	case bytes.HasPrefix(body, []byte("\xFF\xFE")):
		return decodeUTF16(body[2:], 0, 1), encodingUTF16
	}
	mark := "\xEF\xBB\xBF"
	n := 0
	for n < len(mark) && n < len(body) && body[n] == mark[n] {
		n++
	}
	if n > 0 {
		return body[n:], encodingBOM
	}
	return body, encodingPlain
}

// decodeUTF16 converts UTF-16 code units to UTF-8. low and high are the offsets of the octets in a
// unit. It replaces what is not a character by U+FFFD and drops an odd octet at the end.
func decodeUTF16(body []byte, low, high int) []byte {
	text := make([]byte, 0, len(body))
	unit := func(i int) rune { return rune(body[i+low]) | rune(body[i+high])<<8 }
	for i := 0; i+1 < len(body); i += 2 {
		r := unit(i)
		if utf16.IsSurrogate(r) {
			pair := rune(utf8.RuneError)
			if i+3 < len(body) {
				pair = utf16.DecodeRune(r, unit(i+2))
			}
			if pair != utf8.RuneError {
				i += 2
			}
			r = pair
		}
		text = utf8.AppendRune(text, r)
	}
	return text
}

// lines iterates over the lines of a text. A line ends at LF, CR or CRLF and at nothing else (RFC
// 9309 section 2.2).
type lines struct {
	text []byte
	at   int // where the next line starts
	// feed is the first LF at or after at, or len(text). It is found once: otherwise each line of a
	// file of CRs would be searched for to the end of the file.
	feed   int
	number int // of the line returned last, from 1
}

func newLines(text []byte) lines {
	return lines{text: text, feed: -1}
}

// next returns the next line without its end.
func (l *lines) next() (line []byte, ok bool) {
	if l.at >= len(l.text) {
		return nil, false
	}
	if l.feed < l.at {
		l.feed = len(l.text)
		if i := bytes.IndexByte(l.text[l.at:], '\n'); i >= 0 {
			l.feed = l.at + i
		}
	}
	l.number++
	line = l.text[l.at:l.feed]
	l.at = l.feed + 1
	if i := bytes.IndexByte(line, '\r'); i >= 0 {
		if i != len(line)-1 {
			l.at -= len(line) - i
		}
		line = line[:i]
	}
	return line, true
}
