package lookup

import (
	"context"
	"math"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Bounds of the requests of a host that are kept to be shown.
const (
	maxVisits  = 200 // the newest
	visitsLife = 5 * time.Minute
	maxHosts   = 64
)

// Report is what is known of the requests to a host, of some days.
type Report struct {
	Requests   int
	Failed     int
	Bytes      uint64
	Smallest   float64 // gap between two requests in seconds; negative: there were no two
	Delay      float64 // in force then
	Violations int
	First      time.Time
	Visits     []Visit // the newest first, at most maxVisits

	Read time.Time

	again []bool // those of Visits whose URL had been requested before
}

// visits reads requests from the crawl, and keeps what it read for some minutes.
type visits struct {
	now func() time.Time

	reading sync.Mutex // one log is read at a time
	mu      sync.Mutex
	hosts   map[string]*Report
	reads   map[string]*rate.Limiter // by host: how often the log is read for it
}

func newVisits(now func() time.Time) *visits {
	return &visits{now: now, hosts: make(map[string]*Report), reads: make(map[string]*rate.Limiter)}
}

// How often the log is read for one host, so that no site keeps the others from it.
const (
	readBurst = 5
	readEvery = time.Minute
	maxReads  = 4096 // hosts that have proven themselves
)

// mayRead reports whether the log may be read for a host now.
func (s *visits) mayRead(host string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.reads[host]
	if l == nil {
		if len(s.reads) >= maxReads {
			clear(s.reads)
		}
		l = rate.NewLimiter(rate.Every(readEvery), readBurst)
		s.reads[host] = l
	}
	return l.AllowN(s.now(), 1)
}

// of returns the requests to a host since an instant, those for URLs with a text in them if it is not empty.
func (s *visits) of(ctx context.Context, c Crawl, host, text string, since time.Time) (*Report, error) {
	s.mu.Lock()
	r := s.hosts[host]
	s.mu.Unlock()
	if text == "" && r != nil && s.now().Sub(r.Read) < visitsLife {
		return r, nil
	}
	r = &Report{Smallest: math.Inf(1), Read: s.now()}
	urls := make(map[string]struct{})
	err := s.each(ctx, c, host, since, func(v *Visit) error {
		if strings.Contains(v.URL, text) {
			r.add(v, urls)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if r.newestFirst(); text != "" {
		return r, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.hosts) >= maxHosts {
		clear(s.hosts)
	}
	s.hosts[host] = r
	return r, nil
}

// each reads the requests to a host since an instant.
func (s *visits) each(ctx context.Context, c Crawl, host string, since time.Time, f func(*Visit) error) error {
	if !s.reading.TryLock() {
		return &refusal{http.StatusServiceUnavailable,
			"Somebody else's requests are being read. Try again in a minute."}
	}
	defer s.reading.Unlock()
	if !s.mayRead(host) {
		return &refusal{http.StatusServiceUnavailable, "Your requests were read a moment ago. Try again in a minute."}
	}
	return c.Visits(ctx, host, since, f)
}

// maxURLs bounds the URLs that are remembered to find those requested again. Beyond, none is called so.
const maxURLs = 1 << 20

func (r *Report) add(v *Visit, urls map[string]struct{}) {
	if r.Requests == 0 {
		r.First = v.At
	}
	r.Requests++
	r.Bytes += v.Bytes
	if v.Status == 0 && !v.NoEnd {
		r.Failed++
	}
	r.Violations += len(v.Violations)
	if v.Gap != nil && *v.Gap < r.Smallest {
		r.Smallest, r.Delay = *v.Gap, v.Delay
	}
	_, again := urls[v.URL]
	if !again && len(urls) < maxURLs {
		urls[v.URL] = struct{}{}
	}
	if len(r.Visits) == 2*maxVisits { // the older half goes
		r.Visits = append(r.Visits[:0], r.Visits[maxVisits:]...)
		r.again = append(r.again[:0], r.again[maxVisits:]...)
	}
	r.Visits, r.again = append(r.Visits, *v), append(r.again, again)
}

// newestFirst keeps the newest requests, in that order.
func (r *Report) newestFirst() {
	n := min(len(r.Visits), maxVisits)
	visits, again := make([]Visit, n), make([]bool, n)
	for i := range n {
		visits[i], again[i] = r.Visits[len(r.Visits)-1-i], r.again[len(r.again)-1-i]
	}
	r.Visits, r.again = visits, again
}
