package membership

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/natstest"
	"github.com/amble-crawler/amble/internal/testing/testkit"
)

// webLog is what a server has seen of a child.
type webLog struct {
	mu       sync.Mutex
	latest   map[cluster.Shard]cluster.Sequence
	requests int
	least    map[cluster.Shard]cluster.Sequence // epochs before these may not come any more
	late     []string
}

func (l *webLog) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	var s cluster.Shard
	var epoch cluster.Sequence
	l.mu.Lock()
	defer l.mu.Unlock()
	if n, _ := fmt.Sscanf(r.URL.Path, "/%d/%d", &s, &epoch); n != 2 {
		l.late = append(l.late, r.URL.Path)
		return
	}
	l.requests++
	l.latest[s] = max(l.latest[s], epoch)
	if epoch < l.least[s] {
		l.late = append(l.late, r.URL.Path)
	}
}

// seen returns how many requests came, and for how many shards.
func (l *webLog) seen() (requests, shards int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.requests, len(l.latest)
}

// TestStoppedProcess: a process that is stopped by a signal sends nothing when it goes on, before it
// has claimed its shards again. The judge is the server that it crawls. One request may come, of a
// goroutine that was stopped between its last check and its write, as docs/CLUSTER.md says. Without that
// check they come from several shards at once, in one round of four.
func TestStoppedProcess(t *testing.T) {
	t.Parallel()
	stopProcess(t, 1)
}

func stopProcess(t *testing.T, rounds int) {
	w := &world{t: t, judge: &judge{}, nodes: make(map[string]*process)}
	w.servers = natstest.Start(t, names, 1, nil)
	t.Cleanup(func() {
		for _, p := range w.processes() {
			p.kill()
		}
	})
	web := &webLog{latest: make(map[cluster.Shard]cluster.Sequence), least: make(map[cluster.Shard]cluster.Sequence)}
	s := httptest.NewServer(web)
	t.Cleanup(s.Close)
	other := w.start("other")
	w.served("the first node has all", other)

	program := must.Get(os.Executable())(t)
	child := exec.Command(program)
	child.Env = append(os.Environ(), childURL+"="+w.servers.URLs()[0], childWeb+"="+s.URL)
	child.Stderr = os.Stderr
	must.Do(t, child.Start())
	t.Cleanup(func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	})
	signal := func(s unix.Signal) {
		t.Helper()
		must.Do(t, child.Process.Signal(s))
	}
	for range rounds {
		before, _ := web.seen()
		testkit.Eventually(t, "the child crawls its shards", func() error {
			requests, shards := web.seen()
			if requests < before+50 || shards < 5 || len(other.engines.owned()) == 24 {
				return errNotYet
			}
			return nil
		})
		signal(unix.SIGSTOP)
		w.served("the other has all", other)
		taken := w.epochs(other)
		web.mu.Lock()
		for shard, epoch := range taken {
			web.least[shard] = epoch
		}
		web.mu.Unlock()
		signal(unix.SIGCONT)
		testkit.Eventually(t, "the child claims its shards again", func() error {
			web.mu.Lock()
			defer web.mu.Unlock()
			for shard, epoch := range web.latest {
				if epoch <= taken[shard] {
					return fmt.Errorf("shard %d: epoch %d, the other had %d", shard, epoch, taken[shard])
				}
			}
			return nil
		})
	}
	time.Sleep(100 * time.Millisecond) // what was sent early has arrived
	web.mu.Lock()
	defer web.mu.Unlock()
	assert.AtMost(t, len(web.late), 1, "the server saw", web.late, "after the child went on")
}
