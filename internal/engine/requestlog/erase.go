//go:build !core

package requestlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/amble-crawler/amble/internal/system"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// suffixErase is that of a file which is to replace the one of its name.
const suffixErase = ".erase"

// Erased counts what an erasure removes from one file.
type Erased struct {
	Requests int `json:"requests"` // to the hosts that are erased
	// Mentions are values of other requests that named such a host: the origin that a robots.txt
	// was fetched for, the URL that it came from after redirects, and files that name the host in
	// their text.
	Mentions int   `json:"mentions"`
	Lost     int64 `json:"lost"` // requests that could not be read and are now counted as lost
}

func (e Erased) isEmpty() bool { return e.Requests+e.Mentions == 0 }

// Erase rewrites the files of a log that no process writes without the requests to a set of hosts,
// and without what other requests say of them. Each file is replaced when the new one is durable;
// before that commit is called with the file's name. Files that name no such host stay as they are.
// If dry is set, Erase only counts. Where a file is damaged, the requests that cannot be read are
// counted as lost; a file without a readable header is deleted if it names a host of the set.
func Erase(dir string, names weburl.Names, dry bool, commit func(file string, n Erased) error) error {
	files, err := list(dir)
	if err == nil && !dry {
		err = sweepErased(dir)
	}
	for _, f := range files {
		if err == nil {
			err = eraseFile(path(dir, f.serial), names, dry, commit)
		}
	}
	if err != nil {
		return fmt.Errorf("erase from the request log: %w", err)
	}
	return nil
}

// sweepErased removes what an erasure left that was interrupted.
func sweepErased(dir string) error {
	left, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, f := range left {
		if strings.HasSuffix(f.Name(), suffixErase) {
			err = errors.Join(err, os.Remove(filepath.Join(dir, f.Name())))
		}
	}
	return err
}

func eraseFile(name string, names weburl.Names, dry bool, commit func(string, Erased) error) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	e := eraser{names: names, decoder: newFileDecoder(make(map[string]int))}
	if err := e.read(content); err != nil {
		return err
	}
	if e.erased.isEmpty() && e.found {
		e.erased.Mentions = 1
	}
	if e.erased.isEmpty() {
		return nil
	}
	if dry {
		return commit(filepath.Base(name), e.erased)
	}
	if len(e.out) == 0 {
		if err := commit(filepath.Base(name), e.erased); err != nil {
			return err
		}
		return errors.Join(os.Remove(name), system.SyncDir(filepath.Dir(name)))
	}
	fresh := name + suffixErase
	if err := writeDurably(fresh, e.out, info); err != nil {
		return errors.Join(err, os.Remove(fresh))
	}
	if err := commit(filepath.Base(name), e.erased); err != nil {
		return err
	}
	return errors.Join(os.Rename(fresh, name), system.SyncDir(filepath.Dir(name)))
}

// writeDurably writes a file that has the mode of another one, and its age, which decides when it is
// deleted.
func writeDurably(name string, content []byte, like os.FileInfo) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, like.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = os.Chtimes(name, like.ModTime(), like.ModTime())
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// eraser writes the requests of a file again that stay. Contexts, policies and bodies follow from
// these, so that nothing is written that only erased requests refer to.
type eraser struct {
	names   weburl.Names
	decoder *fileDecoder
	encoder encoder
	erased  Erased

	out      []byte
	synced   int    // offset of the last sync frame in out
	requests uint64 // in out
	lost     uint64 // not yet reported in out
	found    bool   // a frame names an erased host, though perhaps no request that can be read refers to it
	policies map[*Policy]*Policy
}

// read reads a whole file.
func (e *eraser) read(content []byte) error {
	e.policies = make(map[*Policy]*Policy)
	r := newFrames("", bytes.NewReader(content))
	var s Summary
	for {
		at := r.at
		payload, err := r.next()
		if err == nil && !e.decoder.frame(payload) {
			err = errDamaged
		}
		switch {
		case err == io.EOF:
			return nil
		case errors.Is(err, errDamaged), errors.Is(err, errIncomplete):
			more, err := s.skip(r, e.decoder, at, false)
			if err != nil {
				return err
			}
			damage := s.Damaged[len(s.Damaged)-1]
			e.damaged(damage.Requests, content[at:at+damage.Bytes])
			if !more {
				return nil
			}
		case err != nil:
			return err
		default:
			e.frame(payload)
		}
	}
}

// damaged leaves a part out that cannot be read. It may name a host that is erased.
func (e *eraser) damaged(requests int64, part []byte) {
	if e.names.In(part) {
		e.erased.Mentions++
	}
	e.lost += uint64(max(requests, 0))
	e.erased.Lost += max(requests, 0)
}

// frame writes a frame again that the decoder has read.
func (e *eraser) frame(payload []byte) {
	d := e.decoder
	switch payload[0] {
	case frameContext:
		e.found = e.found || e.names.Has(d.contexts[len(d.contexts)-1].origin.Host)
	case framePolicy:
		e.found = e.found || e.names.HasURL(d.policies[len(d.policies)-1].Record.FinalURL)
	case frameBody:
		var f bodyFields
		decode(payload, &f) // as the decoder has done
		body, ok := unpack(f.packed, f.size)
		e.found = e.found || f.kept == 1 && ok && e.names.In(body)
	case frameHeader:
		h, _ := decodeHeader(payload) // the decoder has read it
		h.process.LedgerBase = h.ledgerBase
		e.out = e.encoder.header(e.out, &h.process, h.begun, math.MaxInt32)
	case frameLost:
		e.lost += d.takeLost()
		e.flushLost(true)
	case frameRequest, frameOpen:
		if d.unknown {
			e.lost++
			e.erased.Lost++
		}
		if d.ready {
			e.request(payload[0] == frameOpen)
		}
	}
}

// flushLost reports requests that are missing; always: also if there are none, where numbers begin
// again.
func (e *eraser) flushLost(always bool) {
	if e.lost > 0 || always {
		e.out = e.encoder.lost(e.out, e.lost)
		e.lost = 0
	}
}

// request writes a request again, unless it was made to a host that is erased.
func (e *eraser) request(open bool) {
	r := e.decoder.request
	if e.names.Has(r.URL.Host()) {
		e.erased.Requests++
		return
	}
	if r.For != (weburl.Origin{}) && e.names.Has(r.For.Host) {
		e.erased.Mentions++
		r.For, r.Policy = weburl.Origin{}, nil
	}
	r.Policy = e.policy(r.Policy)
	e.flushLost(false)
	if len(e.out)-e.synced >= syncEvery {
		e.synced = len(e.out)
		e.out = e.encoder.sync(e.out, int64(e.synced), e.requests)
	}
	e.requests++
	if open {
		e.out = e.encoder.open(e.out, &r)
		return
	}
	e.out = e.encoder.again(e.out, &r, e.decoder)
}

// policy returns a policy with its body, and without what names a host that is erased.
func (e *eraser) policy(p *Policy) *Policy {
	if p == nil {
		return nil
	}
	if known := e.policies[p]; known != nil {
		return known
	}
	kept := *p
	if body, ok := p.Body(); ok {
		kept.Record.Body = body
	}
	if e.names.HasURL(kept.Record.FinalURL) {
		e.erased.Mentions++
		kept.Record.FinalURL = ""
	}
	if e.names.In(kept.Record.Body) {
		e.erased.Mentions++
		kept.Record.Body = nil
	}
	e.policies[p] = &kept
	return &kept
}

// again appends the frame of a request that a decoder has just read, after the frames that it refers
// to. Its instants stay as exact as they were.
func (e *encoder) again(b []byte, r *Request, d *fileDecoder) []byte {
	b, context := e.context(b, r)
	q := &e.fields
	*q = d.fields
	q.context, q.end, q.offset = context, int64(d.last-e.last), d.offset-e.offset
	if r.For == (weburl.Origin{}) {
		q.flags &^= flagFor
		q.origin = ""
	}
	e.last, e.offset = d.last, d.offset
	return e.frame(b, frameRequest, q)
}
