//go:build !core

package completeness

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/amble-crawler/amble/internal/service/server"
	"github.com/amble-crawler/amble/storage"
)

// The reasons for which a requisite is missing that are no reasons of URLs.
const (
	ReasonBudget    = "budget"     // archive.requisites_per_page
	ReasonNotTaken  = "not taken"  // it is not in the database: limits.host_urls, or a trap
	ReasonNotStored = "not stored" // the archive does not have it
)

// RequisiteState is what became of a URL.
type RequisiteState struct {
	State  string    `json:"state"` // as the state of a URL; unknown: it is not in the database
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at,omitzero"` // of the last request
}

// waits reports whether the URL will be requested.
func (s RequisiteState) waits() bool {
	return s.State == storage.Queued.String() || s.State == storage.Retrying.String()
}

// isStored reports whether the response of the URL is stored.
func (s RequisiteState) isStored() bool { return s.State == storage.Fetched.String() && s.Reason == "" }

// leadsOn reports whether the URL redirects to another one that belongs to the crawl.
func (s RequisiteState) leadsOn() bool {
	return s.State == storage.Redirected.String() && s.Reason == ""
}

// PageRequisites is how much of what a page is made of is stored: of all that it names, and that its style sheets and
// manifests name.
type PageRequisites struct {
	URL       string             `json:"url"`
	Captured  time.Time          `json:"captured,omitzero"` // the capture that names them
	Complete  bool               `json:"complete"`
	Named     int                `json:"named"`
	Stored    int                `json:"stored"`
	Waiting   int                `json:"waiting"`
	Missing   map[string]int     `json:"missing" doc:"by the reason of the URL; budget: archive.requisites_per_page"`
	Requisite []MissingRequisite `json:"requisites" doc:"those that are not stored, sorted by URL"`
	// Incomplete says which parts of a cluster have not answered.
	Incomplete *server.Incomplete `json:"incomplete,omitempty"`
}

// MissingRequisite is a requisite that is not stored.
type MissingRequisite struct {
	URL    string `json:"url"`
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
}

// missing returns how many requisites are missing.
func (p *PageRequisites) missing() (n int) {
	for _, count := range p.Missing {
		n += count
	}
	return n
}

// States is what became of URLs, by their numbers in Docs.
type States map[int32]RequisiteState

// Page counts for the page of a URL; false: it is not known. What is no document has no time of a capture.
func (d *Docs) Page(url string, states States) (PageRequisites, bool) {
	n, known := d.numbers[url]
	doc := d.doc(n)
	if !known || doc == nil || doc.Redirects {
		return PageRequisites{}, false
	}
	if doc.Bare {
		return *unknown(url), true
	}
	return d.page(doc, states), true
}

func (d *Docs) page(doc *Doc, states States) PageRequisites {
	p := PageRequisites{URL: d.Texts[doc.URL], Captured: time.Unix(doc.At, 0).UTC(), Missing: map[string]int{},
		Requisite: []MissingRequisite{}}
	seen := map[int32]bool{doc.URL: true}
	var follow func(doc *Doc)
	follow = func(doc *Doc) {
		if doc.LeftOut > 0 {
			p.Named, p.Missing[ReasonBudget] = p.Named+doc.LeftOut, p.Missing[ReasonBudget]+doc.LeftOut
		}
		for _, part := range doc.Parts {
			if part = d.target(part, states); seen[part] {
				continue
			}
			seen[part] = true
			s, inner := states[part], d.doc(part)
			p.Named++
			switch {
			case s.isStored():
				p.Stored++
				if inner != nil {
					follow(inner)
				}
				continue
			case s.waits():
				p.Waiting++
			default:
				s.Reason = cmp.Or(s.Reason, s.State, ReasonNotStored)
				p.Missing[s.Reason]++
			}
			p.Requisite = append(p.Requisite, MissingRequisite{URL: d.Texts[part], State: s.State, Reason: s.Reason})
		}
	}
	follow(doc)
	p.Complete = p.Named == p.Stored
	slices.SortFunc(p.Requisite, func(a, b MissingRequisite) int { return cmp.Compare(a.URL, b.URL) })
	return p
}

// target returns what counts of a requisite: where its redirects lead, or itself if they lead in a circle.
func (d *Docs) target(part int32, states States) int32 {
	last := part
	for range maxSteps {
		doc := d.doc(last)
		if doc == nil || !doc.Redirects || len(doc.Parts) == 0 || !states[last].leadsOn() {
			return last
		}
		last = doc.Parts[0]
	}
	return part
}

// Source is where states and documents are: the crawl of this process, or a cluster.
type Source interface {
	// States returns what became of URLs; a URL that nobody knows of may be missing.
	States(ctx context.Context, urls []string) (map[string]RequisiteState, error)
	// Find adds what some documents name.
	Find(ctx context.Context, d *Docs, wanted []WantedDoc) error
}

// maxSteps bounds how far is followed: a style sheet, an import, and redirects on the way.
const maxSteps = 30

// Resolve finds out what became of all that the documents name. With find it looks for documents among them: style
// sheets, manifests, redirects.
func (d *Docs) Resolve(ctx context.Context, s Source, find bool) (States, error) {
	states := make(States)
	for range maxSteps {
		var urls []string
		for i := range d.List {
			doc := &d.List[i]
			if _, isPart := states[doc.URL]; doc.Redirects && !isPart {
				continue // a page has led there
			}
			for _, part := range doc.Parts {
				if _, known := states[part]; !known {
					states[part] = RequisiteState{}
					urls = append(urls, d.Texts[part])
				}
			}
		}
		if len(urls) == 0 {
			break
		}
		became, err := s.States(ctx, urls)
		if err != nil {
			return nil, err
		}
		var wanted []WantedDoc
		for _, u := range urls {
			state := became[u]
			states[d.numbers[u]] = state
			if find && (state.isStored() || state.leadsOn()) {
				wanted = append(wanted, WantedDoc{u, state.At})
			}
		}
		if len(wanted) == 0 {
			continue
		}
		if err := s.Find(ctx, d, wanted); err != nil {
			return nil, err
		}
	}
	return states, nil
}

// Sum is the completeness of many pages.
type Sum struct {
	Pages, Complete, Waiting int
	Naming                   int              // pages that name requisites
	Missing                  map[string]int   // requisites by reason, each once
	Incomplete               []PageRequisites // those that are missing most first, at most so many as asked for
	Cut                      bool             // there are more pages than were compared
}

// Sum counts for all pages, and lists at most some that are not complete.
func (d *Docs) Sum(states States, most int) Sum {
	s := Sum{Missing: map[string]int{}, Cut: d.Cut}
	reasons := make(map[string]string) // of the requisites that some page misses
	for i := range d.List {
		if !d.List[i].Page {
			continue
		}
		p := d.page(&d.List[i], states)
		s.Pages++
		if p.Named > 0 {
			s.Naming++
		}
		s.Missing[ReasonBudget] += p.Missing[ReasonBudget]
		for _, part := range p.Requisite {
			reasons[part.URL] = part.Reason
			if (RequisiteState{State: part.State}).waits() {
				reasons[part.URL] = ""
			}
		}
		if p.Complete {
			s.Complete++
			continue
		}
		if s.Incomplete = append(s.Incomplete, p); len(s.Incomplete) >= 2*most+100 {
			s.sort(most)
		}
	}
	for _, reason := range reasons {
		if reason == "" {
			s.Waiting++
			continue
		}
		s.Missing[reason]++
	}
	if s.Missing[ReasonBudget] == 0 {
		delete(s.Missing, ReasonBudget)
	}
	s.sort(most)
	return s
}

func (s *Sum) sort(most int) {
	slices.SortFunc(s.Incomplete, func(a, b PageRequisites) int {
		return cmp.Or(cmp.Compare(b.missing(), a.missing()), cmp.Compare(b.Waiting, a.Waiting),
			cmp.Compare(a.URL, b.URL))
	})
	s.Incomplete = s.Incomplete[:min(len(s.Incomplete), most)]
}
