package crawl

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/http"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl/internal/stamp"
	"github.com/amble-crawler/amble/internal/engine/marks"
	"github.com/amble-crawler/amble/internal/records/digest"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/web/httpfield"
	"github.com/amble-crawler/amble/storage"
)

// newPlan makes the recrawl plan and has the store consult it about news of known URLs.
func newPlan(o *Options) error {
	if o.Recrawl == nil {
		return nil
	}
	plan, err := recrawl.New(*o.Recrawl)
	if err != nil {
		return err
	}
	if o.RecrawlBudget != nil {
		plan.SetBudget(max(o.RecrawlBudget(), recrawl.LeastBudget))
	}
	o.Frontier.Recrawl = plan
	o.Storage.Notice = func(n storage.Noticed) (time.Time, [8]byte, bool) {
		site, err := recrawl.DecodeSite(n.Site)
		if err != nil || n.Last.Reason == storage.ReasonCrash {
			return time.Time{}, [8]byte{}, false
		}
		page := recrawl.Page{Host: n.Host, RequestURI: n.URI, Claimed: n.Claimed}
		before := recrawl.Memory{At: n.Last.At, Due: n.Last.Due, History: n.Last.History}
		news := recrawl.News{Modified: n.Modified, Read: n.At}
		news.Gone, news.TimesGone = n.Last.State == storage.Failed, int(n.Last.Attempts)
		m, ok := plan.Notice(&page, before, &site, news)
		return m.Due, m.History, ok
	}
	return nil
}

// restorePlan takes over what the plan had learned when it was last committed.
func (e *Engine) restorePlan() error {
	e.plan, _ = e.o.Frontier.Recrawl.(*recrawl.Plan)
	if e.plan == nil {
		return nil
	}
	encoded, err := e.store.Mark(marks.Plan)
	if err != nil {
		return err
	}
	if err := e.plan.Restore(encoded); err != nil {
		return fmt.Errorf("mark %s: %w", marks.Plan, err)
	}
	return nil
}

// followBudget takes over the part of the budget that the shard has now.
func (pm *permits) followBudget() {
	if pm.plan == nil || pm.o.RecrawlBudget == nil {
		return
	}
	if budget := max(pm.o.RecrawlBudget(), recrawl.LeastBudget); budget != pm.plan.Budget() {
		pm.plan.SetBudget(budget)
		pm.f.BudgetChanged(pm.o.Now())
	}
}

// markPlan adds what the plan has learned to a batch, which has the outcomes that it learned it from.
func (pm *permits) markPlan(b *batch) {
	if pm.plan != nil {
		encoded, _ := pm.plan.AppendBinary(nil) // its error is always nil
		b.setMark(marks.Plan, encoded)
	}
}

// compare decides whether a page is the same as at the last response, and keeps what a response
// without a body leaves out.
func (rd *reading) compare(res *result, o *storage.Outcome, header http.Header) {
	last := &res.lease.Head.Last
	res.page.Fresh, _ = httpfield.Caching{
		CacheControl: header.Get("Cache-Control"), Expires: header.Get("Expires"), Date: header.Get("Date"),
		Age: header.Get("Age"),
	}.Freshness(res.page.End)
	if t, err := http.ParseTime(header.Get("Last-Modified")); err == nil && o.State == storage.Fetched {
		res.page.Modified = t
	}
	switch {
	case o.Status == http.StatusNotModified:
		res.page.Change = recrawl.Same
		o.Digest, o.Simhash, o.Bytes, o.Stamp = last.Digest, last.Simhash, last.Bytes, last.Stamp
		if o.ETag == "" {
			o.ETag = last.ETag
		}
		if o.Modified == "" {
			o.Modified = last.Modified
		}
	case last.Digest == 0:
		res.page.Change = recrawl.First
	case last.Digest == o.Digest:
		res.page.Change, o.Simhash = recrawl.Same, last.Simhash
	case recrawl.Similar(last.Simhash, o.Simhash, rd.o.SimilarBits):
		res.page.Change = recrawl.Same
		o.Simhash = last.Simhash // so that many small changes are one some day
	default:
		res.page.Change = recrawl.Changed
	}
}

// targetDigest returns what stands for the content of a page that redirects.
func targetDigest(target string) uint64 {
	sum := sha256.Sum256([]byte(target))
	return binary.BigEndian.Uint64(sum[:])
}

// comparesText reports whether the text of a page is compared: its body has changed since the last response.
func (rd *reading) comparesText(res *result) bool {
	before := res.lease.Head.Last.Digest
	return rd.o.comparesText() && before != 0 && before != shortDigest(res.body)
}

// shortDigest is the part of the digest of a body that the store keeps; 0: there is none.
func shortDigest(of digest.Digest) uint64 { return binary.BigEndian.Uint64(of[:]) }

// stamps returns what makes the stamps of pages; nil: none is recrawled, or the output has what is read out of each.
func (o *Options) stamps() *stamp.Maker {
	needs, e := o.Archive.Needs(), o.Extract
	if o.Recrawl == nil || needs.Text || needs.Links || len(e.Rules) > 0 && !o.Archive.IsNone() {
		return nil
	}
	e.Rules = nil // nobody takes what they find
	return stamp.NewMaker(o.URLs, o.Traps, o.MaxDomainHosts, o.SessionNames, o.NoFollow, o.Sitemaps, e, o.Requisites,
		o.Frontier.Tokens, o.Frontier.MaxDepth, o.Frontier.MaxRedirects)
}
