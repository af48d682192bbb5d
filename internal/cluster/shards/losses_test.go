package shards

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// losses is what nodes have requested and could not commit. Only that may be requested again, and on a slow
// machine it happens to nodes that nobody has harmed.
type losses struct {
	mu  sync.Mutex // guards all
	all []*loss
}

// loss is one of them. The server may see a request of a node later than the test hears of the loss, so
// what the node requests of a shard is lost until it takes the shard again.
type loss struct {
	agent string        // of the node
	shard cluster.Shard // whatever it had not committed of this shard; allShards: of all
	page  string        // the host and path of a request that had no answer; empty: it is about a shard
	end   time.Time     // of that request, as the node knows it
	taken map[cluster.Shard]time.Time
}

const allShards cluster.Shard = -1

// isOf reports whether the loss may be about what the node had not committed of a shard.
func (l *loss) isOf(agent string, s cluster.Shard) bool {
	return l.agent == agent && l.page == "" && (l.shard == allShards || l.shard == s)
}

// add adds the loss of a shard, or with allShards of all.
func (l *losses) add(agent string, shard cluster.Shard) {
	l.append(&loss{agent: agent, shard: shard, taken: make(map[cluster.Shard]time.Time)})
}

// addRequest adds a request that had no answer.
func (l *losses) addRequest(agent, page string, end time.Time) {
	l.append(&loss{agent: agent, shard: allShards, page: page, end: end})
}

func (l *losses) append(one *loss) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, one)
}

// sawLate reports whether the request before a gap had no answer and ended a delay before the next one. The
// server may read it later, from its own end of a connection that the node has closed.
func (l *losses) sawLate(g testweb.Gap, delay time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	var last time.Time
	for _, one := range l.all {
		if one.agent == g.Before.UserAgent && one.page == g.Before.Host+g.Before.Path &&
			one.end.After(last) && !one.end.After(g.After.Start) {
			last = one.end
		}
	}
	return !last.IsZero() && g.After.Start.Sub(last) >= delay
}

// take takes note that the node begins to crawl a shard.
func (l *losses) take(agent string, s cluster.Shard) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.all {
		if one.isOf(agent, s) && one.taken[s].IsZero() {
			one.taken[s] = time.Now()
		}
	}
}

// isLost reports whether the node may have lost what a request of it brought.
func (l *losses) isLost(q testweb.Request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := shardOf(q.Host)
	return slices.ContainsFunc(l.all, func(one *loss) bool {
		if one.isOf(q.UserAgent, s) {
			return one.taken[s].IsZero() || q.Start.Before(one.taken[s])
		}
		return one.agent == q.UserAgent && one.page == q.Host+q.Path
	})
}

// note takes a line of the log of a node.
func (l *losses) note(agent, line string) {
	found := shardLine.FindStringSubmatch(line)
	if found == nil || strings.Contains(line, " orderly=true") {
		return
	}
	var s cluster.Shard
	_, _ = fmt.Sscan(found[2], &s)
	if found[1] == "shard taken" {
		l.take(agent, s)
	} else {
		l.add(agent, s)
	}
}

// shardLine matches what a node logs of a shard that it takes, and of one whose engine it ends.
var shardLine = regexp.MustCompile(`msg="(shard taken|shard given up|the shard belongs to another node|` +
	`the log of the shard cannot be reached[^"]*)" .*\bshard=(\d+)`)

// unanswered is an observer of engines that takes the pages whose requests had no answer, and when they ended.
type unanswered func(page string, end time.Time)

// Requested is part of crawl.Observer.
func (u unanswered) Requested(q requestlog.Request) {
	if q.Status == 0 {
		u(q.URL.Host()+q.URL.RequestURI(), q.End)
	}
}

// Committed is part of crawl.Observer.
func (unanswered) Committed(time.Duration, int) {}

// logLines is where a node of this process logs to: one line a call.
type logLines struct {
	note func(line string)
	to   io.Writer
	all  bool // to gets all of them, not only errors
}

// Write is part of io.Writer.
func (l *logLines) Write(line []byte) (int, error) {
	l.note(string(line))
	if l.all || strings.Contains(string(line), "level=ERROR") {
		return l.to.Write(line)
	}
	return len(line), nil
}

// TestSawLate: a gap that is short for the server counts if the node did not wait, and not if the server saw a
// request without an answer late.
func TestSawLate(t *testing.T) {
	var l losses
	at := func(ms int) time.Time { return time.Unix(1_790_000_000, 0).Add(time.Duration(ms) * time.Millisecond) }
	l.addRequest("a", "x.example/p", at(0))
	l.addRequest("a", "x.example/p", at(400))
	request := func(agent, path string, start int) testweb.Request {
		return testweb.Request{UserAgent: agent, Host: "x.example", Path: path, Start: at(start), End: at(start + 1)}
	}
	for _, c := range []struct {
		before testweb.Request
		after  int // the start of the next
		want   bool
	}{
		{request("a", "/p", 60), 110, true},
		{request("a", "/p", -60), 90, false},
		{request("a", "/p", 380), 450, false}, // that one ended at 400
		{request("a", "/p", 450), 510, true},
		{request("a", "/q", 60), 110, false},
		{request("b", "/p", 60), 110, false},
	} {
		g := testweb.Gap{Before: c.before, After: request("b", "/p", c.after)}
		assert.Equal(t, l.sawLate(g, 100*time.Millisecond), c.want, c.before.Path, "by", c.before.UserAgent,
			"then a request at", c.after, "ms: seen late")
	}
}
