package journal

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/amble-crawler/amble/internal/cluster/natsconn"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/storage"
)

// TestFence: when a shard has a later epoch, its former owner appends nothing any more, and learns it.
func TestFence(t *testing.T) {
	s := start(t)
	old := s.claim(t, 1)
	mustAppend(t, old, 1, []byte("one"))
	other := s.claim(t, 2)
	fresh := s.claim(t, 1)
	before := count(t, s.log)
	for range 3 {
		_, err := old.Append(2, []byte("two"))
		must.True(t, errors.Is(err, storage.ErrLost), "the former owner: %v", err)
	}
	assert.Equal(t, count(t, s.log), before, "the former owner has left messages")
	assert.NoError(t, old.Replay(storage.LogPosition{}, discard), "a former owner reads up to its claim")
	assert.Slice(t, replayed(t, fresh, storage.LogPosition{}), []string{"one"}, "the new owner reads")
	mustAppend(t, fresh, 2, []byte("other two"))
	mustAppend(t, other, 1, []byte("another shard"))
	last := s.claim(t, 1)
	assert.Slice(t, replayed(t, last, storage.LogPosition{}), []string{"one", "other two"}, "the last owner reads")
	purgeEpoch(t, s, 1, last.epoch)
	newer := s.claim(t, 1)
	purgeEpoch(t, s, 1, newer.epoch)
	assert.Is(t, last.Replay(storage.LogPosition{}, discard), storage.ErrLost, "an owner whose epoch is gone")
}

// purgeEpoch deletes the epochs of a shard before a sequence.
func purgeEpoch(t *testing.T, s *Streams, n int, before uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	subject := jetstream.WithPurgeSubject(s.EpochSubject(n))
	must.Do(t, s.log.Purge(ctx, subject, jetstream.WithPurgeSequence(before)))
}

// discard takes a record and forgets it.
func discard(uint64, []byte) error { return nil }

// TestLostAnswers: each answer to a publish may be lost, with its connection. Every record is in the
// log, and counts once.
func TestLostAnswers(t *testing.T) {
	back := startServer(t, t.TempDir(), nil)
	at := must.Get(url.Parse(back.ClientURL()))(t)
	p := startProxy(t, at.Host)
	options := append(ConnectOptions(), nats.ReconnectWait(time.Millisecond), nats.ReconnectJitter(0, 0))
	nc := must.Get(nats.Connect(p.url(), options...))(t)
	defer func() { nc.Close(); p.listener.Close(); p.wg.Wait() }()
	s := openStreams(t, nc, testOptions())
	shard := s.claim(t, 0)
	impatient := *s
	impatient.o.Timeout = 150 * time.Millisecond // on a slow machine there are more tries
	shard.Streams = &impatient
	var want []string
	for i := range 12 {
		if i%2 == 0 {
			p.lose.Store(int64(1 + i%3))
		}
		record := fmt.Sprint("record ", i)
		mustAppend(t, shard, uint64(i+1), []byte(record))
		want = append(want, record)
	}
	assert.Not(t, p.lost.Load(), 0, "no answer was lost")
	assert.Slice(t, replayed(t, s.claim(t, 0), storage.LogPosition{}), want, "the log")
}

// TestRefusedThenFound: a message that was taken although its answer never came is found, and one
// that was not is sent again.
func TestRefusedThenFound(t *testing.T) {
	s := start(t)
	shard := s.claim(t, 0)
	shard.out = &outgoing{record: []byte("a"), frames: newFrames(1, []byte("a"), 100), unsettled: true}
	first, err := shard.Append(1, []byte("a")) // it is not there
	must.Do(t, err)
	shard.out = &outgoing{record: []byte("a"), frames: newFrames(1, []byte("a"), 100), unsettled: true}
	before := count(t, s.log)
	if again, err := shard.Append(1, []byte("a")); err != nil || again != first || count(t, s.log) != before {
		t.Errorf("settled as %d, want %d, %v", again, first, err)
	}
	shard.out.done, shard.out.unsettled = 0, false
	if again, err := shard.Append(1, []byte("a")); err != nil || again != first || count(t, s.log) != before {
		t.Errorf("sent again it is %d, want %d, %v", again, first, err)
	}
	shard.out.done = 0
	if _, err := shard.Append(2, []byte("b")); err == nil || errors.Is(err, storage.ErrLogDown) {
		t.Errorf("another record while one is being appended: %v", err)
	}
}

// TestTwice: a record that is in the log twice counts once.
func TestTwice(t *testing.T) {
	s := start(t)
	shard := s.claim(t, 0)
	f := newFrames(1, []byte("one"), 100)[0]
	g := newFrames(2, []byte("two"), 100)[0]
	for _, frame := range []frame{f, f, g, f, g} {
		s.put(t, s.subject("log", 0), frame.append(nil))
	}
	mustAppend(t, shard, 3, []byte("three"))
	assert.Slice(t, replayed(t, s.claim(t, 0), storage.LogPosition{}), []string{"one", "two", "three"}, "the log")
}

// TestLargeRecords: records of many messages, also behind one whose writer ended in the middle.
func TestLargeRecords(t *testing.T) {
	back := startServer(t, t.TempDir(), func(o *server.Options) { o.MaxPayload = 16 << 10 })
	s := openStreams(t, connect(t, back.ClientURL()), testOptions())
	noise := func(n int) []byte {
		b := make([]byte, n)
		rng := rand.New(rand.NewPCG(uint64(n), 1))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return b
	}
	shard := s.claim(t, 0)
	want := []string{string(noise(100_000)), "small", string(noise(s.part)), string(noise(s.part + 1))}
	for i, record := range want {
		mustAppend(t, shard, uint64(i+1), []byte(record))
	}
	frames := newFrames(5, noise(60_000), s.part)
	for _, f := range frames[:3] { // its writer ends here
		s.put(t, s.subject("log", 0), f.append(nil))
	}
	shard = s.claim(t, 0)
	got := replayed(t, shard, storage.LogPosition{})
	must.True(t, slices.Equal(got, want), "%d records", len(got))
	want = append(want, string(noise(70_000)))
	mustAppend(t, shard, 5, []byte(want[4]))
	assert.Slice(t, replayed(t, s.claim(t, 0), storage.LogPosition{}), want, "records")
	s.put(t, s.subject("log", 0), frames[3].append(nil))
	assert.NoError(t, s.claim(t, 0).Replay(storage.LogPosition{}, discard), "a late part of a record that counts")
	six := newFrames(6, noise(60_000), s.part)
	s.put(t, s.subject("log", 0), six[1].append(nil))
	assert.Is(t, s.claim(t, 0).Replay(storage.LogPosition{}, discard), storage.ErrRecord, "a part without the first")
}

// TestRestart: what was acknowledged is there after the server was restarted, and the journal goes on.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	back := startServer(t, dir, nil)
	at := back.Addr().String()
	s := openStreams(t, connect(t, back.ClientURL()), testOptions())
	shard := s.claim(t, 0)
	var want []string
	for i := range 9 {
		if i%3 == 2 {
			stopServer(back)
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			assert.Fails(s.last(ctx, s.subject("log", 0)))(t, storage.ErrLogDown, "without a server")
			cancel()
			back = startServer(t, dir, func(o *server.Options) { o.Port = portOf(t, at) })
		}
		want = append(want, fmt.Sprint("record ", i))
		mustAppend(t, shard, uint64(i+1), []byte(want[i]))
	}
	assert.Slice(t, replayed(t, s.claim(t, 0), storage.LogPosition{}), want, "the log")
}

// TestNewerVersions are refused, and the message says what to do.
func TestNewerVersions(t *testing.T) {
	s := start(t)
	shard := s.claim(t, 0)
	mustAppend(t, shard, 1, []byte("one"))
	newer := newFrames(2, []byte("two"), 100)[0].append(nil)
	newer[0]++
	shard.fenced(t, newer)
	s.put(t, s.subject("in", 0), []byte{discoveriesVersion + 1})
	err := s.claim(t, 0).Replay(storage.LogPosition{}, discard)
	assert.True(t, errors.Is(err, storage.ErrNewer) && strings.Contains(err.Error(), "use a newer amble on this node"),
		"a log of a newer version: %v", err)
	err = shard.Incoming(context.Background(), 0, func(uint64, []storage.Discovery) error { return nil })
	assert.True(t, errors.Is(err, storage.ErrNewer) && strings.Contains(err.Error(), "use a newer amble on this node"),
		"URLs of a newer version: %v", err)
}

// TestHostileMessages: whatever a node has appended to a log, it is refused or passed on, and nothing is skipped. What
// nobody with a claim has written is no record.
func TestHostileMessages(t *testing.T) {
	s := start(t)
	good := newFrames(1, []byte(strings.Repeat("record", 100)), 1000)[0].append(nil)
	bad := [][]byte{nil, {0}, {1}, {1, 9, 1}, good[:len(good)-1], append(slices.Clone(good), 1)}
	for i := range good {
		flipped := slices.Clone(good)
		flipped[i] ^= 0x40
		bad = append(bad, flipped)
	}
	for i, data := range bad {
		s.put(t, s.subject("log", i%4), data[:min(len(data), 22)])
		at := s.claim(t, i%4).fenced(t, data)
		shard := s.claim(t, i%4)
		err := shard.Replay(storage.LogPosition{Sequence: at - 1}, func(_ uint64, record []byte) error {
			return fmt.Errorf("it passes as %q", record)
		})
		if !errors.Is(err, storage.ErrRecord) && !errors.Is(err, storage.ErrNewer) && !errors.Is(err, storage.ErrGap) {
			if f, broken := decodeFrame(data); broken == nil && f.part+1 < f.parts {
				continue // the start of a record that has no end
			}
			t.Errorf("message %d, %x: %v", i, data, err)
		}
	}
}

// TestMissingStreams: streams that are not as the log needs them are refused by name.
func TestMissingStreams(t *testing.T) {
	nc := connect(t, startServer(t, t.TempDir(), nil).ClientURL())
	openStreams(t, nc, testOptions())
	s := openStreams(t, nc, testOptions()) // they are there
	for _, stream := range []jetstream.Stream{s.log, s.in} {
		assert.Equal(t, stream.CachedInfo().Config.MaxConsumers, natsconn.MaxConsumers, "may consumers")
	}
	js, err := nc.JetStream()
	must.Do(t, err)
	info, err := js.StreamInfo("test_log")
	must.Do(t, err)
	info.Config.Discard, info.Config.MaxMsgs = nats.DiscardOld, 1000
	must.Get(js.UpdateStream(&info.Config))(t)
	_, err = Open(context.Background(), nc, testOptions())
	assert.True(t, err != nil && strings.Contains(err.Error(), "max_msgs is 1000") &&
		strings.Contains(err.Error(), "discard is DiscardOld"), "a stream that drops messages: %v", err)
	assert.Fails(Open(context.Background(), nc, Options{Prefix: "a.b"}))(t, nil, "options that cannot be")
}

// FuzzFrame: a frame is refused or decoded to what is encoded the same.
func FuzzFrame(f *testing.F) {
	for _, one := range newFrames(7, []byte(strings.Repeat("record", 100)), 20) {
		f.Add(one.append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		one, err := decodeFrame(b)
		if err != nil {
			assert.True(t, errors.Is(err, storage.ErrRecord) || errors.Is(err, storage.ErrNewer), "%v", err)
			return
		}
		again, err := decodeFrame(one.append(nil))
		assert.True(t, err == nil && again.sameRecord(&one) && again.part == one.part &&
			string(again.data) == string(one.data), "%+v, %v, want %+v", again, err, one)
		var a assembler
		_, _ = a.add(&one)
	})
}
