package console

import (
	"context"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestUntilDone: a reader that waits for more is left when its context ends; until then it reads as
// any other.
func TestUntilDone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	text, err := io.ReadAll(&UntilDone{ctx, strings.NewReader("one\ntwo\n")})
	assert.True(t, err == nil && string(text) == "one\ntwo\n", "%q, %v", text, err)
	r, w := io.Pipe()
	waits := &UntilDone{ctx, r}
	done := make(chan error, 1)
	go func() {
		_, err := io.ReadAll(waits)
		done <- err
	}()
	cancel()
	assert.Is(t, <-done, context.Canceled)
	assert.Fails(waits.Read(make([]byte, 1)))(t, context.Canceled)
	_ = w.Close() // the read that was left ends
}

func TestSupervisor(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "notify")
	listener := must.Get(net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"}))(t)
	defer listener.Close()
	heard := func(want string, not string) {
		t.Helper()
		_ = listener.SetReadDeadline(time.Now().Add(time.Minute))
		b := make([]byte, 1<<10)
		for {
			n, err := listener.Read(b)
			must.Do(t, err, "waiting for", want)
			message := string(b[:n])
			must.True(t, not == "" || !strings.Contains(message, not), "heard %q before %q", message, want)
			if strings.Contains(message, want) {
				return
			}
		}
	}
	environment := map[string]string{"NOTIFY_SOCKET": socket, "WATCHDOG_USEC": "400000"}
	s := FindSupervisor(func(name string) string { return environment[name] }, time.Now)
	var status atomic.Pointer[crawl.Status]
	set := func(state string, at time.Time, fetched int) {
		status.Store(&crawl.Status{State: state, At: at, URLs: map[string]int{"fetched": fetched}})
	}
	set("opened", time.Now(), 7)
	inspected := make(chan struct{}, 100)
	end := s.Watch(VitalOf(func() crawl.Status {
		select {
		case inspected <- struct{}{}:
		default:
		}
		return *status.Load()
	}))
	for range 3 {
		<-inspected
	}
	set("running", time.Now().Add(time.Hour), 7) // lives on
	heard("READY=1", "WATCHDOG")
	heard("WATCHDOG=1", "STATUS=opened") // it was not ready before
	heard("STATUS=running: 7 fetched", "")
	set("running", time.Now().Add(-time.Second), 8) // hangs
	heard("STATUS=running: 8 fetched", "")
	heard("STATUS=running: 8 fetched", "WATCHDOG")
	end()
	heard("STOPPING=1", "WATCHDOG")
	assert.True(t, FindSupervisor(func(string) string { return "" }, time.Now) == nil,
		"there is a supervisor where none is named")
	none := FindSupervisor(func(string) string { return "" }, time.Now)
	none.Watch(nil)()
}

// A message that nobody reads holds nobody up.
func TestSupervisorThatIsGone(t *testing.T) {
	s := &supervisor{socket: filepath.Join(t.TempDir(), "nobody"), now: time.Now, watchdog: time.Second}
	s.Watch(VitalOf(func() crawl.Status { return crawl.Status{State: "running", At: time.Now()} }))()
}
