//go:build !core

// Package receipts makes it known if a request log is changed. Heads, which are signed once an hour, have the digests
// of all that was written since the head before, and of that head: so none can be left out or made later without
// whoever has a newer one knowing.
package receipts

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/amble-crawler/amble/internal/engine/requestlog"
)

// FileName is the name of the file with the heads in the directory of a request log: one JSON object a line.
const FileName = "receipts.jsonl"

// head is what is signed.
type head struct {
	At       time.Time   `json:"at"`
	Previous string      `json:"previous"` // digest of the head before, as it stands in its line; empty: there is none
	Parts    []fileRange `json:"parts"`    // what was written since then
}

// fileRange is a piece of a file of the log.
type fileRange struct {
	File   int    `json:"file"` // its serial number
	From   int64  `json:"from"` // offsets in bytes
	To     int64  `json:"to"`
	Digest string `json:"sha256"`
}

// line is a line of the file of heads.
type line struct {
	Head      json.RawMessage `json:"head"`
	Key       string          `json:"keyid"`
	Signature string          `json:"signature"`
}

// context begins what is signed, so that the signature means nothing elsewhere.
const context = "amble request log head\n"

// Sign signs a content. key names the key.
type Sign func(now time.Time, content []byte) (key string, signature []byte, err error)

// maxLine bounds a line in bytes: a head after the longest pause has a part for each file of the log.
const maxLine = 4 << 20

// Append signs what was written to the log in a directory since its last head, and appends a head. made is false if
// nothing was.
func Append(dir string, now time.Time, sign Sign) (made bool, err error) {
	name := filepath.Join(dir, FileName)
	last, previous, err := readLast(name)
	if err != nil {
		return false, fmt.Errorf("receipts: %w", err)
	}
	h := head{At: now.UTC(), Previous: previous}
	if h.Parts, err = fresh(dir, last); err != nil {
		return false, fmt.Errorf("receipts: %w", err)
	}
	if len(h.Parts) == 0 {
		return false, nil
	}
	text, err := json.Marshal(h)
	if err != nil {
		return false, fmt.Errorf("receipts: %w", err)
	}
	l := line{Head: text}
	key, signature, err := sign(now, append([]byte(context), text...))
	if err != nil {
		return false, fmt.Errorf("receipts: %w", err)
	}
	l.Key, l.Signature = key, base64.RawURLEncoding.EncodeToString(signature)
	return true, appendLine(name, l)
}

// appendLine appends a line durably. What a crash has left of another one is cut.
func appendLine(name string, l line) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o640)
	if err != nil {
		return err
	}
	end, err := wholeLines(f)
	if err == nil {
		err = f.Truncate(end)
	}
	if err == nil {
		_, err = f.WriteAt(append(text, '\n'), end)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("receipts: %w", err)
	}
	return nil
}

// wholeLines returns the offset behind the last newline.
func wholeLines(f *os.File) (end int64, err error) {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	b := make([]byte, 64<<10)
	for at := size; at > 0; {
		n := min(at, int64(len(b)))
		at -= n
		if _, err := f.ReadAt(b[:n], at); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(b[:n], '\n'); i >= 0 {
			return at + int64(i) + 1, nil
		}
	}
	return 0, nil
}

// readLast returns the last head of a file, and its digest. A file that does not exist has none.
func readLast(name string) (last head, digest string, err error) {
	err = eachLine(name, func(_ int, text []byte) error {
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		last = head{}
		if err := json.Unmarshal(l.Head, &last); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		digest = digestOf(l.Head)
		return nil
	})
	return last, digest, err
}

// eachLine calls do for each whole line of a file. One that does not exist has none.
func eachLine(name string, do func(number int, text []byte) error) error {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	lines.Split(func(data []byte, _ bool) (int, []byte, error) { // as ScanLines, without an end that has no newline
		if i := bytes.IndexByte(data, '\n'); i >= 0 {
			return i + 1, data[:i], nil
		}
		return 0, nil, nil
	})
	for n := 1; lines.Scan(); n++ {
		if err := do(n, lines.Bytes()); err != nil {
			return err
		}
	}
	return lines.Err()
}

// fresh returns the parts of the log behind a head.
func fresh(dir string, last head) ([]fileRange, error) {
	files, err := requestlog.Files(dir)
	if err != nil {
		return nil, err
	}
	var end fileRange
	if n := len(last.Parts); n > 0 {
		end = last.Parts[n-1]
	}
	var parts []fileRange
	for _, f := range files {
		p := fileRange{File: f.Serial}
		switch {
		case f.Serial < end.File:
			continue
		case f.Serial == end.File:
			p.From = end.To
		}
		if p.To, p.Digest, err = digestFrom(f.Path, p.From, -1); errors.Is(err, fs.ErrNotExist) {
			continue // just deleted, as an old one
		} else if err != nil {
			return nil, err
		}
		if p.To > p.From {
			parts = append(parts, p)
		}
	}
	return parts, nil
}

// digestFrom returns the digest of a file from an offset to another one, or to its end: -1.
func digestFrom(name string, from, to int64) (end int64, digest string, err error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	if to < 0 {
		info, err := f.Stat()
		if err != nil {
			return 0, "", err
		}
		to = info.Size()
	}
	sum := sha256.New()
	n, err := io.Copy(sum, io.NewSectionReader(f, from, max(to-from, 0)))
	return from + n, hex.EncodeToString(sum.Sum(nil)), err
}

func digestOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// tailBytes bounds what Tail returns.
const tailBytes = 64 << 10

// Tail returns the last heads of the log in a directory, as they stand in their file; nil: there are none.
func Tail(dir string) ([]byte, error) {
	f, err := os.Open(filepath.Join(dir, FileName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("receipts: %w", err)
	}
	defer f.Close()
	end, err := wholeLines(f)
	if err != nil {
		return nil, fmt.Errorf("receipts: %w", err)
	}
	from := max(end-tailBytes, 0)
	b := make([]byte, end-from)
	if _, err := f.ReadAt(b, from); err != nil && err != io.EOF {
		return nil, fmt.Errorf("receipts: %w", err)
	}
	if from > 0 {
		_, b, _ = bytes.Cut(b, []byte("\n"))
	}
	return b, nil
}
