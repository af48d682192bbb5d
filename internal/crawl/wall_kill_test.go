package crawl

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testweb"
	"github.com/amble-crawler/amble/internal/wall"
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

// TestWallSurvivesKill: after kill -9 a host behind a wall is left alone for the rest of its backoff,
// and the URLs that the wall refused are in their queue.
func TestWallSurvivesKill(t *testing.T) {
	t.Parallel()
	walled := &walling{pages: site("walled.test", "", paths("/", 60), nil).Handler, open: 15}
	web := startWeb(t, testweb.Site{Host: "walled.test", Handler: walled}, site("good.test", "", paths("/", 500), nil))
	dir, o := newChild(t, web, 10*time.Millisecond)
	for deadline := time.Now().Add(patience); ; {
		child, done := startChild(t, dir)
		waitFor(t, deadline, func() bool { return walled.refused.Load() >= 8 })
		seen := lastCommit(t, o.DataDir)
		waitFor(t, deadline, func() bool { return lastCommit(t, o.DataDir) >= seen+5 || len(done) > 0 })
		if err := child.Process.Kill(); err != nil && len(done) == 0 {
			t.Fatal(err)
		}
		<-done
		if v := storedWall(t, o.DataDir, "walled.test"); v.Stand == wall.Walled {
			break
		}
	}
	before := walled.refused.Load()
	_, done := startChild(t, dir)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	log := web.Requests().Host("walled.test")
	for _, gap := range log.Gaps()[len(log.Gaps())-int(walled.refused.Load()-before):] {
		if gap.Length < time.Minute {
			t.Errorf("%v after %s the wall got a request for %s", gap.Length, gap.Before.Path, gap.After.Path)
		}
	}
	for u, outcome := range stored(t, o.DataDir) {
		if outcome.State == storage.Failed || strings.Contains(u, "good.test") && outcome.State != storage.Fetched {
			t.Errorf("%s is %+v", u, outcome)
		}
	}
}

// waitFor waits until a condition holds.
func waitFor(t *testing.T, deadline time.Time, holds func() bool) {
	t.Helper()
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatal("what has to come does not come")
		}
		time.Sleep(5 * time.Millisecond)
	}
}
