package seedbook

import (
	"errors"

	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// Report says what became of the seeds of a run, or of the recorded ones if it was given none.
type Report struct {
	Failed bool     `json:"-"`     // there are some, and none of them could be fetched
	Total  int      `json:"total"` // of those that failed, if all did
	First  []Result `json:"first"` // a few of them
}

// Result is why a seed could not be fetched.
type Result struct {
	URL    string `json:"url"`
	State  string `json:"state"`
	Reason string `json:"reason"` // as inspect.CauseName and inspect.ReasonName have it, or as Postponed.Reason
}

// reported bounds Report.First.
const reported = 5

// Lookup is what a report reads.
type Lookup interface {
	Store
	Lookup(weburl.URL) (storage.Head, storage.Host, error)
	Counters() storage.Counters
}

// NewReport looks the seeds up. It ends at the first one that was fetched, or may yet be. postponed returns why a host
// that was left out could not be fetched from; false: it was not left out.
func NewReport(
	s Lookup, given []seeds.Seed, postponed func(*storage.Host) (string, bool),
) (report Report, err error) {
	if len(given) == 0 {
		if given, err = Read(s); err != nil {
			return report, err
		}
	}
	for i := range given {
		one, failed, err := resultWithPlain(s, &given[i], postponed)
		if err != nil || !failed {
			return Report{}, err
		}
		report.Total++
		if len(report.First) < reported {
			report.First = append(report.First, one)
		}
	}
	report.Failed = report.Total > 0
	return report, nil
}

// resultWithPlain is resultOf for a seed that may have been given as a host.
func resultWithPlain(
	s Lookup, seed *seeds.Seed, postponed func(*storage.Host) (string, bool),
) (result Result, failed bool, err error) {
	result, failed, err = resultOf(s, seed.URL, postponed)
	if plain, bare := seed.Plain(); failed && bare && err == nil {
		if other, alsoFailed, wrong := resultOf(s, plain, postponed); other.State != inspect.StateUnknown {
			return other, alsoFailed, wrong
		}
	}
	return result, failed, err
}

// resultOf returns why a seed could not be fetched; false: it was, or may yet be.
func resultOf(
	s Lookup, u weburl.URL, postponed func(*storage.Host) (string, bool),
) (result Result, failed bool, err error) {
	head, host, err := s.Lookup(u)
	if errors.Is(err, storage.ErrNotFound) {
		return Result{
			URL: u.String(), State: inspect.StateUnknown, Reason: inspect.ReasonName(storage.ReasonScope),
		}, true, nil
	}
	if err != nil {
		return result, false, err
	}
	o := &head.Last
	result = Result{URL: u.String(), State: o.State.String(), Reason: inspect.ReasonName(o.Reason)}
	if o.Reason == storage.ReasonStatus {
		result.Reason = inspect.CauseName(storage.StatusCause(int(o.Status)))
	}
	switch o.State {
	case storage.Failed, storage.Denied, storage.Excluded:
		return result, true, nil
	case storage.Redirected: // to something that could not be fetched, if nothing could
		return result, s.Counters().Of(storage.Fetched) == 0, nil
	case storage.Queued, storage.Retrying:
		why, is := postponed(&host)
		if is {
			result.Reason = why
		}
		return result, is, nil
	}
	return result, false, nil
}
