package work

import (
	"net/http"
	"slices"
	"strings"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/rules/consent"
	"github.com/amble-crawler/amble/internal/web/extract"
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

// originStatements returns what the robots.txt of its origin, the terms that this names, and the TDM file say about
// the use of a page.
func (j *judging) originStatements(l *frontier.Lease) (list []consent.Statement) {
	if l.Rules != nil {
		list = robotsStatements(l.Rules, l.Head.RequestURI)
	}
	if j.readsTDM() {
		if s, ok := j.tdmFile(l.URL.Origin()).Statement(l.Head.RequestURI); ok {
			list = append(list, s)
		}
	}
	if l.Rules != nil && j.readsTerms() {
		for _, text := range l.Rules.Licenses() {
			if u, err := weburl.Parse(text); err == nil && u.Host() == l.HostName {
				list = addTerms(list, j.termsAt(u), consent.SourceRobots, text, l)
			}
		}
	}
	return list
}

// addTerms adds what terms say about a page.
func addTerms(
	list []consent.Statement, terms consent.Terms, source consent.Source, name string, l *frontier.Lease,
) []consent.Statement {
	if s, ok := terms.Statement(source, name, l.HostName, l.Head.RequestURI); ok {
		return append(list, s)
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

// RefusesUse reports whether a page is not to be fetched for what its origin says about its use,
// and with what outcome. The TDM file itself, and terms, are always fetched.
func (j *judging) RefusesUse(l *frontier.Lease) (r frontier.PageReport, refused bool) {
	policy := j.consent()
	if policy.Fetches() || j.isTDMFile(l.URL) || l.Head.Priority == frontier.FirstPriority {
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
// its use, and notes whether it is to be in no web archive.
func (j *judging) skipsStoring(res *Result) bool {
	action, _ := j.consent().Action(res.usage)
	res.unarchived = action >= consent.SkipArchiving
	return action >= consent.SkipStoring
}

// noteUsage takes what all sources say about the use of a page. base is that of references in it.
func (j *judging) noteUsage(
	res *Result, header http.Header, page *archive.Page, d *extract.Directives, base weburl.URL,
) {
	list := j.statementsOf(&res.Lease, header, d)
	if res.Lease.Rules != nil {
		page.Licenses = slices.Clip(res.Lease.Rules.Licenses())
	}
	ofHeader := 0
	if len(d.Licenses) > 0 {
		ofHeader = len(extract.HeaderDirectives(header, nil).Licenses)
	}
	for i, reference := range d.Licenses {
		u, err := base.Resolve(reference)
		if err != nil || slices.Contains(page.Licenses, u.String()) {
			continue
		}
		page.Licenses = append(page.Licenses, u.String())
		if u.Host() == res.Lease.HostName && j.readsTerms() {
			source := consent.SourceHeader
			if i >= ofHeader {
				source = consent.SourceMeta
			}
			list = addTerms(list, j.termsAt(u), source, u.String(), &res.Lease)
			j.announce(u, page.FetchedAt, res)
		}
	}
	for _, text := range d.Terms {
		if terms, err := consent.ParseTerms([]byte(text)); err == nil {
			list = addTerms(list, terms, consent.SourceMeta, "in the page", &res.Lease)
		}
	}
	if page.Status == http.StatusNotModified {
		list = append(list, keptOfPage(&res.Lease.Head.Last)...)
	}
	page.Usage, res.usage = usageOf(list)
	res.keptUsage = res.usage.Keep(list)
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
