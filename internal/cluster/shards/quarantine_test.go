package shards

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/cluster/journal"
	"github.com/amble-crawler/amble/internal/cluster/membership"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/storage"
)

// TestUnreadableMessages: a message that cannot be read costs its shard, and one with scope seeds only these. The
// nodes keep their shards and crawl the others; a shard goes on when the message is set aside.
func TestUnreadableMessages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 10*time.Millisecond, longTTL)
	w.alter = func(o *Options) { o.Cluster.FaultPause = time.Hour }
	one := w.start("one", t.TempDir())
	one.takes(shards)
	noise := []byte("twenty-two octets here")
	publish := func(subject string, data []byte, o ...jetstream.PublishOpt) uint64 {
		t.Helper()
		ack := must.Get(one.node.js.Publish(t.Context(), subject, data, o...))(t)
		return ack.Sequence
	}
	publish(names.Subject("scope"), noise)
	publish(names.OfShard("log", 2), noise) // no node has appended it
	fence := jetstream.WithExpectLastSequenceForSubject(uint64(one.node.Status().Shards[1].Epoch),
		names.OfShard("epoch", 1))
	bad := map[cluster.Shard]uint64{
		0: publish(names.OfShard("in", 0), noise),
		1: publish(names.OfShard("log", 1), append([]byte{255}, make([]byte, 1<<19)...), fence),
	}
	one.leave()

	two := w.start("two", t.TempDir()) // it reads the whole log
	two.takes(shards - len(bad))
	fault := func(s cluster.Shard) *cluster.Fault {
		if all := two.node.Status().Shards; len(all) > 0 {
			return all[s].Fault
		}
		return nil
	}
	w.eventually("two shards are in quarantine", func() error {
		for s, sequence := range bad {
			if f := fault(s); f == nil || uint64(f.Sequence) != sequence {
				return fmt.Errorf("shard %d: %+v", s, f)
			}
		}
		return nil
	})
	w.eventually("the others are crawled", func() error {
		for s, st := range two.node.Status().Shards {
			if _, isBad := bad[cluster.Shard(s)]; !isBad && st.Engine != cluster.Running {
				return fmt.Errorf("shard %d: %+v", s, st)
			}
		}
		return nil
	})
	survey := must.Get(membership.ReadSurvey(t.Context(), two.node.js, names))(t)
	for s, o := range survey.Shards {
		_, isBad := bad[cluster.Shard(s)]
		assert.True(t, o.Node == "two" && isBad == (o.Fault != nil), "shard %d: %+v", s, o)
	}
	aside := func(s cluster.Shard, sequence uint64) (kept []byte, err error) {
		return kept, journal.SetAside(t.Context(), two.node.js, names, int(s), sequence, func(data []byte) error {
			kept = data
			return nil
		})
	}
	assert.Fails(aside(1, bad[1]))(t, journal.ErrNotAside, "a record of the log")
	must.Get(aside(0, bad[0]))(t)
	assert.Fails(aside(0, bad[0]))(t, journal.ErrNotAside, "again")
	must.Do(t, membership.Command(t.Context(), two.nc, names, "two", membership.RetryFaults))
	w.eventually("shard 0 is crawled", func() error {
		if st := two.node.Status().Shards; st[0].Engine != cluster.Running || st[1].Fault == nil {
			return fmt.Errorf("%+v, %+v", st[0], st[1])
		}
		return nil
	})
	two.leave()
}

// TestFaultOf: what would fail on another node too is a fault of the shard. What the disk of this node does, and a lost
// shard or server, are none.
func TestFaultOf(t *testing.T) {
	t.Parallel()
	message := &storage.MessageError{Kind: "in", Sequence: 7, Err: storage.ErrRecord}
	for _, c := range []struct {
		err  error
		want bool
	}{
		{message, true}, {storage.ErrRecord, true}, {storage.ErrNewer, true}, {crawl.ErrPanic, true},
		{nil, false}, {storage.ErrCorrupt, false}, {storage.ErrNoSpace, false}, {storage.ErrInDoubt, false},
		{syscall.EIO, false}, {storage.ErrLost, false}, {storage.ErrLogDown, false},
	} {
		err := c.err
		if err != nil {
			err = fmt.Errorf("shard 3: %w", err)
		}
		f, is := faultOf(err)
		isMessage := c.err == error(message)
		assert.True(t, is == c.want && (!is || f.Reason == err.Error()) && (f.Sequence == 7) == isMessage,
			"%v: a fault %t, %+v", c.err, is, f)
	}
}
