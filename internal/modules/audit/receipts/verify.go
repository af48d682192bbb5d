//go:build !core

package receipts

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/amble-crawler/amble/internal/engine/requestlog"
)

// Report is what the heads of a log prove.
type Report struct {
	Heads    int       `json:"heads"`
	First    time.Time `json:"first"`
	Last     time.Time `json:"last"`
	Bytes    int64     `json:"bytes"`    // of the log, that heads cover and that are as they were
	Unsigned int64     `json:"unsigned"` // bytes at its end that no head covers yet
	Deleted  int       `json:"deleted"`  // files that were signed and that the bounds of the log have deleted
	Findings []Finding `json:"findings"`
}

// Finding is something that is not as it was signed.
type Finding struct {
	Kind   string    `json:"kind"`   // see the constants
	File   string    `json:"file"`   // of the log, or of the heads
	From   int64     `json:"from"`   // offset in bytes, or number of a line of the heads
	To     int64     `json:"to"`     //
	Signed time.Time `json:"signed"` // when the head was made that covers it
	Text   string    `json:"text"`   // in words
	Before time.Time `json:"before"` // the time of the head before; zero: there is none
}

// The kinds of findings.
const (
	Changed = "changed" // a part is not as it was signed
	Dropped = "dropped" // a file is gone, and newer or equally old ones are not
	Late    = "late"    // a part was added to a file after its end, or a file between others
	Broken  = "broken"  // a head is not signed by a known key, or does not continue the one before
)

// maxFindings bounds the findings of a report.
const maxFindings = 1000

// Verify compares the log in a directory with its heads. keys are the public keys by their names. A head whose time is
// after now is broken. saved is a file with heads that somebody has kept, which must be among those of the log; empty:
// there is none.
func Verify(dir string, keys map[string]ed25519.PublicKey, saved string, now time.Time) (*Report, error) {
	v := &verifier{dir: dir, keys: keys, now: now, covered: make(map[int]int64), heads: make(map[string]bool)}
	name := filepath.Join(dir, FileName)
	files, err := requestlog.Files(dir)
	if err != nil {
		return nil, err
	}
	v.files = files
	for _, f := range files {
		v.paths = append(v.paths, f.Path)
	}
	if err := eachLine(name, func(n int, text []byte) error { return v.head(name, n, text) }); err != nil {
		return nil, fmt.Errorf("verify the request log: %w", err)
	}
	err = v.rest()
	if err == nil && saved != "" {
		err = v.saved(saved)
	}
	if err != nil {
		return nil, fmt.Errorf("verify the request log: %w", err)
	}
	return &v.report, nil
}

type verifier struct {
	dir      string
	keys     map[string]ed25519.PublicKey
	now      time.Time
	files    []requestlog.File
	paths    []string
	report   Report
	previous string          // digest of the last head
	end      fileRange       // the last part
	covered  map[int]int64   // bytes of each file that heads cover
	gone     []fileRange     // parts of files that are not there
	heads    map[string]bool // digests of all heads
}

func (v *verifier) find(f Finding) {
	f.Before = v.report.Last
	if len(v.report.Findings) < maxFindings {
		v.report.Findings = append(v.report.Findings, f)
	}
}

// head takes one line of the heads.
func (v *verifier) head(name string, number int, text []byte) error {
	var l line
	var h head
	broken := func(format string, args ...any) {
		v.find(Finding{Kind: Broken, File: filepath.Base(name), From: int64(number), To: int64(number), Signed: h.At,
			Text: fmt.Sprintf("head %d %s", number, fmt.Sprintf(format, args...))})
	}
	if json.Unmarshal(text, &l) != nil || json.Unmarshal(l.Head, &h) != nil {
		broken("cannot be read")
		return nil
	}
	key, known := v.keys[l.Key]
	signature, err := base64.RawURLEncoding.DecodeString(l.Signature)
	switch {
	case !known:
		broken("is signed with the unknown key %.64q", l.Key)
	case err != nil || !ed25519.Verify(key, append([]byte(context), l.Head...), signature):
		broken("does not have a signature that holds")
	case h.Previous != v.previous:
		broken("does not continue the head before it: one was changed or left out")
	case h.At.Before(v.report.Last) || h.At.After(v.now):
		broken("has the time %s, which cannot be", h.At.Format(time.RFC3339))
	}
	v.previous = digestOf(l.Head)
	v.heads[v.previous] = true
	for _, p := range h.Parts {
		if err := v.fileRange(p, h.At); err != nil {
			return err
		}
	}
	if v.report.Heads++; v.report.First.IsZero() {
		v.report.First = h.At
	}
	v.report.Last = h.At
	return nil
}

// fileRange compares a part of the log with its digest.
func (v *verifier) fileRange(p fileRange, signed time.Time) error {
	from := int64(0)
	if p.File == v.end.File {
		from = v.end.To
	}
	if p.File < v.end.File || p.From != from || p.To <= p.From {
		v.find(Finding{Kind: Broken, File: FileName, Signed: signed,
			Text: fmt.Sprintf("a head has a part of file %d from byte %d on, which does not follow what was signed "+
				"before", p.File, p.From)})
		return nil
	}
	v.end, v.covered[p.File] = p, p.To
	path := v.path(p.File)
	if path == "" {
		v.gone = append(v.gone, p)
		return nil
	}
	end, digest, err := digestFrom(path, p.From, p.To)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	if err != nil || end != p.To || digest != p.Digest {
		v.find(Finding{Kind: Changed, File: filepath.Base(path), From: p.From, To: p.To, Signed: signed,
			Text: fmt.Sprintf("bytes %d to %d of %s are not what was signed at %s", p.From, p.To, filepath.Base(path),
				signed.Format(time.RFC3339))})
		return nil
	}
	v.report.Bytes += p.To - p.From
	return nil
}

// path returns the path of a file of the log; empty: it is not there.
func (v *verifier) path(serial int) string {
	for i, f := range v.files {
		if f.Serial == serial {
			return v.paths[i]
		}
	}
	return ""
}

// rest looks for what no head covers, and for files that are gone though older ones are there.
func (v *verifier) rest() error {
	oldest := 0
	if len(v.files) > 0 {
		oldest = v.files[0].Serial
	}
	deleted := make(map[int]bool)
	for _, p := range v.gone {
		if len(v.files) > 0 && p.File < oldest {
			deleted[p.File] = true
			continue
		}
		v.find(Finding{Kind: Dropped, File: fmt.Sprintf("file %d", p.File), From: p.From, To: p.To,
			Text: fmt.Sprintf("file %d of the log, bytes %d to %d, was signed and is gone", p.File, p.From, p.To)})
	}
	v.report.Deleted = len(deleted)
	for _, f := range v.files {
		info, err := os.Stat(f.Path)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		covered := v.covered[f.Serial]
		switch more := info.Size() - covered; {
		case more <= 0:
		case f.Serial >= v.end.File:
			v.report.Unsigned += more
		case covered > 0 || v.end.File > 0:
			v.find(Finding{Kind: Late, File: filepath.Base(f.Path), From: covered, To: info.Size(),
				Text: fmt.Sprintf("bytes %d to %d of %s came after a newer file was signed", covered, info.Size(),
					filepath.Base(f.Path))})
		}
	}
	return nil
}

// saved looks for the heads of a file among those of the log.
func (v *verifier) saved(name string) error {
	if _, err := os.Stat(name); err != nil {
		return err
	}
	return eachLine(name, func(n int, text []byte) error {
		var l line
		if json.Unmarshal(text, &l) != nil {
			return fmt.Errorf("%s: line %d is no head", name, n)
		}
		if !v.heads[digestOf(l.Head)] {
			v.find(Finding{Kind: Dropped, File: filepath.Base(name), From: int64(n), To: int64(n),
				Text: fmt.Sprintf("the head in line %d of %s is not among those of the log", n, filepath.Base(name))})
		}
		return nil
	})
}
