package crawl

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/system/boot"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage/starts"
)

// A Retry-After is in the ledger as soon as the answer is there, and a process that finds it there
// without a commit obeys it.
func TestRetryAfterWithoutACommit(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", nil, testweb.Routes{
			"/refused": testweb.RetryAfter(429, "1"), "/b": testweb.Page("b"),
		}))
		o := testOptions(t, web)
		o.GiveUpAfter = 500 * time.Millisecond
		crawl(t, o, web.URL("a.test", "/refused"))
		ledger, err := os.ReadFile(filepath.Join(o.DataDir, starts.FileName))
		// rounded up
		lines := bytes.Count(ledger, []byte(" a.test 1000\n")) + bytes.Count(ledger, []byte(" a.test 1001\n"))
		assert.True(t, err == nil && lines == 1, "the ledger does not say that a.test requested a second: %q (%v)",
			ledger, err)

		time.Sleep(time.Until(lastOf(web).Add(1100 * time.Millisecond))) // it is over
		waited := leaveWait(t, o.DataDir, starts.Wait{Host: "a.test", At: time.Now(), Wait: 1500 * time.Millisecond})
		o.GiveUpAfter = 2500 * time.Millisecond
		before := len(web.Requests())
		crawl(t, o, web.URL("a.test", "/b"))
		if first := web.Requests()[before].Start; first.Before(waited) {
			t.Errorf("a request came %v before the Retry-After of the process before was over", waited.Sub(first))
		}
	})
}

func lastOf(web *testweb.Web) (end time.Time) {
	for _, q := range web.Requests() {
		if q.End.After(end) {
			end = q.End
		}
	}
	return end
}

// leaveWait writes a wait into the ledger as a process does that is killed before the commit. It
// returns when the wait is over.
func leaveWait(t *testing.T, dir string, w starts.Wait) time.Time {
	t.Helper()
	uncommitted := must.Get(starts.Read(dir, 0, boot.ID(), nil))(t)
	l := must.Get(starts.Open(dir, boot.ID(), uncommitted.End))(t)
	must.Do(t, l.AppendWait(w))
	must.Do(t, l.Close())
	return w.At.Add(w.Wait)
}
