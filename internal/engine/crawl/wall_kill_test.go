package crawl

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/rules/wall"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// walling is the handler of a host that puts up a wall after a number of pages.
type walling struct {
	pages           http.Handler
	open            int64
	served, refused atomic.Int64
}

func (h *walling) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/robots.txt" && h.served.Add(1) > h.open {
		h.refused.Add(1)
		w.WriteHeader(http.StatusForbidden)
		return
	}
	h.pages.ServeHTTP(w, r)
}

// storedWall reads what the store knows of the wall of a host.
func storedWall(t *testing.T, dir, host string) (v wall.Verdict) {
	t.Helper()
	readHost(t, dir, host, func(_ *storage.Store, h *storage.Host) error {
		state, err := wall.DecodeState(h.Wall)
		v = state.Verdict()
		return err
	})
	return v
}

// TestHeavyWallSurvivesKill: after kill -9 a host behind a wall is left alone for the rest of its backoff,
// and the URLs that the wall refused are in their queue. In real time: a process is killed.
func TestHeavyWallSurvivesKill(t *testing.T) {
	t.Parallel()
	walled := &walling{pages: site("walled.test", "", paths("/", 60), nil).Handler, open: 15}
	web := startWeb(t, testweb.Site{Host: "walled.test", Handler: walled}, site("good.test", "", paths("/", 500), nil))
	dir, o := newChild(t, web, 10*time.Millisecond)
	for {
		child, done := startChild(t, dir)
		testkit.Until(t, "what has to come", func() bool { return walled.refused.Load() >= 8 })
		seen := lastCommit(t, o.DataDir)
		testkit.Until(t, "what has to come", func() bool { return lastCommit(t, o.DataDir) >= seen+5 || len(done) > 0 })
		err := child.Process.Kill()
		must.True(t, err == nil || len(done) != 0, "%v", err)
		<-done
		if v := storedWall(t, o.DataDir, "walled.test"); v.Stand == wall.Walled {
			break
		}
	}
	before := walled.refused.Load()
	_, done := startChild(t, dir)
	must.Do(t, <-done)
	log := web.Requests().Host("walled.test")
	for _, gap := range log.Gaps()[len(log.Gaps())-int(walled.refused.Load()-before):] {
		assert.AtLeast(t, gap.Length, time.Minute, "after", gap.Before.Path, "the wall got a request for",
			gap.After.Path)
	}
	for u, outcome := range stored(t, o.DataDir) {
		assert.True(t, outcome.State != storage.Failed &&
			(!strings.Contains(u, "good.test") || outcome.State == storage.Fetched), "%s is %+v", u, outcome)
	}
}

// TestHeavyHoldsSurviveKill: a backoff, and the wait of a host that is parked for it, hold after kill
// -9: their servers see no request of the next process, which crawls the others. In real time: a
// process is killed.
func TestHeavyHoldsSurviveKill(t *testing.T) {
	t.Parallel()
	tired := site("tired.test", "", paths("/", 60), testweb.Routes{"/ac": testweb.Status(429)})
	parked := site("parked.test", "", paths("/", 60), testweb.Routes{"/ac": testweb.RetryAfter(429, "700000")})
	web := startWeb(t, tired, parked, site("good.test", "", paths("/", 300), nil))
	dir, o := newChild(t, web, 10*time.Millisecond)
	child, done := startChild(t, dir)
	testkit.Until(t, "what has to come", func() bool {
		log := web.Requests()
		return len(log.Host("tired.test").Path("/ac")) > 0 && len(log.Host("parked.test").Path("/ac")) > 0
	})
	answered(t, web)
	seen := lastCommit(t, o.DataDir)
	testkit.Until(t, "what has to come", func() bool { return lastCommit(t, o.DataDir) >= seen+3 || len(done) > 0 })
	if err := child.Process.Kill(); err != nil && len(done) == 0 {
		t.Fatal(err)
	}
	<-done
	answered(t, web)
	before := web.Requests()
	_, done = startChild(t, dir)
	must.Do(t, <-done)
	for _, host := range []string{"tired.test", "parked.test"} {
		assert.AtMost(t, len(web.Requests().Host(host))-len(before.Host(host)), 0, host, "requests after the kill")
	}
	assert.AtLeast(t, len(web.Requests().Host("good.test").Pages()), 301, "pages of the other host")
	s := must.Get(storage.Open(o.DataDir, storage.Options{ReadOnly: true}))(t)
	defer s.Close()
	h := must.Get(s.HostByName("parked.test"))(t)
	state, err := politeness.DecodeState(h.Politeness)
	now := time.Now()
	assert.True(t, err == nil && politeness.NewHost(&o.Frontier.Politeness, state, now).Explain(now).Parked,
		"the host is not parked: %+v, %v", state, err)
}
