package crawl

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/archive"
	"github.com/amble-crawler/amble/internal/consent"
	"github.com/amble-crawler/amble/internal/extract"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// statementsOf returns what the robots.txt of a page, the header of its response and the page itself
// say about its use. of has the directives of the header, or those of the header and the page. Most
// pages have none, and cost no allocation.
func (w *worker) statementsOf(l *frontier.Lease, header http.Header, of *extract.Directives) (list []consent.Statement) {
	if l.Rules != nil {
		list = robotsStatements(l.Rules, l.Head.RequestURI)
	}
	if usage := header.Values("Content-Usage"); len(usage) > 0 {
		list = addStatement(list, consent.Statement{
			Preferences: consent.ParseUsage(usage...), Source: consent.SourceHeader,
			Text: "Content-Usage: " + strings.Join(usage, ", "),
		})
	}
	if len(of.Preferences) == 0 {
		return list
	}
	stated := extract.HeaderDirectives(header, w.o.Frontier.Tokens)
	for i, text := range of.Preferences {
		source := consent.SourceHeader
		if i >= len(stated.Preferences) {
			source = consent.SourceMeta
		}
		s := consent.Statement{Source: source, Text: text}
		switch name, value, _ := strings.Cut(text, ": "); name {
		case "robots":
			s.Preferences = w.directives[value]
		case "tdm-reservation":
			s.Preferences = consent.ParseReservation(value)
		}
		list = addStatement(list, s)
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

// refusesUse reports whether a page is not to be fetched for what its robots.txt says about its use,
// and makes that its outcome.
func (w *worker) refusesUse(res *result) bool {
	policy := w.live().Consent
	if policy.Fetches() || res.lease.Rules == nil || !res.lease.Rules.HasUsage() {
		return false
	}
	effective := consent.Combine(robotsStatements(res.lease.Rules, res.lease.Head.RequestURI))
	if action, _ := policy.Action(effective); action < consent.SkipFetching {
		return false
	}
	res.page = frontier.PageReport{
		Report: frontier.Report{End: w.o.Now()}, Refused: true,
		Outcome: storage.Outcome{State: storage.Denied, Reason: storage.ReasonUsage},
	}
	return true
}

// skipsStoring reports whether the content of a page is not to be stored for what all sources say about
// its use.
func (w *worker) skipsStoring(res *result) bool {
	action, _ := w.live().Consent.Action(res.usage)
	return action >= consent.SkipStoring
}

// consentLift puts back what consent.policy kept from being fetched, when it changes.
func (s *liftSource) consentLift() lift {
	return lift{"consent.policy", fmt.Sprint(s.live.Consent), nil, storage.In(storage.Denied), because(storage.ReasonUsage)}
}

// noteUsage takes what all sources say about the use of a page. base is that of references in it.
func (w *worker) noteUsage(res *result, header http.Header, page *archive.Page, d *extract.Directives, base weburl.URL) {
	page.Usage, res.usage = usageOf(w.statementsOf(&res.lease, header, d))
	if res.lease.Rules != nil {
		page.Licenses = slices.Clip(res.lease.Rules.Licenses())
	}
	for _, reference := range d.Licenses {
		if u, err := base.Resolve(reference); err == nil && !slices.Contains(page.Licenses, u.String()) {
			page.Licenses = append(page.Licenses, u.String())
		}
	}
}
