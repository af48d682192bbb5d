package work

import (
	"context"
	"errors"
	"math"
	"strconv"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/web/extract"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// RequisiteOptions say what is fetched of what pages are made of.
type RequisiteOptions struct {
	Fetch   bool
	PerPage int // at most, those of its style sheets included
	// Find returns what a document is made of, at most so many, those that lead to more first, and how many are
	// left out. Any goroutine may call it.
	Find func(text []byte, contentType string, base weburl.URL, most int) (
		all []extract.Requisite, left int) `json:"-"`
}

// Validate says what is wrong with the options.
func (o *RequisiteOptions) Validate() error {
	switch {
	case !o.Fetch:
		return nil
	case o.Find == nil:
		return errors.New("archive.requisites asks for what this program was built without (build tag core): " +
			"leave it out, or use the whole program")
	case o.PerPage < 1:
		return errors.New("crawl: Requisites.PerPage should be at least 1")
	}
	return nil
}

// kindRequisite is the kind of a requisite in the output.
const kindRequisite = "requisite"

// requisites returns how many requisites may be taken of a page, or of a requisite of it.
func (rd *reading) requisites(res *Result, page *archive.Page) int {
	o, head := &rd.o.Requisites, &res.Lease.Head
	isKept := !res.unarchived && !(head.Seed && res.seed != nil && res.seed.NoStore)
	switch {
	case !o.Fetch || !isKept || !res.hasBody() || head.Sitemap || page.Extracted == archive.ExtractedEarlier:
		return 0
	case head.IsRequisite():
		return int(head.Room)
	}
	return max(o.PerPage*3/4, 1) // style sheets have the rest
}

// takeRequisites makes discoveries of what a page is made of. The error is one of reading the body back.
func (rd *reading) takeRequisites(ctx context.Context, res *Result, resp *fetch.Response, page *archive.Page) error {
	most := rd.requisites(res, page)
	if most == 0 {
		return nil
	}
	l := &res.Lease
	var all []extract.Requisite
	left := 0
	err := rd.withText(ctx, resp, func(text []byte) {
		all, left = rd.o.Requisites.Find(text, resp.Header.Get("Content-Type"), l.URL, most)
	})
	if ctx.Err() != nil {
		res.Page.Broken = true // it is fetched again
		return nil
	}
	leading := 0
	for leading < len(all) && all[leading].Leads {
		leading++
	}
	room := 0
	if leading > 0 && !l.Head.IsRequisite() {
		room = min(max(rd.o.Requisites.PerPage-len(all), 0)/leading, math.MaxUint8)
	}
	scope := rd.scope()
	for i, r := range all {
		u, ok := rd.o.URLs.Apply(r.URL)
		f := rd.discovery(res, u, rd.reached(scope, res, u), l.Head.Depth+1)
		if f.Priority = storage.PriorityRequisite; i < leading {
			f.Room = uint8(room)
		}
		if !ok {
			left++
			continue
		}
		res.requisites.Add("requisite", u.String())
		if scope.CheckHead(u, &storage.Entry{Priority: f.Priority}) != frontier.InScope {
			res.Passed.Outside++
			continue
		}
		if u.Host() != l.HostName && !rd.hosts.Add(u.Host()) {
			rd.refuse(res, u, storage.TrapHosts)
			continue
		}
		res.Found = append(res.Found, f)
	}
	if left > 0 {
		res.requisites.Add("requisites-left-out", strconv.Itoa(left))
	}
	return err
}

// leadsOn reports whether the links of a response are followed: those of a requisite only if it belongs to the crawl.
func (rd *reading) leadsOn(l *frontier.Lease) bool {
	return !l.Head.IsRequisite() || rd.scope().Check(l.URL, frontier.RefOf(&l.Head.Entry)) == frontier.InScope
}

// referer returns what a request for a requisite says about its page: as browsers do, its URL, or to others its origin.
func (ar *archiving) referer(l *frontier.Lease) string {
	if !l.Head.IsRequisite() {
		return ""
	}
	page, err := weburl.Parse(ar.via(&l.Head))
	switch {
	case err != nil, page.Scheme() == "https" && l.URL.Scheme() == "http":
		return ""
	case page.Origin() != l.URL.Origin():
		return page.Origin().URL("/").String()
	}
	return page.String()
}
