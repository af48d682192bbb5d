package frontier

import (
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// TestLoadFailed requests a failed load again after a while, the first one and later ones.
func TestLoadFailed(t *testing.T) {
	w := newWorld(t, testOptions(), newMemory())
	w.add(urls("http://a.test/", 100)...)
	w.open()
	w.f.jobs.dormant[1] = []pendingJob{{mustURL(t, "http://a.test/robots.txt"),
		RobotsJob{Origin: weburl.Origin{Scheme: "http", Host: "b.test", Port: 80}, Owner: 9}}}
	w.f.schedule(w.f.hosts.get(1), 0)
	w.failEvery = 2
	w.run(20 * time.Minute)
	assert.True(t, w.loads >= 4 && len(w.pages()) == 100, "%d loads, %d pages", w.loads, len(w.pages()))
	assert.True(t, w.log[0].url == "http://a.test/robots.txt", "the robots job is lost: %v", w.log[0])
}

// TestCommittedWhileLoading commits the outcome of a due URL during a load that still has it.
func TestCommittedWhileLoading(t *testing.T) {
	o := testOptions()
	o.Politeness.Delay, o.RetryDelay, o.Heads = 100*time.Millisecond, time.Second, 4
	w := newWorld(t, o, newMemory())
	w.loadTime, w.commitTime = 800*time.Millisecond, 10*time.Millisecond
	w.add(urls("http://a.test/", 60)...)
	requested := map[string]int{}
	w.answer = func(l Lease) answer {
		u := l.URL.String()
		if requested[u]++; l.Kind == Page && requested[u] == 1 {
			return answer{state: storage.Retrying, reason: storage.ReasonStatus, took: 10 * time.Millisecond}
		}
		return answer{took: 10 * time.Millisecond}
	}
	w.open()
	w.finish(time.Hour, time.Hour)
	for u, n := range requested {
		assert.True(t, n == 2 || u == "http://a.test/robots.txt", "%s was fetched %d times, want 2", u, n)
	}
	assert.Equal(t, len(requested), 61, "URLs were fetched")
}
