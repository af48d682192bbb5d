package crawl

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/consent"
	"github.com/amble-crawler/amble/internal/fetch"
	"github.com/amble-crawler/amble/internal/httpfield"
	"github.com/amble-crawler/amble/internal/sweep"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// A TDM file is a URL of its origin's queue, before its sitemaps and pages: it has the verdict, the
// limits, the retries and the record of any other. It is found when the robots.txt is fetched, and put
// back into the queue when that is fetched again later. A mark keeps what it says.

const (
	// markTDM is the prefix of the marks of TDM files. The rest of the name is the origin.
	markTDM = "tdm/"
	// tdmPriority puts the TDM file of an origin before its sitemaps.
	tdmPriority = sitemapPriority + 1
	// tdmLifetime is the age from which on a TDM file is fetched again with the robots.txt. It is less
	// than the usual lifetime of that.
	tdmLifetime = 12 * time.Hour
	// kindTDM is the kind of a TDM file in the output.
	kindTDM = "tdmrep"
)

// tdmChange is what a request for a TDM file brought.
type tdmChange struct {
	origin weburl.Origin
	file   []byte // for the mark; nil: the origin has none
}

// readsTDM reports whether TDM files count.
func (w *worker) readsTDM() bool { return w.o.TDMFiles || w.live().Consent.ReadsTDM() }

// isTDMFile reports whether a URL is that of the TDM file of its origin, which counts.
func (w *worker) isTDMFile(u weburl.URL) bool {
	return u.RequestURI() == consent.TDMFilePath && w.readsTDM()
}

// announceTDM makes a discovery of the TDM file of an origin whose robots.txt was fetched. If it is known
// and old, it is put back into its queue.
func (w *worker) announceTDM(job *frontier.RobotsJob, record *robots.Record, res *result) {
	u := job.Origin.URL(consent.TDMFilePath)
	if !w.readsTDM() || record.Class == robots.ClassUnreachable || w.scope().CheckSitemap(u) != frontier.InScope {
		return
	}
	head, host, err := w.store.Lookup(u)
	last := &head.Last
	switch {
	case errors.Is(err, storage.ErrNotFound):
		res.found = append(res.found, storage.Found{
			URL: u, Fingerprint: w.store.Fingerprint(u), Sitemap: true, Priority: tdmPriority, At: res.robots.End,
		})
	case err != nil:
		w.log.Error("cannot look up a TDM file", "url", u.String(), "error", err)
	case last.State != storage.Queued && last.State != storage.Retrying && res.robots.End.Sub(last.At) >= tdmLifetime:
		res.again = append(res.again, sweep.PutBack(host.ID, &head, res.robots.End))
	}
}

// readTDMFile takes what the response for a TDM file says. A response that may be another one later
// changes nothing.
func (w *worker) readTDMFile(res *result, resp *fetch.Response) {
	u := res.lease.URL
	if !w.isTDMFile(u) || httpfield.IsTemporary(resp.Status) || resp.Status == http.StatusNotModified {
		return
	}
	c := tdmChange{origin: u.Origin()}
	var file consent.TDMFile
	if resp.Status/100 == 2 {
		body, err := resp.Body.Load(nil, consent.MaxTDMFile+1)
		if err == nil {
			file, err = consent.ParseTDMFile(body)
		}
		if err != nil {
			w.log.Debug("no TDM file", "url", u.String(), "error", err)
		}
	}
	if file.Size() > 0 {
		c.file = file.Encode()
	}
	if len(c.file) > consent.MaxTDMFile { // it could not be read back
		c.file, file = nil, consent.TDMFile{}
	}
	w.tdmFiles.put(c.origin, file)
	res.tdm = &c
}

// tdmFile returns the TDM file of an origin, as it was fetched last.
func (w *worker) tdmFile(of weburl.Origin) consent.TDMFile {
	if file, known := w.tdmFiles.find(of); known {
		return file
	}
	encoded, err := w.store.Mark(markTDM + of.String())
	var file consent.TDMFile
	if err == nil && encoded != nil {
		file, err = consent.ParseTDMFile(encoded)
	}
	if err != nil { // it is fetched again in its time
		w.log.Error("a stored TDM file cannot be read", "origin", of.String(), "error", err)
	}
	w.tdmFiles.put(of, file)
	return file
}

// tdmFiles are the TDM files that were needed lately. It is safe for concurrent use.
type tdmFiles struct {
	mu    sync.Mutex
	files map[weburl.Origin]consent.TDMFile // guarded by mu
	bytes int                               // in files; guarded by mu
}

// maxTDMFiles and maxTDMBytes bound them; all are forgotten when there are as many.
const maxTDMFiles, maxTDMBytes = 4096, 8 << 20

func (f *tdmFiles) find(of weburl.Origin) (consent.TDMFile, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	file, known := f.files[of]
	return file, known
}

func (f *tdmFiles) put(of weburl.Origin, file consent.TDMFile) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.files == nil || len(f.files) >= maxTDMFiles || f.bytes+file.Size() > maxTDMBytes {
		f.files, f.bytes = make(map[weburl.Origin]consent.TDMFile), 0
	}
	f.bytes += file.Size() - f.files[of].Size()
	f.files[of] = file
}
