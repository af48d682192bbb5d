package frontier

import (
	"fmt"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/weburl"
)

// TestLoadFailed asks for URLs again after a while, at first and later.
func TestLoadFailed(t *testing.T) {
	w := newWorld(t, testOptions(), newMemory())
	w.add(urls("http://a.test/", 100)...)
	w.open()
	w.f.dormantJobs[1] = []pendingJob{{mustURL(t, "http://a.test/robots.txt"), RobotsJob{Origin: weburl.Origin{Scheme: "http", Host: "b.test", Port: 80}, Owner: 9}}}
	w.f.schedule(w.f.hosts.get(1), 0)
	w.failEvery = 2
	w.run(20 * time.Minute)
	if w.loads < 4 || len(w.pages()) != 100 {
		t.Errorf("%d loads, %d pages", w.loads, len(w.pages()))
	}
	if w.log[0].url != "http://a.test/robots.txt" {
		t.Errorf("the errand is lost: %v", w.log[0])
	}
}

// TestFewActiveHosts crawls many more hosts than may be active: each has its
// turn, and those that are active make some use of it.
func TestFewActiveHosts(t *testing.T) {
	for _, delay := range []time.Duration{0, time.Second, 10 * time.Second} {
		o := testOptions()
		o.ActiveHosts, o.Session, o.Politeness.Delay = 10, 8, delay
		m := newMemory()
		for i := range 200 {
			m.makeUp(weburl.Origin{Scheme: "http", Host: fmt.Sprintf("h%d.test", i), Port: 80}, 10_000)
		}
		w := newWorld(t, o, m)
		w.workers, w.quick = 20, true
		w.open()
		w.run(4 * time.Minute)
		w.checkManners()
		w.evenly(200, 2.5)
		if w.f.activeHosts > 10 {
			t.Errorf("%d hosts are active", w.f.activeHosts)
		}
		checkInvariants(t, w.f)
		if delay < time.Duration(lead) && w.loads*3 > len(w.log) {
			t.Errorf("delay %v: %d loads for %d requests", delay, w.loads, len(w.log))
		}
	}
}

// TestActiveBytes keeps hosts with heavy robots.txt files from being active
// together. There are more of them than may be opened at a time, since what a
// host takes is known when it is open.
func TestActiveBytes(t *testing.T) {
	const hosts = maxActivating + 144
	o := testOptions()
	o.ActiveBytes = 400 << 10
	m := newMemory()
	for i := range hosts {
		m.makeUp(weburl.Origin{Scheme: "http", Host: fmt.Sprintf("h%d.test", i), Port: 80}, 10)
	}
	w := newWorld(t, o, m)
	w.quick = true
	heavy := "User-agent: *\n"
	for i := range 100 {
		heavy += fmt.Sprintf("Disallow: /folder/number/%d\n", i)
	}
	w.answer = func(l Lease) answer { return answer{took: 100 * time.Millisecond, body: heavy, maxAge: time.Hour} }
	w.open()
	w.run(5 * time.Second)
	most := 0
	for range 35 {
		w.run(time.Second)
		most = max(most, w.f.activeBytes)
	}
	w.evenly(hosts, 1)
	if most > 5<<19 {
		t.Errorf("%d bytes are active", most)
	}
}

// TestOpening loads few hosts at a time, however many are due.
func TestOpening(t *testing.T) {
	m := newMemory()
	for i := range 2000 {
		m.makeUp(weburl.Origin{Scheme: "http", Host: fmt.Sprintf("h%d.test", i), Port: 80}, 1)
	}
	w := newWorld(t, testOptions(), m)
	w.quick = true
	w.open()
	if _, ok := w.f.Next(w.now); ok || w.f.activating != maxActivating {
		t.Errorf("%d hosts are being loaded", w.f.activating)
	}
	w.run(time.Minute)
	if len(w.pages()) != 2000 {
		t.Errorf("%d pages", len(w.pages()))
	}
}
