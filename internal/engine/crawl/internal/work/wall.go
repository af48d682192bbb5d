package work

import (
	"encoding/binary"
	"net/http"
	"strings"

	"github.com/amble-crawler/amble/internal/engine/crawl/internal/bodies"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/rules/wall"
	"github.com/amble-crawler/amble/internal/web/extract"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/internal/web/httpfield"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// judgeWall notes what a response says about a wall of its host. It reports whether the response is no
// page: a challenge, or the response of a wall that the host was known to be behind.
func (j *judging) judgeWall(res *Result, resp *fetch.Response) bool {
	if !j.o.Frontier.Walls {
		return false
	}
	l, a := &res.Lease, j.wallAnswer(res, resp)
	res.Page.Wall = a
	if l.Wall != nil {
		known := *l.Wall
		v := known.Observe(resp.End, a)
		res.behindWall = v.Refuses()
	}
	return res.behindWall || a.Sign() == wall.SignChallenge
}

// wallAnswer returns what a response says about a wall.
func (j *judging) wallAnswer(res *Result, resp *fetch.Response) wall.Answer {
	l := &res.Lease
	a := wall.Answer{
		Status: resp.Status, Took: resp.End.Sub(resp.Start), RetryAfter: res.Request.RetryAfter,
		Length: resp.Body.Size(),
	}
	a.Section, a.Top = wall.Sections(l.Head.RequestURI)
	if resp.Status/100 == 3 {
		a.Place, a.From = placeOf(l.URL, resp), wall.PlaceOf(l.URL.String())
	}
	a.HTML = extract.IsHTML(resp.Header.Get("Content-Type"), resp.Body.Head(sniffBytes))
	if resp.Status/100 == 2 {
		a.Digest = binary.BigEndian.Uint64(res.body[:])
	}
	var body []byte
	if resp.Status/100 == 2 && a.HTML && a.Length <= wall.LongestMarked || resp.Status/100 == 4 || resp.Status == 503 {
		body = resp.Body.Head(wall.LongestMarked)
		if whole, inMemory := resp.Body.Bytes(); inMemory {
			body = whole
		}
	}
	a.Mark = j.marks.Find(resp.Header, body)
	if a.HasShape(body) {
		a.Shape = wall.Shape(body, l.URL.Host()+l.Head.RequestURI)
	}
	a.FromSame = a.MayBeSame() && j.isFromSame(&l.Head.Entry, l.Host, &a)
	if a.Digest != 0 && a.Length <= wall.LongestShort {
		j.seen.Add(bodies.Key{Host: l.Host, Digest: a.Digest}, resp.End)
	}
	if a.MayBeOfWall() {
		a.URL, a.Place = j.store.Fingerprint(l.URL), placeOf(l.URL, resp)
	}
	return a
}

// placeOf returns the place of a URL, or of the target of its redirect; 0: there is none, or the redirect
// leads to the page itself.
func placeOf(u weburl.URL, resp *fetch.Response) uint64 {
	if !httpfield.IsRedirect(resp.Status) {
		return wall.PlaceOf(u.String())
	}
	target, err := u.Resolve(resp.Header.Get("Location"))
	if err != nil || resp.Header.Get("Location") == "" || target == u {
		return 0
	}
	return wall.PlaceOf(target.String())
}

// isFromSame reports whether a URL of a host was found on a page of the host, or a redirect from
// there, that has the document of its response.
func (j *judging) isFromSame(e *storage.Entry, host storage.HostID, a *wall.Answer) bool {
	if e.Redirects == 0 && !a.HasKey() && !j.seen.MayHave(bodies.Key{Host: host, Digest: a.Digest}, e.FirstSeen) {
		return false
	}
	via := storage.Head{Entry: *e}
	for range 1 + int(e.Redirects) {
		if via.ViaHost != host {
			return false
		}
		// A page that cannot be read is another one.
		if _, err := j.store.URLs(host, via.ViaOrdinal, 1, func(h storage.Head) { via = h }); err != nil {
			return false
		}
		if via.Last.State != storage.Redirected {
			break
		}
	}
	return a.IsOf(via.Last.Digest, via.Last.Bytes)
}

// wallOutcome is the outcome of a response that is no page.
func wallOutcome(resp *fetch.Response, page *archive.Page) storage.Outcome {
	page.Reason = "wall"
	return storage.Outcome{
		State: storage.Retrying, Reason: storage.ReasonWall, Status: uint16(resp.Status),
		Bytes: uint64(resp.Body.Size()), Note: page.Note,
	}
}

// Bounds of the note of a refusal: its bytes, and the links in it.
const (
	maxNote      = 255
	maxBlockedBy = 8
)

// refusalNote returns what a response says of its refusal: the price of a 402, and who had a page
// withheld with 451 (RFC 7725).
func refusalNote(resp *fetch.Response) string {
	var parts []string
	switch resp.Status {
	case http.StatusPaymentRequired:
		for _, name := range []string{"crawler-price", "crawler-max-price", "crawler-error"} {
			if value := resp.Header.Get(name); value != "" {
				parts = append(parts, name+": "+value)
			}
		}
	case http.StatusUnavailableForLegalReasons:
		for _, target := range httpfield.Links(resp.Header.Values("Link"), "blocked-by", maxBlockedBy) {
			parts = append(parts, "blocked-by: "+target)
		}
	}
	note := strings.ToValidUTF8(strings.Join(parts, "; "), "")
	if len(note) > maxNote {
		note = strings.ToValidUTF8(note[:maxNote], "")
	}
	return note
}
