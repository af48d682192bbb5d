package shards

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/requestlog"
	"github.com/amble-crawler/amble/internal/testweb"
)

// losses is what nodes have requested and could not commit. Only that may be requested again, and on a slow
// machine it happens to nodes that nobody has harmed.
type losses struct {
	mu  sync.Mutex // guards all
	all []loss
}

// loss is one of them.
type loss struct {
	agent string        // of the node
	shard cluster.Shard // whatever it had not committed of this shard; allShards: of all
	page  string        // the host and path of a request that had no answer; empty: it is about a shard
	at    time.Time     // no earlier than it happened
}

const allShards cluster.Shard = -1

func (l *losses) add(agent string, shard cluster.Shard, page string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, loss{agent, shard, page, time.Now()})
}

// isLost reports whether the node may have lost what a request of it brought.
func (l *losses) isLost(q testweb.Request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.all {
		if one.agent != q.UserAgent || one.at.Before(q.Start) {
			continue
		}
		if one.page == q.Host+q.Path || one.page == "" && (one.shard == allShards || one.shard == shardOf(q.Host)) {
			return true
		}
	}
	return false
}

// note takes a line of the log of a node.
func (l *losses) note(agent, line string) {
	found := givenUp.FindStringSubmatch(line)
	if found == nil || strings.Contains(line, " orderly=true") {
		return
	}
	var s cluster.Shard
	_, _ = fmt.Sscan(found[1], &s)
	l.add(agent, s, "")
}

// givenUp matches what a node logs of a shard whose engine it ends.
var givenUp = regexp.MustCompile(`msg="(?:shard given up|the log of the shard cannot be reached[^"]*)" .*\bshard=(\d+)`)

// unanswered is an observer of engines that takes the pages whose requests had no answer.
type unanswered func(page string)

// Requested is part of crawl.Observer.
func (u unanswered) Requested(q requestlog.Request) {
	if q.Status == 0 {
		u(q.URL.Host() + q.URL.RequestURI())
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
