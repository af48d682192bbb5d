package politeness_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/amble-crawler/amble/politeness"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// after writes an instant as the time since noon.
func after(t time.Time) time.Duration { return t.Sub(noon) }

// A crawler keeps one Host for each host name. It starts a request no sooner than Ready, and
// reports the end of each.
func ExampleHost() {
	options := politeness.DefaultOptions() // one second between requests
	host := politeness.NewHost(&options, politeness.State{}, noon)

	now := noon
	for range 3 {
		if ready := host.Ready(now); ready.After(now) {
			now = ready // a real crawler waits, or fetches from another host
		}
		start := now
		now = now.Add(200 * time.Millisecond) // the request
		host.Ended(now, politeness.Result{Signal: politeness.SignalOK, Duration: now.Sub(start)})
		fmt.Printf("started at %v, ended at %v\n", after(start), after(now))
	}
	// Output:
	// started at 0s, ended at 200ms
	// started at 1.2s, ended at 1.4s
	// started at 2.4s, ended at 2.6s
}

// The longest delay counts: a Crawl-delay of robots.txt replaces a shorter configured one.
func ExampleHost_SetDemands() {
	options := politeness.DefaultOptions()
	host := politeness.NewHost(&options, politeness.State{}, noon)
	host.SetDemands(politeness.Demands{Delay: 90 * time.Second, Line: politeness.Line{Number: 3}})
	host.Ended(noon, politeness.Result{})
	fmt.Println(host.Delay(noon), after(host.Ready(noon)))
	when, why, _ := strings.Cut(host.Explain(noon).String(), ": ")
	fmt.Println(when)
	fmt.Println(why)
	// Output:
	// 1m30s 1m30s
	// not before 2026-11-20 12:01:30.000 UTC, since 2026-11-20 12:00:00.000 UTC
	// the Crawl-delay of its robots.txt (line 3); 1m30s between requests
}

// A host that answers 503 is left alone for as long as its Retry-After says. Without that header a
// backoff begins, whose length doubles with each level.
func ExampleHost_Ended() {
	options := politeness.DefaultOptions()
	host := politeness.NewHost(&options, politeness.State{}, noon)

	wait, ok := politeness.ParseRetryAfter("120", noon)
	host.Ended(noon, politeness.Result{Signal: politeness.SignalThrottled, RetryAfter: wait, Header: "120"})
	fmt.Println(ok, after(host.Ready(noon)), host.Reason(noon))

	now := host.Ready(noon)
	host.Ended(now, politeness.Result{Signal: politeness.SignalThrottled})
	fmt.Println(host.Ready(now).Sub(now), host.Reason(now) == politeness.ReasonBackoff)
	// Output:
	// true 2m0s retry-after
	// 1m0s true
}

// The state of a host outlives the process. A wait goes on in the next one.
func ExampleHost_State() {
	options := politeness.DefaultOptions()
	host := politeness.NewHost(&options, politeness.State{}, noon)
	host.Ended(noon, politeness.Result{RetryAfter: time.Hour, Header: "3600"})
	stored, _ := host.State(noon).AppendBinary(nil)

	restart := noon.Add(10 * time.Minute)
	state, err := politeness.DecodeState(stored)
	if err != nil {
		fmt.Println(err)
		return
	}
	host = politeness.NewHost(&options, state, restart)
	fmt.Println(after(host.Ready(restart)), host.Reason(restart))
	// Output:
	// 1h0m0s retry-after
}

// Hosts at one address share a Limit. A request starts when its host and all its limits allow it.
func ExampleLimit() {
	limit := politeness.NewLimit(politeness.LimitOptions{InFlight: 2})
	limit.Begin()
	fmt.Println(limit.Free())
	limit.Begin()
	fmt.Println(limit.Free())
	limit.Ended(noon, politeness.SignalOK, time.Second)
	fmt.Println(limit.Free())
	// Output:
	// true
	// false
	// true
}

func ExampleParseRetryAfter() {
	for _, value := range []string{"120", "Fri, 20 Nov 2026 12:30:00 GMT", "soon"} {
		fmt.Println(politeness.ParseRetryAfter(value, noon))
	}
	// Output:
	// 2m0s true
	// 30m0s true
	// 0s false
}
