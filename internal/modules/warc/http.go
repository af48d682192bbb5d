package warc

import (
	"bytes"
	"strconv"
)

// HTTPHead returns the length of the header of an HTTP message at the start of a block, with the
// empty line behind it. It is not ok if the bytes do not contain that line.
func HTTPHead(block []byte) (n int, ok bool) {
	for at := 0; ; {
		end := bytes.IndexByte(block[at:], '\n')
		if end < 0 {
			return 0, false
		}
		line := block[at : at+end]
		at += end + 1
		if len(line) == 0 || len(line) == 1 && line[0] == '\r' {
			return at, true
		}
	}
}

// Status returns the status of an HTTP response from its header; 0 if there is none.
func Status(head []byte) int {
	line, _, _ := bytes.Cut(head, []byte("\n"))
	_, rest, found := bytes.Cut(line, []byte(" "))
	if !found || len(rest) < 3 {
		return 0
	}
	n, err := strconv.Atoi(string(rest[:3]))
	if err != nil || n < 100 {
		return 0
	}
	return n
}

// HTTPField returns the value of the first field with a name in the header of an HTTP message.
func HTTPField(head []byte, name string) string {
	for len(head) > 0 {
		var line []byte
		line, head, _ = bytes.Cut(head, []byte("\n"))
		field, value, found := bytes.Cut(line, []byte(":"))
		if found && bytes.EqualFold(field, []byte(name)) {
			return string(bytes.TrimSpace(value))
		}
	}
	return ""
}

// originally is the prefix of the names of fields that are no longer as they were on the wire.
// Replay tools use the same prefix.
const originally = "X-Archive-Orig-"

// AppendStoredHead appends the header of a response whose body is stored without chunks (RFC 9112,
// section 7.1.3), or not as a whole. Content-Length is the length of the stored body. Fields that
// contradict it are renamed, and everything else stays byte for byte.
func AppendStoredHead(b, head []byte, length int64) []byte {
	for len(head) > 0 {
		end := bytes.IndexByte(head, '\n') + 1
		if end == 0 {
			end = len(head)
		}
		line := head[:end]
		if head = head[end:]; len(head) == 0 { // the empty line
			b = append(b, "Content-Length: "...)
			b = strconv.AppendInt(b, length, 10)
			return append(append(b, "\r\n"...), line...)
		}
		name, _, _ := bytes.Cut(line, []byte(":"))
		for _, about := range [...]string{"Content-Length", "Transfer-Encoding", "Trailer"} {
			if bytes.EqualFold(bytes.TrimRight(name, " \t"), []byte(about)) {
				b = append(b, originally...)
			}
		}
		b = append(b, line...)
	}
	return b
}
