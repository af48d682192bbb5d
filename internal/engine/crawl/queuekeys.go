//go:build !core

package crawl

import (
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl/internal/queues"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/engine/marks"
)

// A queue of a client that decides everything has a key. It is the name of its host, or any text that the client
// has put URLs of hosts with: then it stands for all of these hosts. A host is in one queue, that of its last key.
// Marks keep the keys: for each host that has one its key, and for each key and host one without a value. So
// there are at most as many keys as hosts, none of them is in memory, and the log of a shard has them.

// keyIndex are the keys of the queues of hosts as they are on disk. It is safe for concurrent use.
type keyIndex struct {
	database store
	now      func() time.Time
	any      atomic.Bool // a host has a key
}

// queueKeys are the keys of the queues of hosts with those that are not on disk yet. The dispatcher owns them.
type queueKeys struct {
	store   queues.Store
	any     *atomic.Bool
	changed map[string]string // by host, what is not on disk yet; empty: it has none
}

// queueKey is the key of the queue of a host.
type queueKey struct{ host, key string }

// putKey is the key that a client has put a host with.
type putKey struct {
	key    string
	onDisk bool // the host has had it there
}

// of returns the key of a host; empty: it has none.
func (q *queueKeys) of(host string) (string, error) {
	if !q.any.Load() {
		return "", nil
	}
	if key, is := q.changed[host]; is {
		return key, nil
	}
	key, err := q.store.Mark(marks.QueueKey + host)
	return string(key), err
}

// set puts a host into the queue of a key, in the batch; the name of the host: it has none any more. It reports
// whether the key is another one.
func (q *queueKeys) set(k queueKey, b *batch) (changed bool, err error) {
	if k.key == k.host {
		k.key = ""
	}
	before, err := q.of(k.host)
	if err != nil || before == k.key {
		return false, err
	}
	if before != "" {
		b.setMark(marks.OfQueueHost(before, k.host), nil)
	}
	var value []byte
	if k.key != "" {
		value = []byte(k.key)
		b.setMark(marks.OfQueueHost(k.key, k.host), []byte{1})
	}
	b.setMark(marks.QueueKey+k.host, value)
	q.changed[k.host] = k.key
	return true, nil
}

// committed takes note that a batch is on disk. What changed since is in the pending one.
func (q *queueKeys) committed(b, pending *batch) {
	for name := range b.rows.Marks {
		if host, is := strings.CutPrefix(name, marks.QueueKey); is {
			if _, again := pending.rows.Marks[name]; !again {
				delete(q.changed, host)
			}
		}
	}
}

// keysCommitted takes note of the keys that are on disk with a batch.
func (oc *outcomes) keysCommitted(b *batch, now time.Time) {
	keys := &oc.remote.keys
	keys.committed(b, oc.pending)
	oc.fail(keys.inheritSettings(b, oc.pending, now, oc.setQueue))
}

// setGroup puts the hosts of a group into their queues, in the batch.
func (q *queueKeys) setGroup(g *putGroup, b *batch) error {
	for host, k := range g.keys {
		if _, is := q.changed[host]; k.onDisk && !is {
			continue
		}
		changed, err := q.set(queueKey{host, k.key}, b)
		if err != nil {
			return err
		}
		if changed {
			g.moved = append(g.moved, queueKey{host, k.key})
		}
	}
	return nil
}

// inheritSettings has hosts that are in another queue now take over the block, the delay and the limit of that
// queue, as far as they are stricter than their own. Their puts are acknowledged when that is on disk, with the
// pending batch.
func (q *queueKeys) inheritSettings(b, pending *batch, now time.Time, set setQueue) error {
	for _, g := range b.puts {
		for _, k := range g.moved {
			key, err := q.of(k.host)
			if err != nil {
				return err
			}
			if key != k.key {
				continue
			}
			changed, err := q.inherit(k, now, set)
			if err != nil {
				return err
			}
			if changed && !g.again {
				pending.waiting = append(pending.waiting, g.done)
				g.again = true
			}
		}
	}
	return nil
}

// setQueue changes the settings of a host. The error is inspect.ErrUnknown if it has no URLs.
type setQueue func(host string, change func(*QueueSettings)) error

// inherit reports whether there were settings to take over.
func (q *queueKeys) inherit(k queueKey, now time.Time, set setQueue) (changed bool, err error) {
	others, err := queues.HostsOf(q.store, k.key, "", 2)
	if err != nil {
		return false, err
	}
	for _, other := range append(others, k.key) { // the key may be the name of a host
		h, err := queues.Of(q.store, other)
		if other == k.host || errors.Is(err, inspect.ErrUnknown) {
			continue
		}
		if err != nil {
			return false, err
		}
		of, err := queues.Read(q.store, &h, now)
		if err != nil || of == (QueueSettings{}) {
			return false, err
		}
		if err = set(k.host, of.Tighten); errors.Is(err, inspect.ErrUnknown) { // its URLs were refused
			return false, nil
		}
		return err == nil, err
	}
	return false, nil
}

// restore finds out whether a host has a key.
func (i *keyIndex) restore() error {
	names, err := i.database.MarkNames(marks.QueueKey, "", 1)
	i.any.Store(len(names) > 0)
	return err
}
