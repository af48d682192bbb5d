package work

import (
	"context"
	"net/http"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/records/digest"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/internal/web/extract"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/internal/web/httpfield"
	"github.com/amble-crawler/amble/internal/web/spool"
	"github.com/amble-crawler/amble/storage"
)

// fetchPage serves a Page lease: one request, its links, its line of output.
func (w *Worker) fetchPage(ctx context.Context, res *Result) {
	l := &res.Lease
	if refusal, refused := w.RefusesUse(l); refused {
		res.Page = refusal
		return
	}
	if l.Head.Depth > 0 && w.mazes.IsStopped(l.HostName, l.Head.RequestURI, func() string { return w.viaOf(l) }) {
		res.Page.End, res.Page.Refused = w.o.Now(), true
		res.Page.Outcome = storage.Outcome{State: storage.Denied, Reason: storage.ReasonMaze}
		return
	}
	req := w.requestOf(l)
	req.MaxBody, req.AnyType = w.maxBody(&l.Head), l.Head.Sitemap || l.Head.IsRequisite()
	if w.scope().OnlyChecks(l.URL, &l.Head.Entry) {
		req = checkOf(l)
	}
	resp, failure, report := w.request(ctx, res, req)
	defer closePartial(failure)
	res.Page.Report = report
	w.takePage(ctx, res, resp, failure)
}

// viaOf returns the target of the page that a URL was found on; "": a seed, a sitemap, on another host, or unreadable.
func (w *Worker) viaOf(l *frontier.Lease) (target string) {
	_, _ = w.store.URLs(l.Head.ViaHost, l.Head.ViaOrdinal, 1, func(h storage.Head) {
		if h.Depth > 0 && !h.Sitemap && l.Head.ViaHost == l.Host {
			target = h.RequestURI
		}
	})
	return target
}

// takePage takes what a request for a page has brought.
func (w *Worker) takePage(ctx context.Context, res *Result, resp *fetch.Response, failure *fetch.Error) {
	l, report := &res.Lease, &res.Page.Report
	if !report.Sent || report.Broken {
		return
	}
	if w.scope().OnlyChecks(l.URL, &l.Head.Entry) {
		if isConfirmed(&l.Head.Last) && resp != nil && resp.Status >= 400 && w.judgeWall(res, resp) {
			res.Page.Outcome = wallOutcome(resp, new(archive.Page))
			return
		}
		res.Page.Outcome, res.Page.Next = checked(l, resp, failure)
		return
	}
	last := l.Head.Last.State
	isRecrawl := !l.Head.IsRequisite() && (last != storage.Queued && last != storage.Retrying || l.Head.Last.Digest > 0)
	if isRecrawl {
		w.tally.Recrawls.Add(1)
	}
	page := archive.Page{URL: l.URL.String(), Depth: int(l.Head.Depth), Attempts: int(l.Head.Last.Attempts) + 1}
	if l.Head.IsRequisite() {
		page.Kind = kindRequisite
	}
	res.seed = w.scope().Seeds().Of(l.URL, frontier.RefOf(&l.Head.Entry))
	if m := res.seed; m != nil {
		page.Seed, page.Tags = m.Root.String(), m.Tags
	}
	if failure != nil {
		res.Page.Outcome = failed(failure)
		page.FetchedAt, page.Duration = failure.Start, report.Duration
		page.Reason, page.Error = failure.Kind.String(), failure.Error()
	} else {
		describe(&page, resp)
		w.judge(ctx, res, resp, &page)
		if res.Page.Broken {
			return
		}
		if before := l.Head.Last.Digest; res.Page.Change != recrawl.First && last != storage.Redirected {
			page.Compare(res.Page.Change == recrawl.Changed, before)
		}
		if isRecrawl && res.Page.Change == recrawl.Same {
			w.tally.AddUnchanged(report.Bytes)
		}
	}
	if resp != nil && resp.Status/100 == 2 && res.Page.Outcome.Reason != storage.ReasonWall {
		w.tally.AddContent(l.Head.IsRequisite())
		res.Passed.Response(page.ContentType, report.Bytes)
	}
	w.replaceSecure(res, &page)
	w.output(ctx, res, &page, resp, failure)
}

// closePartial gives back what a failed request has left.
func closePartial(failure *fetch.Error) {
	if failure != nil {
		_ = failure.Partial.Close() // nothing can be done about a file that cannot be closed
	}
}

// failed returns the outcome of a request without a response.
func failed(failure *fetch.Error) storage.Outcome {
	o := storage.Outcome{State: storage.Failed, Reason: reasonOf(failure.Kind), Note: failure.Detail()}
	if failure.Kind.Temporary() {
		o.State = storage.Retrying
	}
	return o
}

func describe(page *archive.Page, resp *fetch.Response) {
	page.Status, page.FetchedAt = resp.Status, resp.Start
	page.FirstByte, page.Duration = resp.FirstByte.Sub(resp.Start), resp.End.Sub(resp.Start)
	page.ContentType = resp.Header.Get("Content-Type")
	page.Bytes, page.Truncated = resp.Body.Size(), resp.Truncated
}

// judge makes an outcome of a response, and takes the links of a page and the target of a redirect.
func (rd *reading) judge(ctx context.Context, res *Result, resp *fetch.Response, page *archive.Page) {
	page.Note = refusalNote(resp)
	o := storage.Outcome{
		Status: uint16(resp.Status), Reason: storage.ReasonStatus, Bytes: uint64(resp.Body.Size()), Note: page.Note,
	}
	if resp.Status/100 == 2 {
		sum, err := res.digestOf(resp.Body)
		if err != nil {
			res.Page.Outcome = rd.unreadable(page, err)
			return
		}
		res.body = sum
	}
	if rd.judgeWall(res, resp) {
		res.Page.Outcome = wallOutcome(resp, page)
		return
	}
	rd.readDeclared(res, resp)
	switch {
	case resp.Status/100 == 2, resp.Status == 304:
		o.State, o.Reason = storage.Fetched, storage.ReasonNone
		o.ETag, o.Modified = resp.Header.Get("ETag"), resp.Header.Get("Last-Modified")
		if resp.Status == 304 {
			o.Digest = res.Lease.Head.Last.Digest
		} else if res.body != (digest.Digest{}) {
			o.Digest, page.Digest = shortDigest(res.body), res.body.String()
		}
		if err := rd.read(ctx, res, resp, page); err != nil {
			res.Page.Outcome = rd.unreadable(page, err)
			return
		}
		if rd.skipsStoring(res) || res.unarchived && res.Lease.Head.IsRequisite() { // which is for archives
			o.Reason, page.Reason = storage.ReasonUsage, inspect.ReasonName(storage.ReasonUsage)
			page.Title, page.Fields = "", nil
		} else if err := rd.takeRequisites(ctx, res, resp, page); err != nil {
			res.Page.Outcome = rd.unreadable(page, err)
			return
		}
		o.Simhash, o.Stamp, o.Usage = res.simhash, res.stamp, res.keptUsage
		rd.compare(res, &o, resp.Header)
	case httpfield.IsRedirect(resp.Status):
		o.State, o.Reason = rd.redirect(res, resp, page)
		if o.State == storage.Redirected && rd.recrawls {
			o.Digest = targetDigest(page.Redirect)
			rd.compare(res, &o, resp.Header)
		}
	case httpfield.IsTemporary(resp.Status):
		o.State = storage.Retrying
	default:
		o.State = storage.Failed
	}
	res.Page.Outcome = o
}

// unreadable returns the outcome of a page whose body could not be read back from its file: the page is fetched again.
func (rd *reading) unreadable(page *archive.Page, err error) storage.Outcome {
	rd.log.Error("cannot read back a body", "url", page.URL, "error", err)
	page.Reason, page.Error = fetch.KindLocal.String(), err.Error()
	return storage.Outcome{State: storage.Retrying, Reason: reasonOf(fetch.KindLocal)}
}

// redirect makes a discovery of a redirect's target: a URL like any other, with the politeness and
// the rules of its own host.
func (rd *reading) redirect(res *Result, resp *fetch.Response, page *archive.Page) (storage.State, storage.Reason) {
	l := &res.Lease
	target, err := l.URL.Resolve(resp.Header.Get("Location"))
	if err != nil || resp.Header.Get("Location") == "" {
		page.Reason = "redirect without a usable target"
		return storage.Failed, storage.ReasonLocation
	}
	page.Redirect = target.String()
	if target == l.URL {
		page.Reason = "redirect to itself"
		if resp.NewCookies { // which it may have been for
			return storage.Retrying, storage.ReasonLoop
		}
		return storage.Failed, storage.ReasonLoop
	}
	if l.Head.Redirects >= rd.o.Frontier.MaxRedirects {
		page.Reason = "too many redirects"
		return storage.Failed, storage.ReasonRedirects
	}
	scope := rd.scope()
	from := rd.reached(scope, res, target)
	verdict := scope.CheckHead(target, &storage.Entry{
		Sitemap: l.Head.Sitemap, Priority: l.Head.Priority, From: storage.SeedRef(from),
	})
	if l.Head.Seed && (verdict == frontier.OutOfSeeds || verdict == frontier.InScope && from == seeds.Ref{}) &&
		scope.Seeds().Widens(res.seed, target) {
		res.ScopeSeeds = []seeds.Seed{{URL: target, Of: res.seed.Root}}
		verdict = frontier.InScope
		from = seeds.Ref{} // it is in scope then
	}
	if verdict != frontier.InScope {
		page.Reason = "target " + verdict.String()
		res.Passed.Outside++
		if verdict == frontier.OptedOut {
			return storage.Redirected, storage.ReasonOptOut
		}
		return storage.Redirected, storage.ReasonScope
	}
	if trap := rd.trap(res, target); trap != storage.NoTrap {
		page.Reason = "target leads into a trap: " + trap.String()
		return storage.Redirected, storage.ReasonNone
	}
	f := rd.discovery(res, target, from, l.Head.Depth)
	f.Redirects, f.Seed = l.Head.Redirects+1, l.Head.Seed
	if l.Head.Sitemap {
		f.Sitemap, f.Priority = true, l.Head.Priority
	}
	if postpone(rd.o.Traps.Expensive, res, &f); l.Head.IsRequisite() {
		f.Priority, f.Room = l.Head.Priority, l.Head.Room
	}
	res.Found = append(res.Found, f)
	return storage.Redirected, storage.ReasonNone
}

// sniffBytes is how much of a body decides what it is (WHATWG MIME Sniffing, section 5.2, reads as far).
const sniffBytes = 1445

// read takes what a body has for the crawl: the URLs of a sitemap or feed, or the links of a page.
// The error is one of reading the body back.
func (rd *reading) read(ctx context.Context, res *Result, resp *fetch.Response, page *archive.Page) error {
	switch {
	case rd.isTDMFile(res.Lease.URL):
		page.Kind = kindTDM
		return nil
	case rd.isTerms(&res.Lease, resp.Header):
		page.Kind = kindTerms
		return nil
	}
	wishes := extract.HeaderDirectives(resp.Header, rd.o.Frontier.Tokens)
	note(res, page, &wishes)
	rd.noteUsage(res, resp.Header, page, &wishes, res.Lease.URL)
	if !res.hasBody() {
		rd.takeReported(res, page, &wishes)
		return nil
	}
	if !rd.leadsOn(&res.Lease) {
		return nil
	}
	kind := rd.listKind(&res.Lease, res.seed, resp)
	switch {
	case kind == extract.NotAList && resp.Status == http.StatusNotModified: // its links are known
		return nil
	case kind == extract.NotAList:
		return rd.takeLinks(ctx, res, resp, page)
	case rd.forbidsLinks(&wishes):
		page.Kind = kind.String()
		return nil
	}
	return rd.takeList(ctx, res, resp, page, kind)
}

// forbidsLinks reports whether the links of a page are not to be followed.
func (rd *reading) forbidsLinks(d *extract.Directives) bool { return d.NoFollow && rd.o.NoFollow }

// note takes the directives of a page. A page that is no longer available is not to be shown, and
// is not fetched again.
func note(res *Result, page *archive.Page, d *extract.Directives) {
	res.Page.Expires = d.UnavailableAfter
	page.Robots, page.Preferences = d.Seen, d.Preferences
	page.UnavailableAfter = d.UnavailableAfter
	page.NoIndex = d.NoIndex || !d.UnavailableAfter.IsZero() && res.Page.End.After(d.UnavailableAfter)
}

// maxParse is how many bytes of a document are searched for links. What follows is kept and counted, but not read.
const maxParse = extract.MaxDocument

// bodyDigest returns the SHA-256 of a body.
func bodyDigest(body *spool.Content) (digest.Digest, error) {
	if b, ok := body.Bytes(); ok {
		return digest.Of(b), nil
	}
	h := digest.NewHash()
	_, err := body.WriteTo(h)
	return digest.Sum(h), err
}

// reasonOf returns the name that the store has for a kind of failure.
func reasonOf(k fetch.Kind) storage.Reason { return storage.ReasonFetch + storage.Reason(k) }
