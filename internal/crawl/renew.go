package crawl

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/http"
	"time"

	"github.com/amble-crawler/amble/internal/extract"
	"github.com/amble-crawler/amble/internal/revisit"
	"github.com/amble-crawler/amble/storage"
)

// MarkPlan is the name of the store's mark with what the plan of renewals has learned.
const MarkPlan = "plan"

// newPlan makes the plan of renewals and lets the store ask it about news of known URLs.
func newPlan(o *Options) error {
	if o.Renew == nil {
		return nil
	}
	plan, err := revisit.New(*o.Renew)
	if err != nil {
		return err
	}
	o.Frontier.Renew = plan
	o.Storage.Notice = func(n storage.Noticed) (time.Time, [8]byte, bool) {
		site, err := revisit.DecodeSite(n.Site)
		if err != nil || n.Last.Reason == storage.ReasonCrash {
			return time.Time{}, [8]byte{}, false
		}
		page := revisit.Page{Host: n.Host, RequestURI: n.URI, Claimed: n.Claimed}
		before := revisit.Memory{At: n.Last.At, Due: n.Last.Due, History: n.Last.History}
		news := revisit.News{Modified: n.Modified, Read: n.At}
		news.Gone, news.TimesGone = n.Last.State == storage.Failed, int(n.Last.Attempts)
		m, ok := plan.Notice(&page, before, &site, news)
		return m.Due, m.History, ok
	}
	return nil
}

// restorePlan takes over what the plan had learned when it was last committed.
func (e *Engine) restorePlan() error {
	e.plan, _ = e.o.Frontier.Renew.(*revisit.Plan)
	if e.plan == nil {
		return nil
	}
	encoded, err := e.store.Mark(MarkPlan)
	if err != nil {
		return err
	}
	if err := e.plan.Restore(encoded); err != nil {
		return fmt.Errorf("mark %s: %w", MarkPlan, err)
	}
	return nil
}

// markPlan puts what the plan has learned into a job, beside the outcomes that it has learned it from.
func (r *run) markPlan(j *job) {
	if r.plan != nil {
		encoded, _ := r.plan.AppendBinary(nil) // its error is always nil
		j.setMark(MarkPlan, encoded)
	}
}

// comparesText reports whether pages are compared by what they say too.
func (e *Engine) comparesText() bool { return e.o.Renew != nil && e.o.SimilarBits > 0 }

// sum keeps the simhash of a document for the comparison with a later one.
func (r *run) sum(res *result, doc *extract.Page) {
	if r.comparesText() {
		res.simhash = revisit.Simhash(doc.Text)
	}
}

// compare says whether a page is the same as when it was last answered, and keeps what an answer without a body leaves out.
func (r *run) compare(res *result, o *storage.Outcome, header http.Header) {
	last := &res.lease.Head.Last
	if t, err := http.ParseTime(header.Get("Last-Modified")); err == nil && o.State == storage.Fetched {
		res.page.Modified = t
	}
	switch {
	case o.Status == http.StatusNotModified:
		res.page.Change = revisit.Same
		o.Digest, o.Simhash, o.Bytes = last.Digest, last.Simhash, last.Bytes
		if o.ETag == "" {
			o.ETag = last.ETag
		}
		if o.Modified == "" {
			o.Modified = last.Modified
		}
	case last.Digest == 0:
		res.page.Change = revisit.First
	case last.Digest == o.Digest:
		res.page.Change = revisit.Same
	case revisit.Similar(last.Simhash, o.Simhash, r.o.SimilarBits):
		res.page.Change = revisit.Same
		o.Simhash = last.Simhash // so that many small changes are one some day
	default:
		res.page.Change = revisit.Changed
	}
}

// targetDigest stands for the content of a page that redirects.
func targetDigest(target string) uint64 {
	sum := sha256.Sum256([]byte(target))
	return binary.BigEndian.Uint64(sum[:])
}

// unplanned reports whether a host has pages that were fetched by a run without a plan.
func unplanned(h *storage.Host) bool {
	renewals, _ := h.Renewing()
	return h.Of(storage.Fetched) > renewals
}

// markAdopt begins the names of the marks of sweeps that put a host's pages on the plan.
const markAdopt = "adopt/"

// newAdoption is the sweep that puts the pages of a host on the plan that are not on it. Their first renewals are spread over the
// time that one visit of each page takes.
func (r *run) newAdoption(id storage.HostID) *sweep {
	c := &sweep{mark: fmt.Sprintf("%s%d", markAdopt, id), host: id, when: storage.In(storage.Fetched), below: unbounded}
	c.ready = func() (decision, error) {
		host, err := r.store.HostByID(id)
		spread := r.adoptionTime()
		return func(h *storage.Head, now time.Time) (storage.Outcome, bool) {
			page := revisit.Page{Host: host.Name, RequestURI: h.RequestURI}
			if !h.Last.Due.IsZero() || h.Last.History != (revisit.History{}) || !r.plan.Plans(&page) {
				return storage.Outcome{}, false
			}
			const parts = 1009 // a prime, so that neighbours come far apart
			o := h.Last
			o.Due = now.Add(spread * time.Duration((int(id)*31+int(h.Ordinal)*397)%parts) / parts)
			return o, true
		}, err
	}
	return c
}

// adoptionTime is how long one visit of each page takes.
func (r *run) adoptionTime() time.Duration {
	rule := &r.o.Renew.Rule
	spread := rule.Interval
	if budget := r.plan.Budget(); budget > 0 {
		days := float64(r.store.Counters().Of(storage.Fetched)) / budget
		spread = max(spread, time.Duration(days*float64(24*time.Hour)))
	}
	return min(max(spread, rule.Min), rule.Max)
}
