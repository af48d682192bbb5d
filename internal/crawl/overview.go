package crawl

// Overview is what is said of one of several crawls of a process.
type Overview struct {
	ID    string `json:"id"`
	Open  bool   `json:"open"`            // it is in memory; of others the rest is not known
	State string `json:"state,omitempty"` // as in the status
	Tally
}

// Tally are the numbers of one or several crawls.
type Tally struct {
	URLs     map[string]int `json:"urls,omitempty"` // by state, over all runs
	Hosts    int            `json:"hosts"`          // known; a host counts once in each crawl
	InFlight int            `json:"in_flight"`
	Requests uint64         `json:"requests"` // over all runs
	Bytes    uint64         `json:"bytes"`    // over all runs
}

// Overview returns the overview of an open crawl, without its id. Any goroutine may call it.
func (e *Engine) Overview() Overview {
	s := e.Status()
	return Overview{Open: true, State: s.State, Tally: Tally{
		URLs: s.URLs, Hosts: s.Hosts, InFlight: s.InFlight, Requests: s.Requests, Bytes: s.Bytes,
	}}
}

// Add adds the numbers of another crawl.
func (t *Tally) Add(more *Tally) {
	for state, n := range more.URLs {
		if t.URLs == nil {
			t.URLs = make(map[string]int)
		}
		t.URLs[state] += n
	}
	t.Hosts += more.Hosts
	t.InFlight += more.InFlight
	t.Requests += more.Requests
	t.Bytes += more.Bytes
}
