package frontier

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestJobsOfOthers: hosts whose robots.txt redirects to another host get one request in five of it,
// only some of them wait for it at a time, and in the end each of them is crawled all the same.
func TestJobsOfOthers(t *testing.T) {
	const others, pages = 60, 400
	w := newWorld(t, testOptions(), newMemory())
	w.quick = true
	w.add(urls("http://b.test/", pages)...)
	for i := range others {
		w.add(fmt.Sprintf("http://a%d.test/", i))
	}
	waiting := 0
	w.answer = func(l Lease) answer {
		for _, h := range w.f.hosts.hosts {
			if h != nil && h.active != nil && h.active.name == "b.test" {
				waiting = max(waiting, countForeign(h.active.jobs, h))
			}
		}
		a := answer{took: 100 * time.Millisecond}
		if l.Kind == Robots && strings.HasPrefix(l.HostName, "a") {
			a.location = "http://b.test/rules.txt"
		}
		return a
	}
	w.open()
	w.finish(24*time.Hour, 24*time.Hour)
	w.checkManners()
	if n := len(w.pages()); n != pages+others {
		t.Errorf("%d pages", n)
	}
	own, served, total := 4, 0, 0
	for _, r := range w.log {
		switch {
		case r.host != "b.test":
		case r.url != "http://b.test/rules.txt":
			own++
			total++
		default:
			if own < jobShare-1 && total < pages {
				t.Errorf("a job of another host after %d requests of its own, %d in all", own, total)
			}
			own = 0
			served++
		}
	}
	if served != others || waiting != maxJobs {
		t.Errorf("%d jobs were served, up to %d waited; want %d and %d", served, waiting, others, maxJobs)
	}
}

// TestOwnJobsComeFirst: a host that redirects to itself does not wait behind others.
func TestOwnJobsComeFirst(t *testing.T) {
	w := newWorld(t, testOptions(), newMemory())
	w.add("http://b.test/", "https://b.test/")
	for i := range 10 {
		w.add(fmt.Sprintf("http://a%d.test/", i))
	}
	w.answer = func(l Lease) answer {
		a := answer{took: 100 * time.Millisecond}
		switch {
		case l.Kind != Robots:
		case l.HostName != "b.test":
			a.location = "http://b.test/rules.txt"
		case l.URL.Scheme() == "https":
			a.took, a.location = 5*time.Second, "http://b.test/own.txt" // when all others wait
		}
		return a
	}
	w.open()
	w.finish(time.Hour, time.Hour)
	var at []int
	for i, r := range w.log {
		if r.url == "https://b.test/robots.txt" || r.url == "http://b.test/own.txt" {
			at = append(at, i)
		}
	}
	if len(at) != 2 {
		t.Fatalf("%v", w.log)
	}
	for _, r := range w.log[at[0]+1 : at[1]] {
		if r.host == "b.test" {
			t.Errorf("%v was asked for before the host's own", r)
		}
	}
}
