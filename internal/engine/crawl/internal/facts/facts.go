// Package facts is what the archive says of the requests of a crawl: what went over the wire, how each was found, and
// why it was allowed.
package facts

import (
	"maps"
	"slices"
	"strconv"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/web/fetch"
)

// Exchange returns what went over the wire for a lease, also if it broke off. Nil: nothing that is kept.
func Exchange(l *frontier.Lease, resp *fetch.Response, failure *fetch.Error) (*archive.Exchange, *fetch.Response) {
	why := archive.TooLong
	if failure != nil {
		resp, why = failure.Partial, truncation(failure.Kind)
	}
	if resp == nil || resp.Wire == nil || why == "" {
		return nil, nil
	}
	truncated := archive.Truncation("")
	if resp.Wire.Truncated {
		truncated = why
	}
	return &archive.Exchange{
		URL: l.URL.String(), At: resp.Start, Address: resp.RemoteAddr.Addr(), Request: resp.Wire.Request,
		Response: resp.Wire.Response, Protocol: resp.Wire.Protocol, Chunked: resp.Wire.Chunked, Truncated: truncated,
	}, resp
}

// truncation returns why a body broke off; empty: the failure says nothing about the response.
func truncation(k fetch.Kind) archive.Truncation {
	switch k {
	case fetch.KindBodyTimeout:
		return archive.TookTooLong
	case fetch.KindIncompleteBody, fetch.KindReset, fetch.KindClosed, fetch.KindTLS, fetch.KindProxy:
		return archive.Disconnected
	case fetch.KindBadEncoding, fetch.KindUnknown:
		return archive.Unspecified
	}
	return ""
}

// Page returns what the archive says of the request for a page: how it was found, why it was
// allowed, and at which delay it was made. docs/ARCHIVE.md explains each.
func Page(l *frontier.Lease, page *archive.Page, resp *fetch.Response) archive.Facts {
	facts := make(archive.Facts, 0, 16)
	facts.Add("via", page.Via)
	if l.Head.IsRequisite() {
		facts.Add("kind", page.Kind)
	}
	facts.Add("depth", strconv.Itoa(page.Depth))
	if l.Head.Seed {
		facts.Add("seed", "true")
	}
	if page.Seed != "" {
		facts.Add("reached-from", page.Seed)
	}
	for _, tag := range page.Tags {
		facts.Add("tag", tag)
	}
	if page.Changed != nil {
		facts.Add("changed", strconv.FormatBool(*page.Changed))
		facts.Add("digest-before", page.DigestBefore)
	}
	facts.Add("attempt", strconv.Itoa(page.Attempts))
	verdict := "allowed"
	if !l.Verdict.Allowed {
		verdict = "disallowed" // and robots.obey is off
	}
	facts.Add("robots", verdict)
	facts.Add("robots-reason", l.Verdict.Reason.String())
	if l.Verdict.Line > 0 {
		facts.Add("robots-line", strconv.Itoa(l.Verdict.Line))
	}
	if l.Rules != nil && !l.Rules.Version().IsZero() {
		facts.Add("robots-version", l.Rules.Version().String())
	}
	addRequestFacts(&facts, l, resp)
	for _, directive := range page.Robots {
		facts.Add("directive", directive)
	}
	for _, preference := range page.Preferences {
		facts.Add("preference", preference)
	}
	if len(page.Usage) > 0 { // sorting nothing takes a microsecond
		for _, category := range slices.Sorted(maps.Keys(page.Usage)) {
			u := page.Usage[category]
			facts.Add("usage", category+"="+u.Preference+"; "+u.From)
		}
	}
	for _, license := range page.Licenses {
		facts.Add("license", license)
	}
	return facts
}

// Robots returns what the archive says of the request for a robots.txt.
func Robots(l *frontier.Lease, resp *fetch.Response) archive.Facts {
	var facts archive.Facts
	facts.Add("robots-of", l.Robots.Origin.String())
	if l.Robots.Hops > 0 {
		facts.Add("redirects", strconv.Itoa(l.Robots.Hops))
	}
	addRequestFacts(&facts, l, resp)
	return facts
}

// addRequestFacts adds those of any request.
func addRequestFacts(facts *archive.Facts, l *frontier.Lease, resp *fetch.Response) {
	facts.Add("delay", l.Delay.String())
	facts.Add("delay-reason", l.DelayReason.String())
	facts.Add("first-byte-ms", strconv.FormatInt(resp.FirstByte.Sub(resp.Start).Milliseconds(), 10))
	facts.Add("fetch-time-ms", strconv.FormatInt(resp.End.Sub(resp.Start).Milliseconds(), 10))
}

// AppendOutlinks adds a field for each link of the page.
func AppendOutlinks(facts archive.Facts, links []archive.Link) archive.Facts {
	for i := range links {
		facts = append(facts, archive.Fact{Name: "outlink", Value: links[i].To})
	}
	return facts
}
