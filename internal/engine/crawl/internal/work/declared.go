package work

import (
	"errors"
	"mime"
	"net/http"
	"sync"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/marks"
	"github.com/amble-crawler/amble/internal/engine/sweep"
	"github.com/amble-crawler/amble/internal/rules/consent"
	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/internal/web/httpfield"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// A TDM file is a URL of its origin's queue, before its sitemaps and pages, and so are terms of Really Simple
// Licensing on the same host: they have the verdict, the limits, the retries and the record of any other. They are
// found when the robots.txt is fetched, terms also with a page that names them, and put back into the queue when they
// are found again later. A mark keeps what they say. Terms on another host are not fetched: that site did not ask for
// a request of every crawl of others.

const (
	// declaredLifetime is the age from which on they are fetched again when they are found. It is less than the
	// usual lifetime of a robots.txt.
	declaredLifetime = 12 * time.Hour
	// Their kinds in the output.
	kindTDM, kindTerms = "tdmrep", "rsl"
)

// declared is what a request for a TDM file or for terms brought.
type declared struct {
	Mark  string
	Value []byte // nil: there is none
}

// readsTDM reports whether TDM files count.
func (j *judging) readsTDM() bool { return j.o.TDMFiles || j.consent().ReadsTDM() }

// readsTerms reports whether terms count that take a request.
func (j *judging) readsTerms() bool { return j.o.Terms || j.consent().ReadsTerms() }

// isTDMFile reports whether a URL is that of the TDM file of its origin, which counts.
func (j *judging) isTDMFile(u weburl.URL) bool {
	return u.RequestURI() == consent.TDMFilePath && j.readsTDM()
}

// isTerms reports whether a response is that for terms.
func (j *judging) isTerms(l *frontier.Lease, header http.Header) bool {
	if l.URL.RequestURI() == consent.TDMFilePath || !j.readsTerms() {
		return false
	}
	media, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	return l.Head.Priority == frontier.FirstPriority || media == consent.TermsType
}

// announceDeclared makes discoveries of the TDM file of an origin whose robots.txt was fetched, and of the terms that
// this names.
func (j *judging) announceDeclared(job *frontier.RobotsJob, record *robots.Record, rules *robots.Rules, res *Result) {
	if record.Class == robots.ClassUnreachable {
		return
	}
	if j.readsTDM() {
		res.Robots.HasFirst = j.announce(job.Origin.URL(consent.TDMFilePath), res.Robots.End, res)
	}
	if !j.readsTerms() {
		return
	}
	for _, text := range rules.Licenses() {
		if u, err := weburl.Parse(text); err == nil && u.Host() == job.Origin.Host {
			isNew := j.announce(u, res.Robots.End, res)
			res.Robots.HasFirst = res.Robots.HasFirst || isNew && u.Origin() == job.Origin
		}
	}
}

// announce makes a discovery of a TDM file or of terms. If they are known and old, they are put back into their queue.
// It reports whether they will be fetched therefore.
func (j *judging) announce(u weburl.URL, now time.Time, res *Result) bool {
	if j.scope().CheckSitemap(u, seeds.Ref{}) != frontier.InScope {
		return false
	}
	head, host, err := j.store.Lookup(u)
	last := &head.Last
	switch {
	case errors.Is(err, storage.ErrNotFound):
		res.Found = append(res.Found, storage.Found{
			URL: u, Fingerprint: j.store.Fingerprint(u), Sitemap: true, Priority: frontier.FirstPriority, At: now,
		})
		return true
	case err != nil:
		j.log.Error("cannot look up a TDM file or terms", "url", u.String(), "error", err)
	case last.State != storage.Queued && last.State != storage.Retrying && now.Sub(last.At) >= declaredLifetime:
		res.Others = append(res.Others, sweep.PutBack(host.ID, &head, now))
		return true
	}
	return false
}

// readDeclared takes what the response for a TDM file or for terms says. A response that may be another one later
// changes nothing.
func (j *judging) readDeclared(res *Result, resp *fetch.Response) {
	l := &res.Lease
	isTDM := j.isTDMFile(l.URL)
	if !isTDM && !j.isTerms(l, resp.Header) || httpfield.IsTemporary(resp.Status) ||
		resp.Status == http.StatusNotModified {
		return
	}
	var body []byte
	var err error
	if resp.Status/100 == 2 {
		body, err = resp.Body.Load(nil, max(consent.MaxTDMFile, consent.MaxTerms)+1)
	}
	if isTDM {
		origin := l.URL.Origin()
		c := &declared{Mark: marks.TDM + origin.String()}
		file, no := consent.ParseTDMFile(body)
		if c.Value = file.Encode(); no != nil || file.Size() == 0 || len(c.Value) > consent.MaxTDMFile {
			c.Value, file = nil, consent.TDMFile{} // or it could not be read back
		}
		j.tdmFiles.put(origin, file)
		res.Declared, err = c, errors.Join(err, no)
	} else {
		c := &declared{Mark: marks.TDM + l.URL.String()}
		terms, no := consent.ParseTerms(body)
		if c.Value = terms.Encode(); no != nil || terms.Size() == 0 || len(c.Value) > consent.MaxTerms {
			c.Value, terms = nil, consent.Terms{}
		}
		j.terms.put(l.URL, terms)
		res.Declared, err = c, errors.Join(err, no)
	}
	if err != nil && resp.Status/100 == 2 {
		j.log.Debug("no TDM file, or no terms", "url", l.URL.String(), "error", err)
	}
}

// tdmFile returns the TDM file of an origin, as it was fetched last.
func (j *judging) tdmFile(of weburl.Origin) consent.TDMFile {
	if file, known := j.tdmFiles.find(of); known {
		return file
	}
	file := readMark(j, marks.TDM+of.String(), consent.ParseTDMFile)
	j.tdmFiles.put(of, file)
	return file
}

// termsAt returns the terms at a URL, as they were fetched last.
func (j *judging) termsAt(u weburl.URL) consent.Terms {
	if terms, known := j.terms.find(u); known {
		return terms
	}
	terms := readMark(j, marks.TDM+u.String(), consent.ParseTerms)
	j.terms.put(u, terms)
	return terms
}

// readMark returns what a mark keeps.
func readMark[V any](j *judging, mark string, parse func([]byte) (V, error)) (v V) {
	encoded, err := j.store.Mark(mark)
	if err == nil && encoded != nil {
		v, err = parse(encoded)
	}
	if err != nil { // it is fetched again in its time
		j.log.Error("a stored TDM file, or terms, cannot be read", "mark", mark, "error", err)
	}
	return v
}

// declaredFiles are the TDM files, or terms, that were needed lately. It is safe for concurrent use.
type declaredFiles[K comparable, V interface{ Size() int }] struct {
	mu    sync.Mutex
	files map[K]V // guarded by mu
	bytes int     // in files; guarded by mu
}

// maxDeclared and maxDeclaredBytes bound them; all are forgotten when there are as many.
const maxDeclared, maxDeclaredBytes = 4096, 8 << 20

func (f *declaredFiles[K, V]) find(of K) (file V, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	file, known = f.files[of]
	return file, known
}

func (f *declaredFiles[K, V]) put(of K, file V) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.files == nil || len(f.files) >= maxDeclared || f.bytes+file.Size() > maxDeclaredBytes {
		f.files, f.bytes = make(map[K]V), 0
	}
	f.bytes += file.Size() - f.files[of].Size()
	f.files[of] = file
}
