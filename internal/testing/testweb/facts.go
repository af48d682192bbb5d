package testweb

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Ref names a page of a web. Web.URL makes a URL of it.
type Ref struct{ Host, Path string }

// String returns the host and the path, joined.
func (r Ref) String() string { return r.Host + r.Path }

// Expected is a page that must be fetched, and its result.
type Expected struct {
	Ref
	Status int // of the response; 0: the connection always breaks
	Tries  int // requests until that response; 1 except for pages that recover from an error
}

// Facts say what a correct crawler does with a web: seeded with Seeds, scope mode host, product
// token "amble", following redirects (five of them) but no link that is marked nofollow. It fetches
// everything in Must, may fetch what is in May and any /robots.txt, and fetches nothing else, least
// of all what is in Never.
type Facts struct {
	Seeds    []Ref
	Must     []Expected
	May      []Ref
	MayUnder []Ref // with all paths that begin like one of them
	Never    []Ref // with all paths that begin like one of them, but not /robots.txt

	CrawlDelay map[string]time.Duration // of the robots.txt files, by host
	Outside    []string                 // hosts that are linked but out of scope: not even looked up

	// MaxDepth is the crawl.max_depth that bounds the web's trap. Every page in
	// Must is nearer to a seed. 0: there is no trap.
	MaxDepth int
}

// Pages returns the number of pages in Must that respond with status 200.
func (f Facts) Pages() int {
	n := 0
	for _, e := range f.Must {
		if e.Status == 200 {
			n++
		}
	}
	return n
}

// tdmFile is fetched without a link, if the settings want it.
const tdmFile = "/.well-known/tdmrep.json"

// Check compares the requests of a finished crawl with the facts and returns the differences, in
// words and sorted. It ignores times; see Log for those.
func (f Facts) Check(log Log) []string {
	var wrong []string
	requests := make(map[Ref]int)
	for _, q := range log {
		requests[Ref{q.Host, q.Path}]++
	}
	allowed := make(map[Ref]bool)
	for _, e := range f.Must {
		allowed[e.Ref] = true
		if n := requests[e.Ref]; n < e.Tries {
			wrong = append(wrong, fmt.Sprintf("%s: fetched %d times, must be %d", e.Ref, n, e.Tries))
		}
	}
	for _, r := range f.May {
		allowed[r] = true
	}
	for r := range requests {
		switch {
		case r.Path == "/robots.txt":
		case r.under(f.Never):
			wrong = append(wrong, fmt.Sprintf("%s: fetched, must never be", r))
		case !allowed[r] && !r.under(f.MayUnder) && r.Path != tdmFile:
			wrong = append(wrong, fmt.Sprintf("%s: fetched, but nothing leads there", r))
		}
	}
	slices.Sort(wrong)
	return wrong
}

func (r Ref) under(areas []Ref) bool {
	return slices.ContainsFunc(areas, func(a Ref) bool {
		return a.Host == r.Host && strings.HasPrefix(r.Path, a.Path)
	})
}
