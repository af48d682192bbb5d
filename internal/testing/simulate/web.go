package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/amble-crawler/amble/internal/web/weburl"
)

// The simulated web has as many pages as the comparison in the literature, on hosts with very
// different sizes and delays.
const (
	pages  = 2000
	hosts  = 100
	warmUp = 180 // days that do not count
	counts = 550 // days that do
	day    = 24 * time.Hour
)

// delays are the Crawl-delays of the hosts, taken in turn.
var delays = [...]time.Duration{0, 10 * time.Second, time.Minute, 10 * time.Minute, time.Hour, 4 * time.Hour}

// kind is how a page changes.
type kind uint8

const (
	poisson  kind = iota // at random, at a rate of its own
	bursty               // at random, in a tenth of the time at ten times its rate, else never
	periodic             // every so often
	never                // not at all
)

// kindOfWeb is a mixture of pages.
type kindOfWeb struct {
	name  string
	kinds []kind  // in turn
	hosts float64 // part of the variance of rates that lies between hosts
}

// webs are the simulated mixtures.
var webs = []kindOfWeb{
	{"Poisson", []kind{poisson}, 0},
	{"bursty", []kind{bursty}, 0},
	{"periodic", []kind{periodic}, 0},
	{"mixed", []kind{poisson, bursty, periodic, never}, 0.5},
}

// page is a page of the web and its copy.
type page struct {
	host   int
	url    weburl.URL
	kind   kind
	rate   float64 // changes a day on average
	weight float64 // the sum over all pages is 1

	random   *rand.Rand
	next     float64 // day of the next change
	burst    float64 // day on which a burst ends; bursty pages
	changed  float64 // day of the last change
	seen     bool    // there is a copy
	missed   int     // changes since the copy was made
	from     float64 // day from which the score is counted
	since    float64 // day up to which it is counted
	fresh    float64 // days of the score in which the copy was the same as the page
	penalty  float64 // sum of the harmonic penalty over the days of the score
	outdated float64 // sum of the age of the copy over the days of the score
	first    float64 // day of the first change that the copy has missed
}

// meanDays and spread are the median and the deviation, on the scale of logarithms, of the time
// between changes.
const (
	medianDays = 30
	spread     = 2
)

// newWeb invents the web of a seed. Importance follows Zipf's law.
func newWeb(which int, seed uint64) []*page {
	w := webs[which]
	random := rand.New(rand.NewPCG(seed, uint64(which)))
	hostPart := make([]float64, hosts)
	for i := range hostPart {
		hostPart[i] = random.NormFloat64()
	}
	all := make([]*page, pages)
	sum := 0.0
	for i := range all {
		// Host sizes follow Zipf's law too, softened so that the largest has about one page in
		// twelve.
		host := min(int(math.Exp(random.Float64()*math.Log(hosts+4)))-1, hosts-1)
		if random.IntN(3) > 0 {
			host = random.IntN(hosts)
		}
		z := math.Sqrt(w.hosts)*hostPart[host] + math.Sqrt(1-w.hosts)*random.NormFloat64()
		p := &page{
			host: host, kind: w.kinds[i%len(w.kinds)], rate: math.Exp(spread*z) / medianDays,
			random: rand.New(rand.NewPCG(seed, uint64(i+1)<<8+uint64(which))),
		}
		origin := weburl.Origin{Scheme: "http", Host: fmt.Sprintf("h%d.test", host), Port: 80}
		p.url = origin.URL(fmt.Sprintf("/%d", i))
		if p.kind == never {
			p.rate = 0
		}
		all[i] = p
	}
	for rank, i := range random.Perm(pages) {
		all[i].weight = 1 / float64(rank+1)
		sum += all[i].weight
	}
	for _, p := range all {
		p.weight /= sum
		p.next = p.begin()
	}
	return all
}

// begin returns the day of the first change.
func (p *page) begin() float64 {
	switch p.kind {
	case never:
		return math.Inf(1)
	case periodic:
		return p.random.Float64() / p.rate
	}
	return p.after(0)
}

// activePart returns the part of the time in which a bursty page changes.
const activePart = 0.1

// after returns the day of the next change after a day.
func (p *page) after(at float64) float64 {
	switch p.kind {
	case periodic:
		return at + 1/p.rate
	case bursty:
		// Bursts of ten changes on average.
		gap := p.random.ExpFloat64() * activePart / p.rate
		if at+gap < p.burst {
			return at + gap
		}
		length := 10 * activePart / p.rate
		quiet := p.random.ExpFloat64() * length * (1 - activePart) / activePart
		start := max(at, p.burst) + quiet
		p.burst = start + p.random.ExpFloat64()*length
		return start
	}
	return at + p.random.ExpFloat64()/p.rate
}
