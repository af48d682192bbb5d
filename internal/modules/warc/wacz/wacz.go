//go:build !core

package wacz

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/modules/warc/warcfiles"
	"github.com/amble-crawler/amble/internal/records/digest"
	"github.com/amble-crawler/amble/internal/web/spool"
)

// Version is that of the format: py-wacz 0.5 accepts no other, and refuses the profile of the draft of 1.2.
const Version = "1.1.1"

// The extension of a package, and of one that is not complete.
const (
	Extension = ".wacz"
	partial   = ".partial"
)

// ErrEmpty means that no WARC file is complete.
var ErrEmpty = errors.New("no WARC file is complete")

// Options say what to pack, and where to.
type Options struct {
	Path     string // of the package; it replaces one of that name
	Prefix   string // of the names of the files that it takes; empty: all
	Title    string // of the collection
	Software string
	Now      time.Time

	every int64 // bytes of the package that may be lost with the process; 0: commitEvery
}

// Report counts what a package holds.
type Report struct {
	Path     string `json:"path"`
	Bytes    int64  `json:"bytes"` // of the package
	Files    int    `json:"files"`
	Captures int    `json:"captures"`
	Pages    int    `json:"pages"`
	Seeds    int    `json:"seeds"`            // those of the pages that are seeds
	Open     int    `json:"open"`             // WARC files that are not complete, and are left out
	Before   int    `json:"before,omitempty"` // of Files: those that a call before, which did not end, has packed
}

// Write packs all complete WARC files of a collection. Until the package is whole it is in a directory whose name ends
// in ".partial". If the context ends, or the process, a later call goes on behind the last WARC file that is whole
// there.
func Write(ctx context.Context, c *warcfiles.Collection, o Options) (r Report, err error) {
	files, open, err := c.Complete()
	if err != nil {
		return r, err
	}
	files = slices.DeleteFunc(files, func(f warcfiles.File) bool { return !strings.HasPrefix(f.Name, o.Prefix) })
	r.Path = o.Path
	if r.Open = open; len(files) == 0 {
		return r, ErrEmpty
	}
	whole, err := attempt(ctx, c, o, &r, files)
	if err == nil && !whole {
		_, err = attempt(ctx, c, o, &r, files)
	}
	if err != nil {
		return r, fmt.Errorf("wacz: pack into %s: %w", o.Path, err)
	}
	return r, nil
}

// attempt is Write once. It is false if what an earlier call has left cannot be taken up; then that is gone.
func attempt(ctx context.Context, c *warcfiles.Collection, o Options, r *Report, files []warcfiles.File) (whole bool,
	err error) {
	u, err := openUnfinished(o.Path)
	if err != nil {
		return false, err
	}
	defer func() {
		if err = errors.Join(err, u.close()); ctx.Err() == nil || err == nil {
			err = errors.Join(err, u.remove())
		}
	}()
	before, err := u.begun(c, files, o.Software)
	if err != nil {
		return false, err
	}
	pool, err := spool.Open(spool.Options{Dir: u.dir, Above: 1 << 20, Budget: 64 << 20})
	if err != nil {
		return false, err
	}
	p := &packer{c: c, o: o, r: r, unfinished: u, zip: zip.NewWriter(u.past), index: warcfiles.NewMerger(pool),
		pool: pool}
	defer p.index.Close()
	if whole, err = p.takeUp(before); err == nil && whole {
		err = p.pack(ctx, files[len(before):])
	}
	if err == nil && whole {
		r.Bytes, err = u.finish(o.Path)
	}
	return whole, err
}

// packer makes one package.
type packer struct {
	c          *warcfiles.Collection
	o          Options
	r          *Report
	pool       *spool.Pool // holds what waits in this call
	unfinished *unfinished
	zip        *zip.Writer
	resources  []resource
	index      *warcfiles.Merger
	last       zip.FileHeader // of the last part
	home       page           // what a viewer opens first
}

// pack packs the rest of the files, and what has waited.
func (p *packer) pack(ctx context.Context, files []warcfiles.File) (err error) {
	lists := p.unfinished.waiting[1:]
	for i, title := range []string{"Seeds", "Pages"} {
		if lists[i].n == 0 {
			id := []string{"pages", "extra-pages"}[i]
			err = errors.Join(err, lists[i].add(map[string]any{"format": "json-pages-1.0", "id": id, "title": title,
				"hasText": true}))
		}
	}
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := p.file(ctx, f); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	if err := p.writeIndex(ctx); err != nil {
		return fmt.Errorf("index: %w", err)
	}
	if err := errors.Join(p.writeList("pages/pages.jsonl", lists[0]),
		p.writeList("pages/extraPages.jsonl", lists[1])); err != nil {
		return fmt.Errorf("pages: %w", err)
	}
	if err := p.manifest(); err != nil {
		return fmt.Errorf("manifest: %w", err)
	}
	return p.zip.Close()
}

// resource is a part of the package in its manifest.
type resource struct {
	Name  string `json:"name"`
	Path  string `json:"path"`
	Hash  string `json:"hash"`
	Bytes int64  `json:"bytes"`
}

// part adds a part, compressed by a method of the package zip.
func (p *packer) part(name string, method uint16, write func(io.Writer) error) error {
	header := &zip.FileHeader{Name: name, Method: method, Modified: p.o.Now}
	w, err := p.zip.CreateHeader(header)
	if err != nil {
		return err
	}
	m := &measured{w: w, hash: digest.NewHash(), crc: crc32.NewIEEE()}
	if err := write(m); err != nil {
		return err
	}
	p.last, p.last.CRC32 = *header, m.crc.Sum32()
	sum := digest.Sum(m.hash).String()
	p.resources = append(p.resources, resource{strings.ToLower(path.Base(name)), name, sum, m.n})
	return nil
}

// manifest writes datapackage.json, and its digest.
func (p *packer) manifest() error {
	now := p.o.Now.UTC().Format(time.RFC3339)
	text, err := indented(struct {
		Profile      string     `json:"profile"`
		Version      string     `json:"wacz_version"`
		Title        string     `json:"title,omitzero"`
		Software     string     `json:"software"`
		Created      string     `json:"created"`
		Modified     string     `json:"modified"`
		MainPageURL  string     `json:"mainPageUrl,omitzero"`
		MainPageDate string     `json:"mainPageDate,omitzero"`
		Resources    []resource `json:"resources"`
	}{"data-package", Version, p.o.Title, p.o.Software, now, now, p.home.URL, p.home.Time, p.resources})
	if err != nil {
		return err
	}
	sum, err := indented(map[string]string{"path": "datapackage.json", "hash": digest.Of(text).String()})
	if err != nil {
		return err
	}
	write := func(name string, text []byte) error {
		return p.part(name, zip.Store, func(w io.Writer) error { _, err := w.Write(text); return err })
	}
	return errors.Join(write("datapackage.json", text), write("datapackage-digest.json", sum))
}

func indented(v any) ([]byte, error) {
	text, err := json.MarshalIndent(v, "", "  ")
	return append(text, '\n'), err
}

// nameOf returns the name of a WARC file in the package.
func nameOf(f warcfiles.File) string {
	base, _ := warc.Base(f.Name)
	return base + ".warc.gz"
}
