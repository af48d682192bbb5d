package journal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/cluster/journal/records"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

func someTime() time.Time { return time.Unix(1_790_000_000, 0) }

func parse(t testing.TB, text string) weburl.URL {
	t.Helper()
	return must.Get(parseURL(text))(t)
}

func parseURL(text string) (weburl.URL, error) { return weburl.Parse(text) }

func openStore(t testing.TB, dir string) *storage.Store {
	t.Helper()
	return must.Get(storage.Open(dir, storage.Options{NoSync: true, MapBytes: 1 << 24}))(t)
}

// addURL commits one URL to a store and its log.
func addURL(t testing.TB, s *storage.Store, log storage.Log, text string) {
	t.Helper()
	u := parse(t, text)
	b := storage.Batch{Found: []storage.Found{{URL: u, Fingerprint: s.Fingerprint(u), At: someTime()}},
		Marks: map[string][]byte{storage.MarkLedger: storage.EncodeOffset(9), "paused": []byte(text)}}
	for deadline := time.Now().Add(patience); ; {
		_, err := s.CommitTo(log, &b)
		if err == nil {
			return
		}
		must.True(t, errors.Is(err, storage.ErrLogDown) && !time.Now().After(deadline), "%v", err)
	}
}

func position(t testing.TB, s *storage.Store) storage.LogPosition {
	t.Helper()
	return must.Get(s.LogPosition())(t)
}

// into replays records into a store, one by one.
func into(s *storage.Store) func(uint64, []byte) error {
	return func(sequence uint64, record []byte) error {
		return s.Replay(records.Codec{}, storage.LogRecord{Sequence: sequence, Data: record})
	}
}

// contents is what a store has: URLs and marks.
func contents(t testing.TB, s *storage.Store) (all []string) {
	t.Helper()
	must.Do(t, s.Hosts(func(h *storage.Host) error {
		next := uint32(0)
		for {
			var err error
			before := next
			if next, err = s.URLs(h.ID, next, 100, func(head storage.Head) {
				all = append(all, fmt.Sprintf("%s %d %+v", h.Name, head.Ordinal, head))
			}); err != nil || next == before {
				return err
			}
		}
	}))
	marks := must.Get(s.Marks("paused"))(t)
	return append(all, fmt.Sprintf("%q", marks))
}

// TestSnapshot: a database made of a snapshot and the log behind it is that of the former owner. The
// log before it is gone, and older snapshots.
func TestSnapshot(t *testing.T) {
	s := start(t)
	ctx := context.Background()
	shard := s.claim(t, 3)
	dir := t.TempDir()
	owner := openStore(t, dir)
	defer owner.Close()
	if _, restored, err := shard.Restore(ctx, t.TempDir()); restored || err != nil {
		t.Errorf("a shard without a snapshot: %t, %v", restored, err)
	}
	mustAppend(t, s.claim(t, 2), 1, []byte("another shard"))
	for i := range 20 {
		addURL(t, owner, shard, fmt.Sprintf("https://a%d.example/%d", i%3, i))
		if i == 5 || i == 12 {
			at := position(t, owner)
			must.Do(t, shard.WriteSnapshot(ctx, dir, at, 0, owner.Backup))
			n, err := s.last(ctx, s.subject("log", 3))
			assert.True(t, err == nil && n == nil, "behind the snapshot the log has message %v, %v", n, err)
			if all, err := shard.list(ctx); err != nil || len(all) != 1 || all[0].At != at {
				t.Errorf("snapshots %+v, %v", all, err)
			}
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("the directory has %v, %v", left, err)
	}
	assert.Slice(t, replayed(t, s.claim(t, 2), storage.LogPosition{}), []string{"another shard"}, "the other shard")
	taker := s.claim(t, 3)
	empty := openStore(t, t.TempDir())
	defer empty.Close()
	assert.Is(t, taker.Replay(storage.LogPosition{}, into(empty)), storage.ErrGap, "the log without the snapshot")
	to := t.TempDir()
	at, restored, err := taker.Restore(ctx, to)
	must.True(t, err == nil && restored && at.Number == 13, "restored %t up to %+v, %v", restored, at, err)
	view := openStore(t, to)
	defer view.Close()
	if mark, err := view.Mark(storage.MarkLedger); err != nil || mark != nil {
		t.Errorf("the other node's start ledger is known: %x, %v", mark, err)
	}
	must.Do(t, taker.Replay(position(t, view), into(view)))
	got, want := contents(t, view), contents(t, owner)
	if !slices.Equal(got, want) || position(t, view) != position(t, owner) {
		t.Errorf("the database has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	addURL(t, view, taker, "https://b.example/")
}

// TestSnapshotsDue: a snapshot is due of each shard whose log is larger than its newest one, and than the least, the
// most overdue first. A snapshot that cannot be read is no snapshot.
func TestSnapshotsDue(t *testing.T) {
	s := start(t)
	ctx := context.Background()
	s.o.SnapshotAbove = 1000
	for shard, snapshot := range []int64{0: -1, 1: -1, 2: 1 << 20, 3: 5} {
		log := s.claim(t, shard)
		for number := range map[int]uint64{0: 20, 1: 1, 2: 40, 3: 40}[shard] {
			mustAppend(t, log, number+1, bytes.Repeat([]byte("x"), 100))
		}
		if snapshot >= 0 {
			x := &Snapshot{At: storage.LogPosition{Number: 1}, Size: snapshot, sum: strings.Repeat("0", 64)}
			must.Do(t, s.putSnapshot(ctx, shard, strings.NewReader("x"), x))
		}
	}
	_, err := s.snapshots.PutString(ctx, "0.00000000000000000007", "no metadata")
	due, dueErr := s.SnapshotsDue(ctx)
	assert.True(t, slices.Equal(due, []int{3, 0}) && dueErr == nil && err == nil, "due %v, %v, %v", due, dueErr, err)
}

// TestLostLog: a view that has more than its log is found, unless a snapshot has that too. So are a log that
// was made again, shorter or longer, and a snapshot of another log.
func TestLostLog(t *testing.T) {
	s, other := start(t), start(t)
	ctx := context.Background()
	dir := t.TempDir()
	owner := openStore(t, dir)
	defer owner.Close()
	shard := s.claim(t, 0)
	addURL(t, owner, shard, "https://a.example/1")
	addURL(t, owner, shard, "https://a.example/2")
	at := position(t, owner)
	assert.NoError(t, s.claim(t, 0).Replay(at, discard), "nothing is lost")
	assert.Is(t, other.claim(t, 0).Replay(at, discard), storage.ErrAhead, "a log that is shorter")
	for n := range uint64(2 * at.Sequence) {
		mustAppend(t, other.claim(t, int(n)%2), n+1, []byte("another history"))
	}
	assert.Is(t, other.claim(t, 0).Replay(at, discard), storage.ErrAhead, "a log that is longer")
	must.Do(t, s.log.Purge(ctx, jetstream.WithPurgeSubject(s.subject("log", 0))))
	assert.Is(t, s.claim(t, 0).Replay(at, discard), storage.ErrAhead, "a log without its end")
	must.Do(t, shard.WriteSnapshot(ctx, dir, at, 0, owner.Backup))
	assert.NoError(t, s.claim(t, 0).Replay(at, discard), "a snapshot has what the log has")
	s.made = s.made.Add(time.Nanosecond)
	_, _, err := s.claim(t, 0).Restore(ctx, t.TempDir())
	assert.True(t, errors.Is(err, storage.ErrAhead), "a snapshot of another log: %v", err)
	assert.Is(t, s.claim(t, 0).Replay(at, discard), storage.ErrAhead, "a snapshot of another log has what this one has")
}

// TestStaleView: a view that lacks records is found when the log has none of them any more, since a snapshot has
// them: that of a former owner of the shard, also one that has never committed.
func TestStaleView(t *testing.T) {
	s := start(t)
	dir := t.TempDir()
	owner := openStore(t, dir)
	defer owner.Close()
	shard := s.claim(t, 0)
	addURL(t, owner, shard, "https://a.example/1")
	before := position(t, owner)
	addURL(t, owner, shard, "https://a.example/2")
	at := position(t, owner)
	must.Do(t, shard.WriteSnapshot(context.Background(), dir, at, 0, owner.Backup))
	for _, stale := range []storage.LogPosition{{}, before} {
		assert.Is(t, s.claim(t, 0).Replay(stale, discard), storage.ErrGap, "a view up to record", stale.Number,
			"and a snapshot up to record", at.Number)
	}
	assert.NoError(t, s.claim(t, 0).Replay(at, discard), "a view up to record", at.Number)
}

// slowDisk is a writer that waits at its first write, for longer than the library takes for an answer.
type slowDisk struct {
	bytes.Buffer
	waited bool
}

func (w *slowDisk) Write(b []byte) (int, error) {
	if !w.waited {
		w.waited = true
		time.Sleep(5200 * time.Millisecond)
	}
	return w.Buffer.Write(b)
}

// fullDisk is a writer that has no room.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestFetch: a snapshot may take longer than an answer of a server does. An error of the disk is no error of the
// log, and the end of the run ends it.
func TestFetch(t *testing.T) {
	s := start(t)
	shard := s.claim(t, 0)
	data := make([]byte, 3<<20)
	for i := range data {
		data[i] = byte(rand.Uint32())
	}
	sum := sha256.Sum256(data)
	x := &Snapshot{Name: snapshotName(0, 1), At: FirstPosition(), Size: int64(len(data)),
		sum: hex.EncodeToString(sum[:])}
	must.Do(t, s.putSnapshot(t.Context(), 0, bytes.NewReader(data), x))
	slow := new(slowDisk)
	if err := shard.fetch(t.Context(), slow, x); err != nil || !bytes.Equal(slow.Bytes(), data) {
		t.Errorf("%d of %d bytes: %v", slow.Len(), len(data), err)
	}
	err := shard.fetch(t.Context(), fullDisk{}, x)
	assert.True(t, errors.Is(err, syscall.ENOSPC) && !errors.Is(err, storage.ErrLogDown), "a disk without room: %v",
		err)
	ended, end := context.WithCancel(t.Context())
	end()
	assert.Is(t, shard.fetch(ended, io.Discard, x), context.Canceled, "a run that has ended")
}

// TestSnapshotBrokenOff: a snapshot ends with its run, also while the database is being copied.
func TestSnapshotBrokenOff(t *testing.T) {
	shard := start(t).claim(t, 0)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	dir, written := t.TempDir(), 0
	err := shard.WriteSnapshot(ctx, dir, FirstPosition(), 0, func(begin func(int64) (io.Writer, error)) (int64, error) {
		w, err := begin(100)
		for ; err == nil && written < 100; written++ {
			end()
			_, err = w.Write([]byte{0})
		}
		files, _ := os.ReadDir(dir)
		assert.True(t, len(files) == 0, "a kill would leave %v", files)
		return 100, err
	})
	assert.True(t, errors.Is(err, context.Canceled) && !errors.Is(err, storage.ErrLogDown) && written <= 1,
		"%d bytes were copied after the end: %v", written, err)
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("the directory has %v, %v", left, err)
	}
}

// TestBadSnapshots are refused, and leave the directory as it is.
func TestBadSnapshots(t *testing.T) {
	s := start(t)
	ctx := context.Background()
	shard := s.claim(t, 0)
	owner := openStore(t, t.TempDir())
	defer owner.Close()
	addURL(t, owner, shard, "https://a.example/")
	var database bytes.Buffer
	must.Get(owner.Backup(func(int64) (io.Writer, error) { return &database, nil }))(t)
	write := func(change func(map[string]string), data []byte) {
		t.Helper()
		must.Do(t, shard.WriteSnapshot(ctx, t.TempDir(), storage.LogPosition{Number: 1, Sequence: 1}, 0,
			func(begin func(int64) (io.Writer, error)) (int64, error) {
				w, err := begin(1)
				if err == nil {
					_, err = w.Write(data)
				}
				return int64(len(data)), err
			}))
		info := must.Get(s.snapshots.GetInfo(ctx, snapshotName(shard.n, 1)))(t)
		change(info.Metadata)
		must.Do(t, s.snapshots.UpdateMeta(ctx, info.Name, info.ObjectMeta))
	}
	for _, c := range []struct {
		what   string
		change func(map[string]string)
		data   []byte
		want   error
	}{
		{"a newer version", func(m map[string]string) { m[metaVersion] = "2" }, database.Bytes(), storage.ErrNewer},
		{"no version", func(m map[string]string) { delete(m, metaVersion) }, database.Bytes(), storage.ErrRecord},
		{"another sum", func(m map[string]string) { m[metaSHA256] = strings.Repeat("0", 64) }, database.Bytes(),
			storage.ErrRecord},
		{"another length", func(m map[string]string) { m[metaSize] = "10" }, database.Bytes(), storage.ErrRecord},
		{"a later position", func(m map[string]string) { m[metaNumber] = "9" }, database.Bytes(), storage.ErrRecord},
		{"no database", func(map[string]string) {}, []byte("no database"), storage.ErrNotDatabase},
	} {
		write(c.change, c.data)
		dir := t.TempDir()
		_, restored, err := shard.Restore(ctx, dir)
		assert.True(t, !restored && errors.Is(err, c.want), "%s: restored %t, %v", c.what, restored, err)
		if c.what == "a later position" {
			continue // that is seen when the database is at its place
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
			t.Errorf("%s: the directory has %v, %v", c.what, left, err)
		}
	}
	assert.True(t, shard.WriteSnapshot(ctx, t.TempDir(), storage.LogPosition{}, 0, owner.Backup) != nil,
		"a snapshot of a database without a log")
}

// TestIncoming: URLs for other shards arrive with all that they have, once, in their order, and can be
// read from any place on.
func TestIncoming(t *testing.T) {
	s := start(t)
	from := s.claim(t, 0)
	var all []storage.Discovery
	for i := range 40 {
		u := parse(t, fmt.Sprintf("https://host%d.example/%d", i%9, i))
		d := storage.Discovery{Found: storage.Found{URL: u, Depth: uint16(i), Redirects: uint8(i % 3),
			Priority: int8(i - 20),
			Seed:     i%7 == 0, At: someTime(), Frequency: storage.Frequency(i % 8), Listed: i%2 == 0}}
		if i%3 > 0 {
			d.Via = fmt.Sprintf("https://page.example/%d", i/10)
		}
		all = append(all, d)
	}
	metadata := must.Get(storage.Metadata{"key": {strings.Repeat("v", 16000)}}.Encode())(t)
	for i := range 30 { // more than one message
		all = append(all, storage.Discovery{Found: storage.Found{
			URL: parse(t, fmt.Sprintf("https://host1.example/large/%d", i)), At: someTime(), Metadata: metadata}})
	}
	for range 3 { // an answer was lost
		must.Do(t, from.Publish(1, all))
	}
	must.Do(t, from.Publish(2, all[:1]))
	got, ends := make(map[string]int), errors.New("enough")
	for n := range s.o.Shards {
		shard := s.claim(t, n)
		var want []storage.Discovery
		for _, d := range append(slices.Clone(all), all[0]) {
			if shard.Owns(d.Found.URL.Host()) {
				want = append(want, d)
			}
		}
		if len(want) == 0 {
			continue
		}
		var list []storage.Discovery
		var sequences []uint64
		err := shard.Incoming(context.Background(), 0, func(sequence uint64, part []storage.Discovery) error {
			list, sequences = append(list, part...), append(sequences, sequence)
			if len(list) >= len(want) {
				return ends
			}
			return nil
		})
		must.True(t, errors.Is(err, ends) && fmt.Sprint(list) == fmt.Sprint(want), "shard %d: %v\n%v, want\n%v", n, err,
			list, want)
		got[fmt.Sprint(n)] = len(list)
		if len(sequences) < 2 {
			continue
		}
		first := sequences[1]
		err = shard.Incoming(context.Background(), sequences[0], func(sequence uint64, _ []storage.Discovery) error {
			if sequence != first {
				t.Errorf("behind %d comes %d, want %d", sequences[0], sequence, first)
			}
			return ends
		})
		assert.Is(t, err, ends)
		before := count(t, s.in)
		if err := shard.forgetIncoming(context.Background(), sequences[0]); err != nil || count(t, s.in) != before-1 {
			t.Errorf("%d messages of %d are left, %v", count(t, s.in), before, err)
		}
	}
	assert.AtLeast(t, len(got), 2, "URLs by shard", got)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	assert.Is(t, from.Incoming(ctx, 0, nil), context.Canceled, "after the end")
}

// FuzzDiscoveries: a message with URLs is refused, or decoded to what is encoded the same.
func FuzzDiscoveries(f *testing.F) {
	b := must.Get(appendDiscoveries(nil, 7, []storage.Discovery{
		{Found: storage.Found{URL: parse(f, "https://a.example/1"), Depth: 3, At: someTime()},
			Via: "https://b.example/"},
		{Found: storage.Found{URL: parse(f, "https://a.example/2"), Stripped: "/3", At: someTime()}},
	}))(f)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		scope, all, err := decodeDiscoveries(b)
		if err != nil {
			return
		}
		encoded := must.Get(appendDiscoveries(nil, scope, all))(t)
		if by, again, err := decodeDiscoveries(encoded); err != nil || by != scope ||
			fmt.Sprint(again) != fmt.Sprint(all) {
			t.Errorf("%v, %v, want %v", again, err, all)
		}
	})
}

// TestPageInLog: a fetched page with ten links takes at most 700 bytes of log.
func TestPageInLog(t *testing.T) {
	s := openStore(t, t.TempDir())
	defer s.Close()
	rng := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("news archive products 2026 articles science how-to the guide review")
	word := func() string { return words[rng.IntN(len(words))] }
	const hosts, pages = 10, 5 // a host, in a batch
	batch := func(n int) *storage.Batch {
		b := &storage.Batch{Marks: map[string][]byte{storage.MarkLedger: storage.EncodeOffset(1 << 40),
			"output": []byte(strings.Repeat(`{"file":"pages-20261122-000123.jsonl.gz","bytes":123456789},`, 4))}}
		for host := range hosts {
			id := storage.HostID(host + 1)
			for page := range pages {
				ordinal := uint32(n*pages + page)
				for range 10 {
					u := parse(t,
						fmt.Sprintf("https://www.host%d.example/%s/%s/%s-%s-%s-%06d.html", host, word(), word(), word(),
							word(), word(), rng.IntN(1e6)))
					b.Found = append(b.Found,
						storage.Found{URL: u, Fingerprint: s.Fingerprint(u), Depth: 3, At: someTime(),
							ViaHost: id, ViaOrdinal: ordinal})
				}
				if n == 0 {
					continue
				}
				var sum [32]byte
				for i := range sum {
					sum[i] = byte(rng.Uint32())
				}
				digest := binary.BigEndian.Uint64(sum[:])
				polite := make([]byte, 40)
				binary.BigEndian.PutUint64(polite, rng.Uint64())
				b.Done = append(b.Done,
					storage.Done{Host: id, Ordinal: ordinal, Outcome: storage.Outcome{State: storage.Fetched,
						Status: 200, At: someTime(), Bytes: 20_000 + rng.Uint64N(1000), Digest: digest,
						Simhash: rng.Uint64(),
						ETag:    fmt.Sprintf(`"%x"`, rng.Uint64()), Modified: "Sun, 06 Nov 1994 08:49:37 GMT",
						Due: someTime()}})
				b.Hosts = append(b.Hosts,
					storage.HostUpdate{Host: id, Politeness: polite, Site: polite[:20], Requests: 1,
						Bytes: 20_000, Cursors: []storage.Cursor{{Next: ordinal + 1}}})
				b.Payloads = append(b.Payloads,
					storage.Payload{Host: id, Digest: digest, SHA256: sum, Ordinal: ordinal, At: someTime()})
			}
		}
		return b
	}
	log := new(measuredLog)
	for n := range 4 {
		before, plain := log.bytes, log.plain
		must.Get(s.CommitTo(log, batch(n)))(t)
		if n == 0 {
			continue
		}
		each := (log.bytes - before) / (hosts * pages)
		t.Logf("%d bytes a page in the log, %d before they are packed", each, (log.plain-plain)/(hosts*pages))
		assert.AtMost(t, each, 700, "a page takes bytes of log")
	}
}

// measuredLog counts what records take, as they are and as messages.
type measuredLog struct {
	records.Codec
	bytes, plain int
}

func (l *measuredLog) Append(number uint64, record []byte) (uint64, error) {
	l.plain += len(record)
	for _, f := range newFrames(number, record, 1<<20) {
		l.bytes += len(f.append(nil)) + 300 // headers
	}
	return number, nil
}

// pauseReader has a server deliver nothing to the only reader of a stream.
func (s *Streams) pauseReader(t testing.TB, of jetstream.Stream, stream string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	reader := ""
	for reader == "" && ctx.Err() == nil {
		for c := range of.ListConsumers(ctx).Info() {
			reader = c.Name
		}
	}
	must.Get(s.js.PauseConsumer(ctx, s.o.Prefix+stream, reader, time.Now().Add(time.Hour)))(t)
}

// TestSilentRegister: nor does such a server keep the value of a register from those who follow it.
func TestSilentRegister(t *testing.T) {
	o := testOptions()
	o.Timeout = 500 * time.Millisecond
	s := openStreams(t, connect(t, startServer(t, t.TempDir(), nil).ClientURL()), o)
	r := s.Register("desired")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	read := make(chan error, 1)
	got := make(chan uint64, 1)
	go func() { read <- r.Values(ctx, func(_ []byte, sequence uint64) { got <- sequence }) }()
	s.pauseReader(t, s.log, "_log")
	sequence := must.Get(r.Write(ctx, []byte("value"), 0))(t)
	select {
	case at := <-got:
		assert.Equal(t, at, sequence, "message was read")
	case <-ctx.Done():
		t.Error("the value was not read")
	}
	cancel()
	assert.Is(t, <-read, context.Canceled, "reading ended with")
}

// TestUnanswered: messages for other shards that no server answers do not take the room of later ones.
func TestUnanswered(t *testing.T) {
	o := testOptions()
	o.Timeout = 100 * time.Millisecond
	nc := connect(t, startServer(t, t.TempDir(), nil).ClientURL())
	s := openStreams(t, nc, o)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	must.Do(t, s.js.DeleteStream(ctx, o.Prefix+"_in"))
	sub, err := nc.SubscribeSync(o.Prefix + ".in.*") // it takes the messages, and does not answer
	must.Do(t, err)
	defer func() { _ = sub.Unsubscribe() }()
	found := []storage.Discovery{{Found: storage.Found{URL: parse(t, "https://host.example/"), At: someTime()}}}
	if err := s.claim(t, 0).Publish(1, found); !errors.Is(err, storage.ErrLogDown) {
		t.Fatalf("nobody has answered: %v", err)
	}
	select {
	case <-s.js.PublishAsyncComplete():
	case <-ctx.Done():
		t.Errorf("%d messages wait for an answer for ever", s.js.PublishAsyncPending())
	}
}

// TestSilentReader: a server that says that it has nothing to deliver, while it has, does not keep a
// message from its shard.
func TestSilentReader(t *testing.T) {
	o := testOptions()
	o.Timeout = 500 * time.Millisecond
	s := openStreams(t, connect(t, startServer(t, t.TempDir(), nil).ClientURL()), o)
	u := parse(t, "https://host.example/")
	from, shard := s.claim(t, 0), s.claim(t, int(cluster.ShardOf(u.Host(), o.Shards)))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	read, ended := make(chan error, 1), errors.New("it is there")
	go func() {
		read <- shard.Incoming(ctx, 0, func(uint64, []storage.Discovery) error { return ended })
	}()
	s.pauseReader(t, s.in, "_in")
	must.Do(t, from.Publish(1, []storage.Discovery{{Found: storage.Found{URL: u, At: someTime()}}}))
	assert.Is(t, <-read, ended, "reading ended with")
}
