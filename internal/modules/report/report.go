//go:build !core

package report

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/amble-crawler/amble/internal/service/server"
	"github.com/amble-crawler/amble/storage"
)

// Version is the version of the JSON object of a Summary. Within a version names keep their meaning, and new names may
// appear.
const Version = 1

// Summary is what a crawl came to. All counts are over all of its runs. docs/REPORT.md describes it.
type Summary struct {
	Version  int       `json:"version"`
	At       time.Time `json:"at"`
	State    string    `json:"state"` // of the crawl, as in its status; "not running"
	Hosts    uint64    `json:"hosts"`
	Requests uint64    `json:"requests"`
	Bytes    uint64    `json:"bytes"` // of the bodies received

	URLs     map[string]uint64 `json:"urls"`     // by state
	Statuses map[string]uint64 `json:"statuses"` // URLs by the HTTP status of their last response
	Failures map[string]uint64 `json:"failures"` // URLs that failed, by cause
	Types    []Type            `json:"types"`    // of the responses with content, the most frequent first

	Seeds     Seeds   `json:"seeds"`
	Broken    Links   `json:"broken"`    // URLs that failed
	Redirects Links   `json:"redirects"` // URLs that redirect
	LeftOut   LeftOut `json:"left_out"`
	NotKept   NotKept `json:"not_kept"`
	Output    Output  `json:"output"`

	Parts []Part `json:"parts,omitempty"` // of other modules, in their order
	// Incomplete says what the report lacks: in a cluster, when not all has answered.
	Incomplete *server.Incomplete `json:"incomplete,omitempty"`
}

// Type counts the responses with one media type.
type Type struct {
	Type      string `json:"type"`
	Responses uint64 `json:"responses"`
	Bytes     uint64 `json:"bytes"`
}

// Seeds are what became of the seeds.
type Seeds struct {
	Total     uint64            `json:"total"`
	Uncounted uint64            `json:"uncounted,omitempty"` // those of Total that are neither in States nor in List
	States    map[string]uint64 `json:"states"`              // seeds by the state of their own URL
	List      []Seed            `json:"list"`                // those that were not fetched first, then by URL
}

// Seed is what became of one seed.
type Seed struct {
	URL    string `json:"url"`
	State  string `json:"state"` // of its own URL; unknown: it is not in the database
	Status int    `json:"status,omitempty"`
	Reason string `json:"reason,omitempty"`
	Source string `json:"source,omitempty"` // where it was given
	// the URLs that were reached from it, by state
	Known   uint32 `json:"known"`
	Fetched uint32 `json:"fetched"`
	Failed  uint32 `json:"failed"`
	Waiting uint32 `json:"waiting"` // queued or retrying
	Other   uint32 `json:"other"`   // redirected, denied or excluded
}

// Links are URLs that pages link to in vain, or that lead elsewhere.
type Links struct {
	Total uint64 `json:"total"`
	List  []Link `json:"list"` // at most Options.Limit of them
}

// Link is a URL that pages link to.
type Link struct {
	URL     string    `json:"url"`
	Status  int       `json:"status,omitempty"`
	Reason  string    `json:"reason,omitempty"` // why it failed, in one word or two: status 404, connect_timeout
	Note    string    `json:"note,omitempty"`
	Target  string    `json:"target,omitempty"` // where a redirect leads, if the output says so
	Seed    string    `json:"seed,omitempty"`
	Depth   int       `json:"depth"`
	Fetched time.Time `json:"last_fetched,omitzero"`
	// Referrers is the number of pages that link to it, as far as the output has the links; else 1 if Via is not empty.
	Referrers uint64     `json:"referrers"`
	Via       string     `json:"via,omitempty"`  // the page on which it was found first
	From      []Referrer `json:"from,omitempty"` // pages that link to it, at most Options.Referrers of them
}

// Referrer is a page with a link.
type Referrer struct {
	URL  string `json:"url"`
	Text string `json:"text,omitempty"` // of the link
	Rel  string `json:"rel,omitempty"`
}

// LeftOut is what was not fetched, or not taken, of hosts that the crawl knows.
type LeftOut struct {
	Causes []Cause    `json:"causes"` // the one with the most URLs first
	Hosts  []HostLeft `json:"hosts"`  // those with the most URLs first, at most Options.Limit
}

// Cause is why something was left out.
type Cause struct {
	Cause string `json:"cause"` // one of Causes
	Hosts uint64 `json:"hosts"`
	URLs  uint64 `json:"urls"` // of refused links: how often they were found
}

// HostLeft is what was left out of one host for one cause.
type HostLeft struct {
	Host  string `json:"host"`
	Cause string `json:"cause"`
	URLs  uint64 `json:"urls"`
	Why   string `json:"why,omitempty"`    // in the words of amble hosts
	Like  string `json:"sample,omitempty"` // one of the URLs
}

// NotKept counts links that never became URLs of the database. The same link counts each time that it is found.
type NotKept struct {
	Outside uint64            `json:"outside"` // beyond the scope
	Deep    uint64            `json:"deep"`    // on pages at the greatest depth
	Traps   map[string]uint64 `json:"traps"`   // by the reason of docs/TRAPS.md
}

// Output says what of the output was read for a report.
type Output struct {
	Links   bool     `json:"links"` // the links of pages are in it, so that the lists of referrers are complete
	Files   int      `json:"files"` // that were read
	Damaged []string `json:"damaged,omitempty"`
	// Cut says that there were too many referrers to keep: Link.Referrers counts them all, and may count a page that
	// was recrawled more than once.
	Cut bool `json:"cut,omitempty"`
}

// Part is what another module adds to a report: a table.
type Part struct {
	Name    string     `json:"name"`
	Title   string     `json:"title"`
	Text    string     `json:"text,omitempty"` // one sentence
	Columns []string   `json:"columns,omitempty"`
	Rows    [][]string `json:"rows,omitempty"`
}

// newSummary returns the report of nothing.
func newSummary() *Summary {
	return &Summary{
		Version: Version, URLs: map[string]uint64{}, Statuses: map[string]uint64{}, Failures: map[string]uint64{},
		Types: []Type{}, Seeds: Seeds{States: map[string]uint64{}, List: []Seed{}}, Broken: Links{List: []Link{}},
		Redirects: Links{List: []Link{}}, LeftOut: LeftOut{Causes: []Cause{}, Hosts: []HostLeft{}},
		NotKept: NotKept{Traps: map[string]uint64{}},
	}
}

// Add adds the report of another part of the crawl. Lists keep the bounds of o.
func (r *Summary) Add(more *Summary, o Options) {
	r.Hosts, r.Requests, r.Bytes = r.Hosts+more.Hosts, r.Requests+more.Requests, r.Bytes+more.Bytes
	addCounts(r.URLs, more.URLs)
	addCounts(r.Statuses, more.Statuses)
	addCounts(r.Failures, more.Failures)
	addCounts(r.NotKept.Traps, more.NotKept.Traps)
	r.NotKept.Outside, r.NotKept.Deep = r.NotKept.Outside+more.NotKept.Outside, r.NotKept.Deep+more.NotKept.Deep
	r.Types = sumBy(append(r.Types, more.Types...), func(t *Type) string { return t.Type }, func(t, more *Type) {
		t.Responses, t.Bytes = t.Responses+more.Responses, t.Bytes+more.Bytes
	})
	sortTypes(r.Types)
	r.Seeds.List = sumBy(append(r.Seeds.List, more.Seeds.List...), func(s *Seed) string { return s.URL }, (*Seed).add)
	r.Seeds.Uncounted = max(r.Seeds.Uncounted, more.Seeds.Uncounted) // each part knows all seeds
	r.Seeds.finish(len(r.Seeds.List))
	r.Broken.add(&more.Broken, o)
	r.Redirects.add(&more.Redirects, o)
	l := &r.LeftOut
	l.Causes = sumBy(append(l.Causes, more.LeftOut.Causes...), func(c *Cause) string { return c.Cause },
		func(c, more *Cause) { c.Hosts, c.URLs = c.Hosts+more.Hosts, c.URLs+more.URLs })
	l.Hosts = append(l.Hosts, more.LeftOut.Hosts...)
	l.sort(o.Limit)
}

// add adds what another part of the crawl knows of a seed: one of them has its URL.
func (s *Seed) add(more *Seed) {
	if s.State == stateUnknown {
		s.State, s.Status, s.Reason = more.State, more.Status, more.Reason
	}
	s.Source = cmp.Or(s.Source, more.Source)
	s.Known, s.Fetched, s.Failed = s.Known+more.Known, s.Fetched+more.Fetched, s.Failed+more.Failed
	s.Waiting, s.Other = s.Waiting+more.Waiting, s.Other+more.Other
}

// count counts a URL that was reached from the seed.
func (s *Seed) count(state storage.State) {
	s.Known++
	switch state {
	case storage.Fetched:
		s.Fetched++
	case storage.Failed:
		s.Failed++
	case storage.Queued, storage.Retrying:
		s.Waiting++
	default:
		s.Other++
	}
}

// finish counts the seeds, sorts them, and leaves at most limit.
func (s *Seeds) finish(limit int) {
	s.Total, s.States = uint64(len(s.List))+s.Uncounted, map[string]uint64{}
	for i := range s.List {
		s.States[s.List[i].State]++
	}
	fetched := storage.Fetched.String()
	slices.SortFunc(s.List, func(a, b Seed) int {
		if good := a.State == fetched; good != (b.State == fetched) {
			if good {
				return 1
			}
			return -1
		}
		return cmp.Compare(a.URL, b.URL)
	})
	s.List = s.List[:min(len(s.List), limit)]
}

// add adds the links of another part of the crawl.
func (l *Links) add(more *Links, o Options) {
	l.Total += more.Total
	l.List = append(l.List, more.List...)
	l.List = l.List[:min(len(l.List), o.Limit)]
}

// sort puts the links that most pages have first.
func (l *Links) sort() {
	slices.SortStableFunc(l.List, func(a, b Link) int {
		return cmp.Or(cmp.Compare(b.Referrers, a.Referrers), cmp.Compare(a.URL, b.URL))
	})
}

// sort sorts causes and hosts, and leaves at most limit hosts.
func (l *LeftOut) sort(limit int) {
	slices.SortFunc(l.Causes, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(b.URLs, a.URLs), cmp.Compare(a.Cause, b.Cause))
	})
	slices.SortFunc(l.Hosts, func(a, b HostLeft) int {
		return cmp.Or(cmp.Compare(b.URLs, a.URLs), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Cause, b.Cause))
	})
	l.Hosts = l.Hosts[:min(len(l.Hosts), limit)]
}

func sortTypes(types []Type) {
	slices.SortFunc(types, func(a, b Type) int {
		return cmp.Or(cmp.Compare(b.Responses, a.Responses), cmp.Compare(a.Type, b.Type))
	})
}

func addCounts(to, more map[string]uint64) {
	for name, n := range more {
		to[name] += n
	}
}

// sumBy makes one of all values with the same key, in the order of the keys.
func sumBy[T any](list []T, key func(*T) string, add func(to, more *T)) []T {
	byKey := make(map[string]*T, len(list))
	for i := range list {
		if known := byKey[key(&list[i])]; known != nil {
			add(known, &list[i])
		} else {
			byKey[key(&list[i])] = &list[i]
		}
	}
	sum := make([]T, 0, len(byKey))
	for _, k := range slices.Sorted(maps.Keys(byKey)) {
		sum = append(sum, *byKey[k])
	}
	return sum
}
