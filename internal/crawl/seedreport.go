package crawl

import (
	"errors"

	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/storage"
)

// SeedReport says what became of the seeds of a run; of those that earlier runs have recorded where it was given none.
type SeedReport struct {
	Failed bool       // there are some, and none of them could be fetched
	Total  int        // of those that failed, if all did
	First  []SeedFate // a few of them
}

// SeedFate is why a seed could not be fetched.
type SeedFate struct {
	URL    string
	State  string
	Reason string // as inspect.CauseName and inspect.ReasonName have it, or as Postponed.Reason
}

// seedsReported bounds SeedReport.First.
const seedsReported = 5

// seedReport looks the seeds up. It ends at the first one that was fetched, or for which there is hope.
func (r *run) seedReport(seeds []Seed, postponed []Postponed) (report SeedReport, err error) {
	urls := make([]weburl.URL, 0, len(seeds))
	for i := range seeds {
		urls = append(urls, seeds[i].URL)
	}
	if len(urls) == 0 {
		if urls, err = r.recordedSeeds(); err != nil {
			return report, err
		}
	}
	waits := make(map[string]*Postponed, len(postponed))
	for i := range postponed {
		waits[postponed[i].Host] = &postponed[i]
	}
	for _, u := range urls {
		fate, failed, err := r.seedFate(u, waits)
		if err != nil || !failed {
			return SeedReport{}, err
		}
		report.Total++
		if len(report.First) < seedsReported {
			report.First = append(report.First, fate)
		}
	}
	report.Failed = report.Total > 0
	return report, nil
}

// recordedSeeds are those of the scope.
func (r *run) recordedSeeds() (urls []weburl.URL, err error) {
	texts, err := r.store.Joined()
	for _, text := range texts {
		if u, err := weburl.Parse(text); err == nil {
			urls = append(urls, u)
		}
	}
	return urls, err
}

// seedFate is why a seed could not be fetched; false: it was, or may yet be.
func (r *run) seedFate(u weburl.URL, waits map[string]*Postponed) (fate SeedFate, failed bool, err error) {
	head, host, err := r.store.Lookup(u)
	if errors.Is(err, storage.ErrNotFound) {
		return SeedFate{URL: u.String(), State: inspect.StateUnknown, Reason: inspect.ReasonName(storage.ReasonScope)}, true, nil
	}
	if err != nil {
		return fate, false, err
	}
	o := &head.Last
	fate = SeedFate{URL: u.String(), State: o.State.String(), Reason: inspect.ReasonName(o.Reason)}
	if o.Reason == storage.ReasonStatus {
		fate.Reason = inspect.CauseName(storage.StatusCause(int(o.Status)))
	}
	switch o.State {
	case storage.Failed, storage.Denied, storage.Excluded:
		return fate, true, nil
	case storage.Redirected: // to something that could not be fetched, if nothing could
		return fate, r.store.Counters().Of(storage.Fetched) == 0, nil
	case storage.Queued, storage.Retrying:
		p := waits[host.Name]
		if p == nil || !p.Failed {
			return fate, false, nil
		}
		if fate.Reason = p.Reason; p.Cause != "" {
			fate.Reason = p.Cause
		}
		return fate, true, nil
	}
	return fate, false, nil
}
