package membership

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/cluster/natsconn"
)

// maxWrites bounds the writes and reads of registers under way. Those beyond it are lost.
const maxWrites = 256

// writes are the writes and reads of registers that are under way.
type writes struct {
	n     *Node
	slots chan struct{}
	wg    sync.WaitGroup
}

func newWrites(n *Node) *writes { return &writes{n: n, slots: make(chan struct{}, maxWrites)} }

// start starts a write or a read in a goroutine of its own, because the connection may block. If too
// many are under way, or there is no connection, it is lost.
func (w *writes) start(ctx context.Context, action cluster.Action) {
	select {
	case w.slots <- struct{}{}:
	default:
		return
	}
	w.wg.Go(func() {
		defer func() { <-w.slots }()
		if !w.n.reg.nc.IsConnected() {
			return
		}
		switch a := action.(type) {
		case cluster.WriteKey:
			data := encodeKey(w.writer(a.ID), a.Key)
			var notes []string
			if a.Node == w.n.o.Cluster.Node {
				notes = w.n.noted()
			}
			w.write(ctx, w.member(a.Node), data, a.Expected, true, func(m *cluster.Node, now cluster.Instant,
				seq cluster.Sequence, ok bool) {
				m.KeyAnswer(now, a.Node, a.ID, seq, ok)
				if ok && a.Node == w.n.o.Cluster.Node {
					w.n.watch.written = max(w.n.watch.written, seq)
				}
			}, notes...)
		case cluster.WriteEpoch:
			data := encodeEpoch(w.writer(a.ID), a.Epoch)
			w.write(ctx, w.epoch(a.Shard), data, a.Expected, false, func(m *cluster.Node, now cluster.Instant,
				seq cluster.Sequence, ok bool) {
				m.EpochAnswer(now, a.Shard, a.ID, seq, ok)
			})
		case cluster.ReadKey:
			w.read(ctx, w.member(a.Node))
		case cluster.ReadEpoch:
			w.read(ctx, w.epoch(a.Shard))
		}
	})
}

// wait waits for the end of all.
func (w *writes) wait() { w.wg.Wait() }

func (w *writes) writer(id uint64) writer { return writer{w.n.o.Cluster.Process, id} }

func (w *writes) member(node string) string { return w.n.o.Names.Subject("member", node) }

func (w *writes) epoch(s cluster.Shard) string { return w.n.o.Names.OfShard("epoch", int32(s)) }

// write writes a register. If the result is not known, it reads the register, which may tell.
func (w *writes) write(ctx context.Context, subject string, data []byte, expected cluster.Sequence, replaces bool,
	answer func(m *cluster.Node, now cluster.Instant, seq cluster.Sequence, written bool), notes ...string) {
	o := &w.n.o.Cluster
	// Later answers are of no use, because the trust that they would give is over.
	limited, cancel := context.WithTimeout(ctx, max(o.Retry, o.TTL/2))
	defer cancel()
	seq, result, err := w.n.reg.write(limited, subject, data, uint64(expected), replaces, notes...)
	if result == unknown {
		w.n.log.Debug("a write has no answer", "subject", subject, "error", err)
		w.read(ctx, subject)
		return
	}
	w.n.do(func(m *cluster.Node, now cluster.Instant) { answer(m, now, cluster.Sequence(seq), result == written) })
}

func (w *writes) read(ctx context.Context, subject string) {
	limited, cancel := context.WithTimeout(ctx, 2*w.n.o.Cluster.Retry)
	defer cancel()
	m, found, err := w.n.reg.read(limited, subject)
	if err != nil {
		w.n.log.Debug("a read has no answer", "subject", subject, "error", err)
	} else if found {
		w.n.seen(m)
	}
}

// seen takes a message of a register that was read or delivered. A message of this process says that
// its write has succeeded.
func (n *Node) seen(msg message) {
	seq := cluster.Sequence(msg.seq)
	if node, ok := n.o.Names.Cut(msg.subject, "member"); ok && natsconn.ValidateName(node) == nil {
		w, key, err := decodeKey(msg.data)
		if err != nil {
			n.foreign(msg.subject, err)
		}
		n.do(func(m *cluster.Node, now cluster.Instant) {
			if !n.mayKnow(node) {
				return
			}
			if err != nil {
				m.KeyUnreadable(now, node, seq)
				return
			}
			if w.process == n.o.Cluster.Process {
				m.KeyAnswer(now, node, w.id, seq, true)
			}
			m.KeySeen(now, node, seq, key)
		})
		return
	}
	text, ok := n.o.Names.Cut(msg.subject, "epoch")
	shard, err := strconv.ParseInt(text, 10, 32)
	if !ok || err != nil {
		return
	}
	w, epoch, err := decodeEpoch(msg.data)
	if err != nil {
		n.foreign(msg.subject, err)
		return
	}
	n.do(func(m *cluster.Node, now cluster.Instant) {
		if !n.mayKnow(epoch.Owner.Node) {
			return
		}
		if w.process == n.o.Cluster.Process {
			m.EpochAnswer(now, cluster.Shard(shard), w.id, seq, true)
		}
		m.EpochSeen(now, cluster.Shard(shard), seq, epoch)
	})
}

// mayKnow reports whether there is room for the name of a node. n.mu is held.
func (n *Node) mayKnow(node string) bool {
	if _, known := n.names[node]; known {
		return true
	}
	if len(n.names) >= maxNames {
		return false
	}
	n.names[node] = struct{}{}
	return true
}

// foreign reports a message that cannot be read.
func (n *shell) foreign(subject string, err error) {
	advice := "look who else writes to this subject"
	if errors.Is(err, errProtocol) {
		advice = "run the same version of amble on all nodes"
	}
	n.log.Error("a register of the cluster cannot be read; "+advice, "subject", subject, "error", err)
}

// followAgain is the pause before the registers are followed again after a failure.
const followAgain = 500 * time.Millisecond

// follow follows the registers until the context ends. synced is closed when all have been seen once.
func (n *Node) follow(ctx context.Context, synced chan struct{}) {
	var once sync.Once
	for ctx.Err() == nil {
		one, cancel := context.WithCancel(ctx)
		n.mu.Lock()
		n.watch.again, n.watch.since = cancel, 0
		n.mu.Unlock()
		err := n.reg.follow(one, func(m message) {
			n.noteDelivered(m)
			n.seen(m)
		}, func() { once.Do(func() { close(synced) }) }, "member", "epoch")
		cancel()
		if ctx.Err() == nil {
			n.log.Debug("the registers are followed again", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(followAgain):
		}
	}
}

// noteDelivered notes that a message of the own register was delivered.
func (n *Node) noteDelivered(m message) {
	if m.subject == n.writes.member(n.o.Cluster.Node) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.watch.seen = max(n.watch.seen, cluster.Sequence(m.seq))
	}
}

// checkWatch begins to follow again if the own heartbeats, which were written, are not delivered for
// half of a TTL. n.mu is held.
func (n *Node) checkWatch(now cluster.Instant) {
	w := &n.watch
	switch {
	case w.seen >= w.written:
		w.since = 0
	case w.since == 0:
		w.since = now
	case now.Sub(w.since) > n.o.Cluster.TTL/2 && w.again != nil:
		w.again()
		w.since = 0
	}
}
