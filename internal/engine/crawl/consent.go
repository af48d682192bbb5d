package crawl

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/marks"
	"github.com/amble-crawler/amble/internal/engine/sweep"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/rules/consent"
	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/internal/web/extract"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/internal/web/httpfield"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// statementsOf returns what the robots.txt of a page, the header of its response and the page itself
// say about its use. of has the directives of the header, or those of the header and the page. Most
// pages have none, and cost no allocation.
func (j *judging) statementsOf(l *frontier.Lease, header http.Header, of *extract.Directives) []consent.Statement {
	list := j.originStatements(l)
	if usage := header.Values("Content-Usage"); len(usage) > 0 {
		list = addStatement(list, consent.Statement{
			Preferences: consent.ParseUsage(usage...), Source: consent.SourceHeader,
			Text: "Content-Usage: " + strings.Join(usage, ", "),
		})
	}
	if len(of.Preferences)+len(of.Seen) == 0 {
		return list
	}
	stated := extract.HeaderDirectives(header, j.o.Frontier.Tokens)
	for i, text := range of.Preferences {
		source := consent.SourceHeader
		if i >= len(stated.Preferences) {
			source = consent.SourceMeta
		}
		s := consent.Statement{Source: source, Text: text}
		switch name, value, _ := strings.Cut(text, ": "); name {
		case "robots":
			s.Preferences = j.directives[value]
		case "tdm-reservation":
			s.Preferences = consent.ParseReservation(value)
		}
		list = addStatement(list, s)
	}
	for i, text := range of.Seen {
		s := consent.Statement{Source: consent.SourceHeader, Text: "robots: " + text, Preferences: j.directives[text]}
		if i >= len(stated.Seen) {
			s.Source = consent.SourceMeta
		}
		if strings.HasPrefix(text, "unavailable_after:") && of.UnavailableAfter.Before(j.o.Now()) {
			s.Preferences[consent.Index] = consent.Disallowed
		}
		if !slices.Contains(of.Preferences, s.Text) {
			list = addStatement(list, s)
		}
	}
	return list
}

// originStatements returns what the robots.txt and the TDM file of its origin say about the use of
// a page.
func (j *judging) originStatements(l *frontier.Lease) (list []consent.Statement) {
	if l.Rules != nil {
		list = robotsStatements(l.Rules, l.Head.RequestURI)
	}
	if j.readsTDM() {
		if s, ok := j.tdmFile(l.URL.Origin()).Statement(l.Head.RequestURI); ok {
			list = append(list, s)
		}
	}
	return list
}

// robotsStatements returns what a robots.txt says about the use of a URL.
func robotsStatements(rules *robots.Rules, requestURI string) (list []consent.Statement) {
	for _, u := range rules.Usage(requestURI) {
		s := consent.Statement{Source: consent.SourceRobots, Line: u.Line, Text: u.String()}
		if u.Kind == robots.ContentSignal {
			s.Preferences = consent.ParseSignal(u.Value)
		} else {
			s.Preferences = consent.ParseUsage(u.Value)
		}
		list = addStatement(list, s)
	}
	return list
}

// addStatement adds a statement that states something.
func addStatement(list []consent.Statement, s consent.Statement) []consent.Statement {
	if s.Preferences == (consent.Preferences{}) {
		return list
	}
	return append(list, s)
}

// maxStatement bounds the text of a statement in the output, in bytes.
const maxStatement = 300

// usageOf returns the effective preferences for the output; nil: nobody states one.
func usageOf(list []consent.Statement) (map[string]archive.Usage, consent.Effective) {
	if len(list) == 0 {
		return nil, consent.Effective{}
	}
	effective := consent.Combine(list)
	usage := make(map[string]archive.Usage)
	for c, p := range effective.Preferences {
		if p != consent.Unknown {
			from := list[effective.By[c]].String()
			if len(from) > maxStatement {
				from = strings.ToValidUTF8(from[:maxStatement], "") + "..."
			}
			usage[consent.Category(c).String()] = archive.Usage{Preference: p.String(), From: from}
		}
	}
	return usage, effective
}

// refusesUse reports whether a page is not to be fetched for what its origin says about its use,
// and with what outcome. The TDM file itself is always fetched.
func (j *judging) refusesUse(l *frontier.Lease) (r frontier.PageReport, refused bool) {
	policy := j.live().Consent
	if policy.Fetches() || j.isTDMFile(l.URL) {
		return r, false
	}
	list := j.originStatements(l)
	effective := consent.Combine(list)
	if action, _ := policy.Action(effective); action < consent.SkipFetching {
		return r, false
	}
	r.End, r.Refused = j.o.Now(), true
	r.Outcome = storage.Outcome{State: storage.Denied, Reason: storage.ReasonUsage, Usage: effective.Keep(list)}
	return r, true
}

// skipsStoring reports whether the content of a page is not to be stored for what all sources say about
// its use.
func (j *judging) skipsStoring(res *result) bool {
	action, _ := j.live().Consent.Action(res.usage)
	return action >= consent.SkipStoring
}

// noteUsage takes what all sources say about the use of a page. base is that of references in it.
func (j *judging) noteUsage(
	res *result, header http.Header, page *archive.Page, d *extract.Directives, base weburl.URL,
) {
	list := j.statementsOf(&res.lease, header, d)
	if page.Status == http.StatusNotModified {
		list = append(list, keptOfPage(&res.lease.Head.Last)...)
	}
	page.Usage, res.usage = usageOf(list)
	res.keptUsage = res.usage.Keep(list)
	if res.lease.Rules != nil {
		page.Licenses = slices.Clip(res.lease.Rules.Licenses())
	}
	for _, reference := range d.Licenses {
		if u, err := base.Resolve(reference); err == nil && !slices.Contains(page.Licenses, u.String()) {
			page.Licenses = append(page.Licenses, u.String())
		}
	}
}

// keptOfPage returns what the last whole response of a page said about its use. A 304 leaves it in
// force.
func keptOfPage(last *storage.Outcome) []consent.Statement {
	list, err := consent.Kept(last.Usage)
	if err != nil {
		return nil // it was fetched by a later version of amble
	}
	list = slices.DeleteFunc(list, func(s consent.Statement) bool { return s.Source < consent.SourceHeader })
	for i := range list {
		list[i].Text = "as of an earlier response"
	}
	return list
}

// A TDM file is a URL of its origin's queue, before its sitemaps and pages: it has the verdict, the
// limits, the retries and the record of any other. It is found when the robots.txt is fetched, and put
// back into the queue when that is fetched again later. A mark keeps what it says.

const (
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
func (j *judging) readsTDM() bool { return j.o.TDMFiles || j.live().Consent.ReadsTDM() }

// isTDMFile reports whether a URL is that of the TDM file of its origin, which counts.
func (j *judging) isTDMFile(u weburl.URL) bool {
	return u.RequestURI() == consent.TDMFilePath && j.readsTDM()
}

// announceTDM makes a discovery of the TDM file of an origin whose robots.txt was fetched. If it is
// known and old, it is put back into its queue.
func (j *judging) announceTDM(job *frontier.RobotsJob, record *robots.Record, res *result) {
	u := job.Origin.URL(consent.TDMFilePath)
	if !j.readsTDM() || record.Class == robots.ClassUnreachable ||
		j.scope().CheckSitemap(u, seeds.Ref{}) != frontier.InScope {
		return
	}
	head, host, err := j.store.Lookup(u)
	last := &head.Last
	switch {
	case errors.Is(err, storage.ErrNotFound):
		res.found = append(res.found, storage.Found{
			URL: u, Fingerprint: j.store.Fingerprint(u), Sitemap: true, Priority: frontier.FirstPriority, At: res.robots.End,
		})
		res.robots.HasFirst = true
	case err != nil:
		j.log.Error("cannot look up a TDM file", "url", u.String(), "error", err)
	case last.State != storage.Queued && last.State != storage.Retrying && res.robots.End.Sub(last.At) >= tdmLifetime:
		res.again = append(res.again, sweep.PutBack(host.ID, &head, res.robots.End))
		res.robots.HasFirst = true
	}
}

// readTDMFile takes what the response for a TDM file says. A response that may be another one later
// changes nothing.
func (j *judging) readTDMFile(res *result, resp *fetch.Response) {
	u := res.lease.URL
	if !j.isTDMFile(u) || httpfield.IsTemporary(resp.Status) || resp.Status == http.StatusNotModified {
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
			j.log.Debug("no TDM file", "url", u.String(), "error", err)
		}
	}
	if file.Size() > 0 {
		c.file = file.Encode()
	}
	if len(c.file) > consent.MaxTDMFile { // it could not be read back
		c.file, file = nil, consent.TDMFile{}
	}
	j.tdmFiles.put(c.origin, file)
	res.tdm = &c
}

// tdmFile returns the TDM file of an origin, as it was fetched last.
func (j *judging) tdmFile(of weburl.Origin) consent.TDMFile {
	if file, known := j.tdmFiles.find(of); known {
		return file
	}
	encoded, err := j.store.Mark(marks.TDM + of.String())
	var file consent.TDMFile
	if err == nil && encoded != nil {
		file, err = consent.ParseTDMFile(encoded)
	}
	if err != nil { // it is fetched again in its time
		j.log.Error("a stored TDM file cannot be read", "origin", of.String(), "error", err)
	}
	j.tdmFiles.put(of, file)
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
