//go:build !core

package wacz

import (
	"archive/zip"
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/modules/warc/warcfiles"
	"github.com/amble-crawler/amble/internal/records/digest"
	"github.com/amble-crawler/amble/internal/system"
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
}

// Report counts what a package holds.
type Report struct {
	Path     string `json:"path"`
	Bytes    int64  `json:"bytes"` // of the package
	Files    int    `json:"files"`
	Captures int    `json:"captures"`
	Pages    int    `json:"pages"`
	Seeds    int    `json:"seeds"` // those of the pages that are seeds
	Open     int    `json:"open"`  // WARC files that are not complete, and are left out
}

// Write packs all complete WARC files of a collection. Until the package is whole its name ends in ".partial".
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
	waits := o.Path + ".spool" // Open removes what an interrupted call has left there
	pool, err := spool.Open(spool.Options{Dir: waits, Above: 1 << 20, Budget: 64 << 20})
	if err != nil {
		return r, fmt.Errorf("wacz: %w", err)
	}
	defer os.Remove(waits)
	out, err := os.OpenFile(o.Path+partial, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o640)
	if err != nil {
		return r, fmt.Errorf("wacz: %w", err)
	}
	err = newPacker(c, o, pool, out, &r).pack(ctx, files)
	if err == nil {
		err = out.Sync()
	}
	info, statErr := out.Stat()
	if err = errors.Join(err, statErr, out.Close()); err == nil {
		r.Bytes = info.Size()
		err = os.Rename(out.Name(), o.Path)
	}
	if err != nil {
		return r, errors.Join(fmt.Errorf("wacz: pack into %s: %w", o.Path, err), os.Remove(out.Name()))
	}
	if err := system.SyncDir(filepath.Dir(o.Path)); err != nil {
		return r, fmt.Errorf("wacz: %w", err)
	}
	return r, nil
}

// packer makes one package.
type packer struct {
	c         *warcfiles.Collection
	o         Options
	r         *Report
	pool      *spool.Pool // holds what waits
	plain     *bufio.Writer
	zip       *zip.Writer
	resources []resource
	index     *warcfiles.Merger
	seeds     *list // pages.jsonl
	others    *list // extraPages.jsonl
	home      page  // what a viewer opens first
}

func newPacker(c *warcfiles.Collection, o Options, pool *spool.Pool, out io.Writer, r *Report) *packer {
	plain := bufio.NewWriterSize(out, 1<<18)
	return &packer{c: c, o: o, r: r, plain: plain, zip: zip.NewWriter(plain), pool: pool,
		index: warcfiles.NewMerger(pool)}
}

func (p *packer) pack(ctx context.Context, files []warcfiles.File) (err error) {
	defer p.index.Close()
	if p.seeds, err = newList(p.pool, "pages", "Seeds"); err != nil {
		return err
	}
	defer p.seeds.close()
	if p.others, err = newList(p.pool, "extra-pages", "Pages"); err != nil {
		return err
	}
	defer p.others.close()
	for _, f := range files {
		if err := p.file(ctx, f); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		p.r.Files++
	}
	if err := p.writeIndex(ctx); err != nil {
		return fmt.Errorf("index: %w", err)
	}
	if err := errors.Join(p.writeList("pages/pages.jsonl", p.seeds),
		p.writeList("pages/extraPages.jsonl", p.others)); err != nil {
		return fmt.Errorf("pages: %w", err)
	}
	if err := p.manifest(); err != nil {
		return fmt.Errorf("manifest: %w", err)
	}
	return errors.Join(p.zip.Close(), p.plain.Flush())
}

// resource is a part of the package in its manifest.
type resource struct {
	Name  string `json:"name"`
	Path  string `json:"path"`
	Hash  string `json:"hash"`
	Bytes int64  `json:"bytes"`
}

func (p *packer) add(name string, d digest.Digest, n int64) {
	p.resources = append(p.resources, resource{strings.ToLower(path.Base(name)), name, d.String(), n})
}

// part adds a part, compressed by a method of the package zip.
func (p *packer) part(name string, method uint16, write func(io.Writer) error) error {
	w, err := p.zip.CreateHeader(&zip.FileHeader{Name: name, Method: method, Modified: p.o.Now})
	if err != nil {
		return err
	}
	m := &measured{w: w, hash: digest.NewHash()}
	if err := write(m); err != nil {
		return err
	}
	p.add(name, digest.Sum(m.hash), m.n)
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
