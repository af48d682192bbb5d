//go:build !core

package report

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/amble-crawler/amble/internal/output/archive"
)

// Wanted are URLs about which the output is read.
type Wanted struct {
	URLs      []string `json:"urls"`      // whose referrers are wanted
	Redirects []string `json:"redirects"` // whose targets are wanted
	Referrers int      `json:"referrers"` // listed of a URL
}

// Found is what the output has about URLs.
type Found struct {
	Output
	URLs    map[string]*Referrers `json:"urls"`    // by URL; of those that some page links to
	Targets map[string]string     `json:"targets"` // of redirects
}

// Referrers are the pages with links to a URL.
type Referrers struct {
	Count uint64     `json:"count"`
	List  []Referrer `json:"list"`
}

// maxKept bounds the pages that are kept in memory while the output is read, and maxLine the bytes of a line.
const (
	maxKept = 200_000
	maxLine = 1 << 20
)

// Scan reads the output in some directories, in the order in which it was written, also what a running crawl is
// writing. Of a page that was fetched several times, the links of the last time count.
func Scan(ctx context.Context, dirs []string, w Wanted, same Same) (*Found, error) {
	return scan(ctx, dirs, w, same, maxKept)
}

func scan(ctx context.Context, dirs []string, w Wanted, same Same, most int) (*Found, error) {
	s := scanner{
		found: &Found{URLs: map[string]*Referrers{}, Targets: map[string]string{}}, most: w.Referrers, kept: most,
		same: same, wanted: make(map[string]string, len(w.URLs)),
		redirects: make(map[string]bool, len(w.Redirects)), pages: make(map[string]*page),
	}
	for _, u := range w.URLs {
		s.wanted[same(u)] = u
	}
	for _, u := range w.Redirects {
		s.redirects[u] = true
	}
	for _, dir := range dirs {
		if err := s.series(ctx, dir, "links-", s.link); err != nil {
			return nil, err
		}
		if len(s.redirects) > 0 {
			if err := s.series(ctx, dir, "pages-", s.redirect); err != nil {
				return nil, err
			}
		}
	}
	for _, p := range s.pages {
		p.list(s.found, s.most)
	}
	for _, r := range s.found.URLs {
		slices.SortFunc(r.List, func(a, b Referrer) int { return strings.Compare(a.URL, b.URL) })
		r.List = r.List[:min(len(r.List), s.most)]
	}
	return s.found, nil
}

// scanner reads output. One goroutine uses it.
type scanner struct {
	found     *Found
	most      int // pages listed of a URL
	kept      int // pages in memory
	same      Same
	wanted    map[string]string // URLs by what they are the same as
	redirects map[string]bool
	pages     map[string]*page // with wanted links, by URL
	from      []byte           // of the line before
	at        *page            // of the lines before; nil: it has no wanted link yet
}

// page is a page with wanted links.
type page struct {
	url   string
	links []linkTo
}

// linkTo is a link of a page.
type linkTo struct{ to, text, rel string }

// list adds the page to the lists of what it links to.
func (p *page) list(f *Found, most int) {
	for _, l := range p.links {
		r := f.URLs[l.to]
		if len(r.List) > 2*most+100 {
			slices.SortFunc(r.List, func(a, b Referrer) int { return strings.Compare(a.URL, b.URL) })
			r.List = r.List[:most]
		}
		r.List = append(r.List, Referrer{URL: p.url, Text: l.text, Rel: l.rel})
	}
}

// series reads the files of one series in a directory. There may be none.
func (s *scanner) series(ctx context.Context, dir, prefix string, take func(line []byte)) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the output: %w", err)
	}
	for _, e := range entries { // by name, which is their order
		name := archive.Complete(e.Name())
		if !strings.HasPrefix(name, prefix) || !strings.Contains(name, ".jsonl") ||
			archive.IsAside(strings.TrimPrefix(e.Name(), name)) {
			continue
		}
		s.from, s.at = s.from[:0], nil // all lines of a page are in one file
		s.found.Files++
		s.found.Links = s.found.Links || prefix == "links-"
		if err := s.file(ctx, filepath.Join(dir, e.Name()), name, take); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			s.found.Damaged = append(s.found.Damaged, fmt.Sprintf("%s: %v", e.Name(), err))
		}
	}
	return nil
}

// file reads the whole lines of a file.
func (s *scanner) file(ctx context.Context, path, name string, take func(line []byte)) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) { // it was completed meanwhile, and has another name
		f, err = os.Open(filepath.Join(filepath.Dir(path), name))
	}
	if err != nil {
		return err
	}
	defer f.Close()
	isOpen := !strings.HasSuffix(path, name)
	unpacked, release, err := archive.Unpack(bufio.NewReaderSize(f, 1<<16), name)
	if err == nil {
		defer release()
		err = eachLine(ctx, unpacked, take)
	}
	if isOpen && (errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)) {
		err = nil // it is being written
	}
	return err
}

// eachLine calls take for each whole line. Longer ones than maxLine are left out.
func eachLine(ctx context.Context, r io.Reader, take func(line []byte)) error {
	lines := bufio.NewReaderSize(r, maxLine)
	for long, n := false, 0; ; n++ {
		line, err := lines.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			long = true
			continue
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		if !long {
			take(line)
		}
		if long = false; n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// link takes a line of the format links.
func (s *scanner) link(line []byte) {
	from, to := field(line, `"from":"`), field(line, `"to":"`)
	if !bytes.Equal(from, s.from) {
		s.from = append(s.from[:0], from...)
		if s.at = s.pages[string(from)]; s.at != nil { // fetched again: what it had before counts no more
			for _, l := range s.at.links {
				s.found.URLs[l.to].Count--
			}
			s.at.links = nil
		}
	}
	wanted := s.wanted[s.same(string(to))]
	if wanted == "" || s.at.has(wanted) {
		return
	}
	var l struct{ From, Text, Rel string }
	if json.Unmarshal(line, &l) != nil {
		return
	}
	r := s.found.URLs[wanted]
	if r == nil {
		r = &Referrers{List: []Referrer{}}
		s.found.URLs[wanted] = r
	}
	r.Count++
	if s.at == nil {
		if len(s.pages) >= s.kept {
			s.found.Cut = true
			return
		}
		s.at = &page{url: l.From}
		s.pages[string(from)] = s.at
	}
	s.at.links = append(s.at.links, linkTo{wanted, l.Text, l.Rel})
}

// has reports whether a page has a link.
func (p *page) has(to string) bool {
	return p != nil && slices.ContainsFunc(p.links, func(l linkTo) bool { return l.to == to })
}

// redirect takes a line of the format jsonl.
func (s *scanner) redirect(line []byte) {
	if !bytes.Contains(line, []byte(`,"redirect":"`)) || !s.redirects[string(field(line, `"url":"`))] {
		return
	}
	var p struct{ URL, Redirect string }
	if json.Unmarshal(line, &p) == nil && p.Redirect != "" && s.redirects[p.URL] {
		s.found.Targets[p.URL] = p.Redirect
	}
}

// field returns the text of the first field with a name. URLs have no character that JSON escapes, and where one has,
// nothing is found.
func field(line []byte, name string) []byte {
	_, rest, _ := bytes.Cut(line, []byte(name))
	text, _, _ := bytes.Cut(rest, []byte(`"`))
	return text
}

// Wants returns the URLs of a report that the output may know more about.
func (r *Summary) Wants(o Options) Wanted {
	w := Wanted{Referrers: o.Referrers, URLs: []string{}, Redirects: []string{}}
	for i := range r.Broken.List {
		w.URLs = append(w.URLs, r.Broken.List[i].URL)
	}
	for i := range r.Redirects.List {
		w.URLs = append(w.URLs, r.Redirects.List[i].URL)
		w.Redirects = append(w.Redirects, r.Redirects.List[i].URL)
	}
	return w
}

// Complete adds what the outputs of the parts of a crawl have.
func (r *Summary) Complete(o Options, parts ...*Found) {
	for _, f := range parts {
		r.Output.Files, r.Output.Links = r.Output.Files+f.Files, r.Output.Links || f.Links
		r.Output.Damaged, r.Output.Cut = append(r.Output.Damaged, f.Damaged...), r.Output.Cut || f.Cut
	}
	for _, list := range [][]Link{r.Broken.List, r.Redirects.List} {
		for i := range list {
			l := &list[i]
			var count uint64
			for _, f := range parts {
				if more := f.URLs[l.URL]; more != nil {
					count += more.Count
					l.From = append(l.From, more.List...)
				}
				l.Target = cmp.Or(l.Target, f.Targets[l.URL])
			}
			l.From = sumBy(l.From, func(f *Referrer) string { return f.URL }, func(_, _ *Referrer) {})
			if known := uint64(len(l.From)); known > l.Referrers || count > l.Referrers {
				l.Referrers = max(count, known)
			}
			l.From = l.From[:min(len(l.From), o.Referrers)]
		}
	}
	r.Broken.sort()
	r.Redirects.sort()
}
