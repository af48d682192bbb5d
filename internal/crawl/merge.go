package crawl

import (
	"cmp"
	"slices"
)

// slowestListed is how many hosts a status names as the slowest.
const slowestListed = 10

// byWeight are the states of crawls that are parts of a larger one: the larger one is in the first that
// a part is in.
func byWeight() []string {
	return []string{"stalled", "stopping", "running", "draining", "opened", "paused", "finished"}
}

// Add makes s the status of a crawl that consists of the crawl of s and another one. The parts share no
// host, and no limit. The zero Status has no parts. The directories are those of the first part.
func (s *Status) Add(more *Status) {
	if s.State == "" {
		*s = Status{Started: more.Started, Since: more.Since, At: more.At, State: more.State, Reason: more.Reason,
			DataDir: more.DataDir, OutputDir: more.OutputDir, ProductToken: more.ProductToken}
	} else {
		s.addState(more)
	}
	addCounts(&s.URLs, more.URLs)
	addCounts(&s.HostStates, more.HostStates)
	addCounts(&s.Held, more.Held)
	addCounts(&s.Walls, more.Walls)
	addCounts(&s.Traps, more.Traps)
	addCounts(&s.Statuses, more.Statuses)
	addCounts(&s.Errors, more.Errors)
	addCounts(&s.Failed, more.Failed)
	s.Hosts, s.InFlight, s.Parked = s.Hosts+more.Hosts, s.InFlight+more.InFlight, s.Parked+more.Parked
	s.Requests, s.Bytes = s.Requests+more.Requests, s.Bytes+more.Bytes
	s.Run.Add(more.Run)
	s.Pace.Add(&more.Pace)
	s.Limits.add(&more.Limits)
	s.OptOuts = max(s.OptOuts, more.OptOuts) // all parts have the same
	s.PagesPerSec, s.BytesPerSec = s.PagesPerSec+more.PagesPerSec, s.BytesPerSec+more.BytesPerSec
	s.Finish = max(s.Finish, more.Finish)
	s.Slowest = append(slices.Clip(s.Slowest), more.Slowest...)
	slices.SortStableFunc(s.Slowest, func(a, b SlowHost) int { return cmp.Compare(b.Finish, a.Finish) })
	s.Slowest = s.Slowest[:min(len(s.Slowest), slowestListed)]
	s.Slowdowns = append(slices.Clip(s.Slowdowns), more.Slowdowns...)
	s.Slowdowns = s.Slowdowns[:min(len(s.Slowdowns), maxSlowdowns)]
}

// addState merges the states, and the times.
func (s *Status) addState(more *Status) {
	if more.Started.Before(s.Started) {
		s.Started = more.Started
	}
	if more.At.Before(s.At) {
		s.At = more.At
	}
	a, b := slices.Index(byWeight(), s.State), slices.Index(byWeight(), more.State)
	switch {
	case b < a:
		s.State, s.Reason, s.Since = more.State, more.Reason, more.Since
	case a == b && more.Since.Before(s.Since):
		s.Since = more.Since
	}
	if a == b && s.Reason == waitsForURLs {
		s.Reason = more.Reason // all parts have to wait
	}
}

func addCounts[N int | uint64](to *map[string]N, more map[string]N) {
	for name, n := range more {
		if *to == nil {
			*to = make(map[string]N)
		}
		(*to)[name] += n
	}
}

// add adds the limits of another part.
func (l *Limits) add(more *Limits) {
	l.MaxRate, l.Bandwidth = l.MaxRate+more.MaxRate, l.Bandwidth+more.Bandwidth
	l.HostBandwidth = max(l.HostBandwidth, more.HostBandwidth)
	l.RateWait, l.BandwidthWait = l.RateWait+more.RateWait, l.BandwidthWait+more.BandwidthWait
	l.Received += more.Received
}

// Share makes the limits of two crawls of one process, which share them, those of both together.
func (l *Limits) Share(more *Limits) {
	l.RateWait = max(l.RateWait, more.RateWait)
	l.Received, l.BandwidthWait = max(l.Received, more.Received), max(l.BandwidthWait, more.BandwidthWait)
	l.MaxRate, l.Bandwidth = max(l.MaxRate, more.MaxRate), max(l.Bandwidth, more.Bandwidth)
	l.HostBandwidth = max(l.HostBandwidth, more.HostBandwidth)
}
