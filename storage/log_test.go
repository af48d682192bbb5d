package storage

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// memoryLog is a log in memory. It fails as often as it is told to, before or after it has taken a
// record.
type memoryLog struct {
	Codec
	records [][]byte
	before  int // how many calls fail without a record
	after   int // how many fail with it
	appends int
}

// TestCodec is the codec of the logs: no file of this package can import the package that has it.
var TestCodec Codec

func newMemoryLog() *memoryLog { return &memoryLog{Codec: TestCodec} }

var errLogDown = errors.New("the log is down")

func (l *memoryLog) Append(number uint64, record []byte) (uint64, error) {
	l.appends++
	if l.before > 0 {
		l.before--
		return 0, errLogDown
	}
	if n := uint64(len(l.records)); number == n+1 {
		l.records = append(l.records, bytes.Clone(record))
	} else if number != n || !bytes.Equal(l.records[n-1], record) {
		return 0, fmt.Errorf("record %d behind %d", number, n)
	}
	if l.after > 0 {
		l.after--
		return 0, errLogDown
	}
	return 7 * number, nil
}

// replayInto brings a store up to the end of the log.
func (l *memoryLog) replayInto(t tester, s *Store) {
	t.Helper()
	from := position(t, s).Number
	var all []LogRecord
	for i := from; i < uint64(len(l.records)); i++ {
		all = append(all, LogRecord{7 * (i + 1), l.records[i]})
		if i%3 > 0 { // some of them together
			continue
		}
		must.Do(t, s.Replay(l, all...), "replay up to record", i+1)
		all = all[:0]
	}
	must.Do(t, s.Replay(l, all...), "replay behind record", from)
}

func position(t tester, s *Store) LogPosition {
	t.Helper()
	p, err := s.LogPosition()
	must.Do(t, err, "position in the log")
	return p
}

// export is every row of a store but the marks of its data directory, and but the place in the log.
func export(t tester, s *Store) string {
	t.Helper()
	var b strings.Builder
	must.Do(t, s.WriteRows(&b), "export")
	lines := slices.DeleteFunc(strings.SplitAfter(b.String(), "\n"), func(line string) bool {
		return strings.HasPrefix(line, fmt.Sprintf("%s %x ", bucketMark, markLog))
	})
	return strings.Join(lines, "")
}

// setKey gives a fresh store another secret.
func setKey(t tester, s *Store, key [keySize]byte) {
	t.Helper()
	s.key = key
	must.Do(t, s.db.Update(func(tx *txn) error { return tx.Bucket(bucketMeta).Put(metaKey, key[:]) }))
}

// noticeBy is an Options.Notice that nobody can foresee: it also depends on how often it was called.
func noticeBy(rng *rand.Rand) func(Noticed) (time.Time, [8]byte, bool) {
	return func(n Noticed) (due time.Time, history [8]byte, ok bool) {
		h := fnv.New64a()
		fmt.Fprintln(h, n.Host, n.URI, n.Last.State, n.At.UnixNano(), rng.Uint64())
		h.Sum(history[:0])
		return someTime.Add(time.Duration(rng.Int64N(1e15))), history, rng.IntN(2) == 0
	}
}

// logDriver commits the same batches directly and into a log, and replays that into other stores.
type logDriver struct {
	root                   string
	weaken                 func(uint64) uint64
	model                  *model
	direct, logged, replay *Store
	log                    *memoryLog
	limits                 Options
	seed                   uint64
	opened                 int
	position               uint64 // in the output
	invalid                bool   // the batch gets a discovery that the store refuses
}

func (d *logDriver) open(t tester, name string, o Options) *Store {
	o.NoSync, o.MapBytes = true, 1<<24
	s := mustOpen(t, filepath.Join(d.root, name), o)
	s.weaken = d.weaken
	return s
}

// noticed are the options of a store that notices the same as another.
func (d *logDriver) noticed() Options {
	o := d.limits
	o.Notice = noticeBy(rand.New(rand.NewPCG(d.seed, uint64(d.opened))))
	return o
}

func (d *logDriver) batch(t *rapid.T) *Batch {
	size := rapid.IntRange(0, 150).Draw(t, "size")
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	b := d.model.randomBatch(rng, size, d.direct.Fingerprint)
	for i := range b.Found {
		if f := &b.Found[i]; rng.IntN(3) == 0 {
			f.Listed, f.Modified = true, someTime.Add(time.Duration(rng.IntN(1e9)))
			f.Outcome = nil
		}
		b.Found[i].At = b.Found[i].At.Add(time.Duration(rng.IntN(1e9)))
	}
	d.invalid = rng.IntN(8) == 0
	d.position += uint64(rng.IntN(1000))
	if b.Marks == nil {
		b.Marks = make(map[string][]byte)
	}
	b.Marks[MarkLedger], b.Marks["output"] = EncodeOffset(d.position), fmt.Append(nil, d.position)
	if rng.IntN(3) == 0 {
		b.Marks["unsaid"] = []byte{}
	}
	return &b
}

// same commits one batch to both stores.
func (d *logDriver) same(t *rapid.T, b *Batch) {
	d.model.apply(b)
	if d.invalid {
		b.Found = append([]Found{{Listed: true}}, b.Found...)
	}
	mustCommit(t, d.direct, b)
	for {
		_, err := d.logged.CommitTo(d.log, b)
		if err == nil {
			return
		}
		must.True(t, errors.Is(err, ErrPending) && errors.Is(err, errLogDown), "commit to the log: %v", err)
		if _, err := d.logged.CommitTo(d.log, &Batch{Marks: map[string][]byte{"output": {1}}}); !errors.Is(err,
			ErrPending) {
			t.Fatalf("another batch while one is pending: %v", err)
		}
		if rapid.IntRange(0, 2).Draw(t, "kill") == 0 { // the process ends here
			mustClose(t, d.logged)
			d.logged = d.open(t, "logged", d.noticed())
			before := position(t, d.logged).Number
			d.log.replayInto(t, d.logged)
			if position(t, d.logged).Number > before {
				return
			}
		}
	}
}

// TestReplay: random histories of batches, committed directly, and through a log with failures and
// kills, are the same when the log is replayed into a fresh store: every row.
func TestReplay(t *testing.T) {
	tries(t, 25)
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		d := &logDriver{model: newModel(), log: newMemoryLog(), seed: rapid.Uint64().Draw(t, "notices")}
		d.weaken = weakenings()[rapid.IntRange(0, len(weakenings())-1).Draw(t, "fingerprint")]
		var err error
		d.root, err = os.MkdirTemp(dir, "")
		must.True(t, err == nil, "%v", err)
		defer os.RemoveAll(d.root)
		if rapid.Bool().Draw(t, "limits") {
			d.limits = Options{MaxHostURLs: 200, MaxQueries: 4, MaxSameDigest: 3}
		}
		d.model.limits = d.limits.limits()
		d.direct, d.logged = d.open(t, "direct", d.noticed()), d.open(t, "logged", d.noticed())
		other := Options{MaxQueries: 1, MaxSameDigest: 1, Notice: noticeBy(rand.New(rand.NewPCG(0, 0)))}
		d.replay = d.open(t, "replay", other)
		setKey(t, d.direct, d.logged.key)
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			b := d.batch(t)
			d.log.before, d.log.after = rapid.IntRange(0, 1).Draw(t, "before"), rapid.IntRange(0, 1).Draw(t, "after")
			if rapid.IntRange(0, 3).Draw(t, "down") > 0 {
				d.log.before, d.log.after = 0, 0
			}
			// The answers to Notice follow the order of its calls. A kill makes the process forget
			// them, so both stores begin at each batch.
			d.opened++
			d.direct.notice, d.logged.notice = d.noticed().Notice, d.noticed().Notice
			d.same(t, b)
			if rapid.IntRange(0, 3).Draw(t, "follow") == 0 {
				d.log.replayInto(t, d.replay)
			}
		}
		d.log.replayInto(t, d.replay)
		if len(d.log.records) == 0 { // every batch was of the data directory alone
			setKey(t, d.replay, d.logged.key)
		}
		want := export(t, d.direct)
		for name, s := range map[string]*Store{"logged": d.logged, "replay": d.replay} {
			if got := export(t, s); got != want {
				t.Fatalf("%s differs:\n%s", name, firstDifference(got, want))
			}
			checkClean(t, s)
		}
		if marks, err := d.logged.Mark("output"); err != nil || string(marks) != fmt.Sprint(d.position) {
			t.Fatalf("the data directory that wrote the log has output %q, want %d, %v", marks, d.position, err)
		}
		if mark, err := d.replay.Mark("output"); err != nil || mark != nil {
			t.Fatalf("another data directory has output %q, %v", mark, err)
		}
		for _, s := range []*Store{d.direct, d.logged, d.replay} {
			mustClose(t, s)
		}
	})
}

func firstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return "got  " + a[i] + "\nwant " + b[i]
		}
	}
	return fmt.Sprintf("%d rows, want %d", len(a), len(b))
}

// TestGap: records that are missing, or that come twice, are seen.
func TestGap(t *testing.T) {
	log := newMemoryLog()
	s := openTemp(t, Options{})
	for i := range 3 {
		b := Batch{Found: found(t, s, fmt.Sprintf("https://a.example/%d", i))}
		must.Get(s.CommitTo(log, &b))(t)
	}
	assert.Equal(t, position(t, s), (LogPosition{3, 21}), "the store is at")
	assert.Fails(s.Commit(&Batch{Ensure: []string{"b.example"}}))(t, ErrLogged, "a commit without the log")
	_, err := s.Commit(&Batch{Marks: map[string][]byte{"output": {1}}})
	assert.True(t, err == nil, "a mark of this data directory: %v", err)
	if _, err := s.CommitTo(log, &Batch{Marks: map[string][]byte{markLog: {1}}}); err == nil ||
		errors.Is(err, ErrPending) {
		t.Errorf("a batch that cannot be applied: %v", err)
	}
	assert.Equal(t, log.appends, 3, "the log has been called times")
	other := openTemp(t, Options{})
	assert.Is(t, other.Replay(log, LogRecord{14, log.records[1]}), ErrGap, "the second record first")
	for _, i := range []int{0, 0, 1, 0, 1, 2} {
		assert.NoError(t, other.Replay(log, LogRecord{uint64(7 * (i + 1)), log.records[i]}), "record", i+1)
	}
	assert.Equal(t, export(t, other), export(t, s), "the stores differ")
	full := openTemp(t, Options{})
	mustCommit(t, full, &Batch{Ensure: []string{"b.example"}})
	assert.Is(t, full.Replay(log, LogRecord{7, log.records[0]}), ErrLogged, "a log over a store that has rows")
	assert.Fails(full.CommitTo(newMemoryLog(), &Batch{Ensure: []string{"c.example"}}))(t, ErrLogged,
		"a log that begins with a store that has rows")
}

// TestFullAfterAppend: the disk is full when the log has the batch. The batch stays pending; the next
// process has it from the log.
func TestFullAfterAppend(t *testing.T) {
	log, dir := newMemoryLog(), t.TempDir()
	s := mustOpen(t, dir, Options{NoSync: true, MaxBytes: 1 << 18})
	n := 0
	var err error
	for ; err == nil; n++ {
		b := Batch{Found: found(t, s, numbered(fmt.Sprintf("h%d.example", n), 0, 40)...),
			Marks: map[string][]byte{"output": {byte(n)}}}
		if _, err = s.CommitTo(log, &b); err != nil {
			_, again := s.CommitTo(log, &b)
			assert.True(t, errors.Is(again, ErrPending) && errors.Is(again, ErrNoSpace), "once more: %v", again)
		}
	}
	must.True(t, errors.Is(err, ErrPending) && errors.Is(err, ErrMaxSize) && len(log.records) == n && log.appends == n,
		"%d records, %d calls after %d commits: %v", len(log.records), log.appends, n, err)
	assert.Fails(s.CommitTo(log, &Batch{Marks: map[string][]byte{"output": {99}}}))(t, ErrPending,
		"a mark of this data directory while a batch is pending")
	mustClose(t, s)
	s = mustOpen(t, dir, Options{NoSync: true})
	defer mustClose(t, s)
	log.replayInto(t, s)
	other := openTemp(t, Options{})
	log.replayInto(t, other)
	assert.Equal(t, export(t, s), export(t, other), "the stores differ")
	if mark, err := s.Mark("output"); err != nil || !bytes.Equal(mark, []byte{byte(n - 1)}) {
		t.Errorf("the output is at %d, want %d, %v", mark, n-1, err)
	}
}

// TestSnapshot: a copy of a store goes on in another data directory without what describes files.
func TestSnapshot(t *testing.T) {
	log := newMemoryLog()
	s := openTemp(t, Options{})
	commit := func(text string) {
		t.Helper()
		b := Batch{Found: found(t, s, text), Marks: map[string][]byte{MarkLedger: EncodeOffset(9), "paused": {1}}}
		must.Get(s.CommitTo(log, &b))(t)
	}
	commit("https://a.example/1")
	dir := t.TempDir()
	path := filepath.Join(dir, "snapshot")
	f := must.Get(os.Create(path))(t)
	must.Get(s.Backup(func(int64) (io.Writer, error) { return f, nil }))(t)
	must.Do(t, f.Close())
	commit("https://a.example/2")
	at, err := RestoreFile(path, dir)
	must.True(t, err == nil && at == (LogPosition{1, 7}), "the snapshot is at %+v, %v", at, err)
	other := mustOpen(t, dir, Options{})
	defer mustClose(t, other)
	if marks, err := other.Marks(""); err != nil || len(marks) != 2 || marks["paused"] == nil || marks[markLog] == nil {
		t.Errorf("marks %q, %v", slices.Sorted(maps.Keys(marks)), err)
	}
	log.replayInto(t, other)
	assert.Equal(t, export(t, other), export(t, s), "the stores differ")
	// In place of a database, what that one says of the start ledger is kept, and its output is not.
	old := t.TempDir()
	before := mustOpen(t, old, Options{})
	log.replayInto(t, before)
	mustCommit(t, before,
		&Batch{Marks: map[string][]byte{MarkLedger: EncodeOffset(5), MarkUncommitted: {7}, MarkOutput: {1}}})
	mustClose(t, before)
	must.Get(other.Backup(func(int64) (io.Writer, error) { return os.Create(path) }))(t)
	must.Get(RestoreFile(path, old))(t)
	after := mustOpen(t, old, Options{})
	defer mustClose(t, after)
	if marks, err := after.Marks(""); err != nil || !bytes.Equal(marks[MarkLedger], EncodeOffset(5)) ||
		!bytes.Equal(marks[MarkUncommitted], []byte{7}) || marks[MarkOutput] != nil {
		t.Errorf("marks %q, %v", marks, err)
	}
	plain := openTemp(t, Options{})
	must.Get(plain.Backup(func(int64) (io.Writer, error) { return os.Create(path) }))(t)
	assert.Fails(RestoreFile(path, t.TempDir()))(t, ErrCorrupt, "a copy of a store without a log")
}
