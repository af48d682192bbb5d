package server

import (
	"io"
	"log"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/rules/wall"
	"github.com/amble-crawler/amble/storage"
)

// Metrics counts and measures a crawl, for Prometheus. It is a crawl.Observer. The values of labels
// are states, kinds of errors and classes of responses; no label names a host.
type Metrics struct {
	registry *prometheus.Registry

	requests *prometheus.CounterVec // kind, class
	failures *prometheus.CounterVec // error
	phases   [3]prometheus.Observer // connect, first_byte, body
	lateness prometheus.Histogram
	pages    prometheus.Histogram
	commits  prometheus.Histogram
	items    prometheus.Counter

	mu      sync.Mutex
	waiting []requestlog.Request // that are not counted yet; guarded by mu
}

// requestsTogether is how many requests are counted together.
const requestsTogether = 256

// NewMetrics returns metrics that have counted nothing. version is that of the program.
func NewMetrics(version string) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "amble_requests_total", Help: "Requests that ended, by kind (page, robots) and class of the " +
				"response (2xx to 5xx; none: no complete response).",
		}, []string{"kind", "class"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "amble_request_failures_total", Help: "Requests without a complete response, by kind of failure.",
		}, []string{"error"}),
		lateness: histogram("amble_dispatch_lateness_seconds", "Time between the instant that politeness allowed "+
			"and the start of the request.",
			[]float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5, 30, 300}),
		pages: histogram("amble_response_bytes", "Size of decoded responses.",
			prometheus.ExponentialBuckets(256, 4, 10)),
		commits: histogram("amble_commit_seconds", "Time of a commit: output and database, both on disk.",
			secondBuckets()),
		items: prometheus.NewCounter(prometheus.CounterOpts{Name: "amble_committed_items_total",
			Help: "Outcomes and discoveries that were committed."}),
	}
	phases := histograms("amble_request_phase_seconds", "Time of a request: until there is a connection (almost "+
		"nothing on a reused one), from there to the first byte of the response, and to the end of its body.",
		secondBuckets(), "phase")
	for i, name := range []string{"connect", "first_byte", "body"} {
		m.phases[i] = phases.WithLabelValues(name)
	}
	m.registry.MustRegister(m.requests, m.failures, phases, m.lateness, m.pages, m.commits, m.items,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "amble_build_info", Help: "Always 1.",
		ConstLabels: prometheus.Labels{"version": version}})
	build.Set(1)
	m.registry.MustRegister(build)
	return m
}

func secondBuckets() []float64 {
	return []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
}

func histogram(name, help string, buckets []float64) prometheus.Histogram {
	return prometheus.NewHistogram(histogramOptions(name, help, buckets))
}

func histograms(name, help string, buckets []float64, label string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(histogramOptions(name, help, buckets), []string{label})
}

// histogramOptions are the options of a histogram in both forms; a scraper takes the one that it knows.
func histogramOptions(name, help string, buckets []float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: buckets, NativeHistogramBucketFactor: 1.1,
		NativeHistogramMaxBucketNumber: 160, NativeHistogramMinResetDuration: time.Hour,
	}
}

// Register adds a collector of another part of the process.
func (m *Metrics) Register(c prometheus.Collector) { m.registry.MustRegister(c) }

// Requested implements crawl.Observer. It counts nothing itself: the dispatcher calls it, and to count a request takes
// as long as much of what the dispatcher does for it. Requests are counted together, at the latest when the metrics are
// read.
func (m *Metrics) Requested(q requestlog.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waiting = append(m.waiting, q); len(m.waiting) == requestsTogether {
		go m.count(m.waiting)
		m.waiting = make([]requestlog.Request, 0, requestsTogether)
	}
}

// countWaiting counts the requests that wait for it.
func (m *Metrics) countWaiting() {
	m.mu.Lock()
	waiting := m.waiting
	m.waiting = nil
	m.mu.Unlock()
	m.count(waiting)
}

func (m *Metrics) count(requests []requestlog.Request) {
	for i := range requests {
		m.countRequest(&requests[i])
	}
}

func (m *Metrics) countRequest(q *requestlog.Request) {
	class := "none"
	if q.Status >= 100 && q.Status < 600 {
		class = strconv.Itoa(q.Status/100) + "xx"
	}
	m.requests.WithLabelValues(q.Kind.String(), class).Inc()
	if q.Status == 0 {
		m.failures.WithLabelValues(q.Failure.String()).Inc()
	}
	if !q.FirstByte.IsZero() {
		m.phases[0].Observe(q.Connected.Sub(q.Start).Seconds())
		m.phases[1].Observe(q.FirstByte.Sub(q.Connected).Seconds())
		m.phases[2].Observe(q.End.Sub(q.FirstByte).Seconds())
		m.pages.Observe(float64(q.BodyBytes))
	}
	m.lateness.Observe(q.Late.Seconds())
}

// Committed implements crawl.Observer.
func (m *Metrics) Committed(took time.Duration, items int) {
	m.commits.Observe(took.Seconds())
	m.items.Add(float64(items))
}

// handler serves the metrics, with the current status of the crawl.
func (m *Metrics) handler(c func() crawl.Status, now func() time.Time) http.Handler {
	own := prometheus.NewRegistry()
	own.MustRegister(newStatusCollector(c, now))
	read := promhttp.HandlerFor(prometheus.Gatherers{m.registry, own}, promhttp.HandlerOpts{
		ErrorLog: log.New(io.Discard, "", 0), ErrorHandling: promhttp.HTTPErrorOnError, MaxRequestsInFlight: 4,
		EnableOpenMetrics: true,
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.countWaiting()
		read.ServeHTTP(w, r)
	})
}

// statusCollector collects metrics from the status of a crawl.
type statusCollector struct {
	status func() crawl.Status
	now    func() time.Time

	urls, requisites, hosts, hostStates, inFlight, state, received, requests *prometheus.Desc
	finish, age, gaps, violations, added, crashes                            *prometheus.Desc
	maxRate, rateWait, bandwidth, hostBandwidth                              *prometheus.Desc
	bandwidthWait, wire, walls, wallMakers, parked, optOuts                  *prometheus.Desc
	fetchers, leases, leasesEnded                                            *prometheus.Desc
	recrawls, unchanged, unchangedBytes, exits                               *prometheus.Desc
}

// states are the states of crawl.Status.
func states() []string {
	return []string{"opened", "running", "paused", "draining", "stalled", "stopping", "finished"}
}

func newStatusCollector(c func() crawl.Status, now func() time.Time) *statusCollector {
	d := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("amble_"+name, help, labels, nil)
	}
	return &statusCollector{
		status: c, now: now,
		urls:       d("urls", "URLs by state, over all runs.", "state"),
		requisites: d("requisites", "Those of amble_urls that are no pages, but what pages are made of.", "state"),
		hosts:      d("hosts", "Known hosts."),
		hostStates: d("hosts_at", "Hosts by state, as amble hosts has it.", "state"),
		walls:      d("hosts_walled", "Hosts behind a wall, by its kind.", "kind"),
		wallMakers: d("hosts_walled_by", "Hosts behind a wall, by its maker.", "maker"),
		parked: d("hosts_parked",
			"Hosts with URLs that demand to be left alone for more than a week, or whose wall did not end."),
		inFlight: d("in_flight", "Requests in flight."),
		state:    d("state", "1 for the state that the crawl is in, 0 for the others.", "state"),
		received: d("received_bytes_total", "Bytes of responses, over all runs."),
		requests: d("stored_requests_total", "Requests that were committed, over all runs."),
		added:    d("added_urls_total", "New URLs of this run."),
		recrawls: d("recrawls_total", "Recrawls of pages in this run."),
		unchanged: d("unchanged_recrawls_total", "Recrawls of this run of pages that had not changed, whatever their "+
			"validators say."),
		unchangedBytes: d("unchanged_bytes_total", "Bytes that recrawls of this run received of unchanged pages."),
		crashes:        d("crashes_total", "URLs of this run on which amble itself failed; should be 0."),
		finish: d("finish_seconds", "Time until the last host that this run does not postpone is done, at the "+
			"delays and the crawl.max_rate in force."),
		age: d("status_age_seconds",
			"Time since the dispatcher last updated the status; it does so each second."),
		gaps: d("delayed_gaps_total", "Gaps of this run between requests to a host with a delay in force."),
		violations: d("delay_violations_total",
			"Gaps of this run that were shorter than the delay in force; must be 0."),

		maxRate:       d("max_rate", "crawl.max_rate: requests a second of all hosts together; 0: no limit."),
		rateWait:      d("max_rate_wait_seconds_total", "Time of this run in which crawl.max_rate held back hosts."),
		bandwidth:     d("bandwidth_limit_bytes", "fetch.bandwidth: bytes a second of all hosts; 0: no limit."),
		hostBandwidth: d("host_bandwidth_limit_bytes", "politeness.host_bandwidth: bytes a second; 0: no limit."),
		bandwidthWait: d("bandwidth_wait_seconds_total", "Time that requests of this run have waited for bandwidth."),
		optOuts:       d("opt_outs", "Opt-outs in force."),
		exits:         d("exit_when_done", "1 if crawl.exit_when_done is true, so the process ends by itself."),
		fetchers:      d("fetchers", "Fetchers that took or reported leases in this run, or are cut off."),
		leases:        d("remote_leases", "Leases that fetchers have."),
		leasesEnded: d("remote_leases_ended_total", "Leases of fetchers that ended in this run, by how: reported, "+
			"ran_out, not_done.", "how"),
		wire: d("connection_received_bytes_total",
			"Bytes received over the connections of this run's requests, TLS and headers included."),
	}
}

// Describe implements prometheus.Collector.
func (s *statusCollector) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(s, to) }

// Collect implements prometheus.Collector.
func (s *statusCollector) Collect(to chan<- prometheus.Metric) {
	st := s.status()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	total := func(d *prometheus.Desc, v float64) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v)
	}
	counter := func(d *prometheus.Desc, v uint64) { total(d, float64(v)) }
	for state, n := range st.URLs {
		gauge(s.urls, float64(n), state)
	}
	for state, n := range st.Requisites {
		gauge(s.requisites, float64(n), state)
	}
	for state, n := range st.HostStates {
		gauge(s.hostStates, float64(n), state)
	}
	for _, kind := range wall.Kinds() {
		gauge(s.walls, float64(st.Walls[kind.String()]), kind.String())
	}
	gauge(s.wallMakers, float64(st.WallMakers[crawl.UnknownMaker]), crawl.UnknownMaker)
	for maker, n := range st.WallMakers {
		if maker != crawl.UnknownMaker {
			gauge(s.wallMakers, float64(n), maker)
		}
	}
	gauge(s.parked, float64(st.Parked))
	for _, state := range states() {
		gauge(s.state, truth(state == st.State), state)
	}
	gauge(s.hosts, float64(st.Hosts))
	gauge(s.inFlight, float64(st.InFlight))
	gauge(s.optOuts, float64(st.OptOuts))
	s.collectFetchers(to, st.Fetchers)
	gauge(s.finish, st.Finish)
	if !st.At.IsZero() {
		gauge(s.age, s.now().Sub(st.At).Seconds())
	}
	counter(s.received, st.Bytes)
	counter(s.requests, st.Requests)
	counter(s.added, st.Run.Added)
	counter(s.recrawls, st.Run.Recrawls)
	counter(s.unchanged, st.Run.Unchanged)
	counter(s.unchangedBytes, st.Run.UnchangedBytes)
	counter(s.crashes, st.Errors[inspect.ReasonName(storage.ReasonCrash)])
	counter(s.gaps, st.Pace.Gaps)
	counter(s.violations, st.Pace.Violations)
	gauge(s.maxRate, st.Limits.MaxRate)
	total(s.rateWait, st.Limits.RateWait)
	gauge(s.bandwidth, float64(st.Limits.Bandwidth))
	gauge(s.hostBandwidth, float64(st.Limits.HostBandwidth))
	total(s.bandwidthWait, st.Limits.BandwidthWait)
	counter(s.wire, st.Limits.Received)
	gauge(s.exits, truth(st.Limits.ExitWhenDone))
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
