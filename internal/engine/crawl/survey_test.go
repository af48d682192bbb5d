package crawl

import (
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/memnet"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// TestStatusNamesSlowHosts: the status of a running crawl says what each of the slowest hosts needs.
func TestStatusNamesSlowHosts(t *testing.T) {
	t.Parallel()
	virtually(t, memnet.Options{}, func(t *testing.T, network *memnet.Network) {
		web := testweb.Serve(t, testweb.Config{Network: network, Sites: []testweb.Site{
			site("a.test", "User-agent: *\nCrawl-delay: 6\n", paths("/", 20), nil),
			site("b.test", "User-agent: *\nCrawl-delay: 3\n", paths("/", 20), nil),
			site("c.test", "", paths("/", 3), nil),
		}})
		o := testOptions(t, web)
		o.Frontier.Politeness.Delay = 10 * time.Millisecond
		e, stop := daemon(t, o, web.URL("a.test", "/"), web.URL("b.test", "/"), web.URL("c.test", "/"))
		testkit.Until(t, "two hosts are left", func() bool {
			s := e.Status()
			return len(s.Slowest) == 2 && s.Slowest[0].Host == "a.test" && s.Slowest[1].Host == "b.test" &&
				s.Slowest[0].URLs >= 18 && s.Slowest[0].Finish >= 17*6 && s.Slowest[0].Finish <= 21*6 &&
				s.Slowest[1].Finish <= 21*3 && s.Finish == s.Slowest[0].Finish
		})
		story, err := e.View().Host(t.Context(), "a.test")
		if slow := e.Status().Slowest[0].Finish; err != nil || story.Finish < slow-9 || story.Finish > slow+9 {
			t.Errorf("the host's own story says %.1f s, the status %.1f s (%v)", story.Finish, slow, err)
		}
		stop()
	})
}

// slowJournal takes a while for each commit, as a busy disk does.
type slowJournal struct {
	memoryJournal
	takes time.Duration
}

func (j *slowJournal) Append(number uint64, record []byte) (uint64, error) {
	time.Sleep(j.takes)
	return j.memoryJournal.Append(number, record)
}

// TestFinishBesideRecrawls: the time to finish of a daemon is that until the last URL that waits is fetched, also
// with a slow disk and after a restart. When the pages are recrawled does not count.
func TestFinishBesideRecrawls(t *testing.T) {
	t.Parallel()
	virtually(t, memnet.Options{}, func(t *testing.T, network *memnet.Network) {
		web := testweb.Serve(t, testweb.Config{Network: network, Sites: []testweb.Site{
			site("a.test", "User-agent: *\nCrawl-delay: 6\n", paths("/", 20), nil),
			site("b.test", "User-agent: *\nCrawl-delay: 3\n", paths("/", 20), nil),
			site("c.test", "", paths("/", 3), nil),
		}})
		o := recrawling(t, web)
		o.Recrawl.Policy, o.Recrawl.Interval, o.Recrawl.Max = recrawl.Fixed, 16*time.Hour, 24*time.Hour
		o.Journal = &slowJournal{memoryJournal: memoryJournal{taken: -1}, takes: 700 * time.Millisecond}
		type said struct {
			at     time.Time
			finish float64
		}
		var all []said
		for range 2 {
			e, stop := daemon(t, o, seedsOf(web, web.Sites())...)
			for range 90 {
				time.Sleep(time.Second)
				all = append(all, said{time.Now(), e.Status().Finish})
			}
			stop()
		}
		pages := web.Requests().Pages()
		last, most := pages[len(pages)-1].End, 0.0
		for _, s := range all {
			left := max(last.Sub(s.at).Seconds(), 0)
			if most = max(most, s.finish); s.finish > left+30 {
				t.Errorf("%.0f s before the end the time to finish is %.0f s", left, s.finish)
			}
		}
		assert.True(t, len(pages) == 46 && !(most < 60), "%d pages, want 46; the time to finish was %.0f s at most",
			len(pages), most)
	})
}
