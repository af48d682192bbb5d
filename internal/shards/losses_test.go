package shards

import (
	"fmt"
	"io"
	"regexp"
	"slices"
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
	all []*loss
}

// loss is one of them. The server may see a request of a node later than the test hears of the loss, so
// what the node requests of a shard is lost until it takes the shard again.
type loss struct {
	agent string        // of the node
	shard cluster.Shard // whatever it had not committed of this shard; allShards: of all
	page  string        // the host and path of a request that had no answer; empty: it is about a shard
	taken map[cluster.Shard]time.Time
}

const allShards cluster.Shard = -1

// isOf reports whether the loss may be about what the node had not committed of a shard.
func (l *loss) isOf(agent string, s cluster.Shard) bool {
	return l.agent == agent && l.page == "" && (l.shard == allShards || l.shard == s)
}

func (l *losses) add(agent string, shard cluster.Shard, page string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, &loss{agent, shard, page, make(map[cluster.Shard]time.Time)})
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
		l.add(agent, s, "")
	}
}

// shardLine matches what a node logs of a shard that it takes, and of one whose engine it ends.
var shardLine = regexp.MustCompile(`msg="(shard taken|shard given up|the shard belongs to another node|` +
	`the log of the shard cannot be reached[^"]*)" .*\bshard=(\d+)`)

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
