//go:build !core

package crawl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/crashes"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/lists"
	"github.com/amble-crawler/amble/internal/engine/marks"
	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/storage"
)

// Journal is the log of a shard of a cluster. The engine's database is a view of it, so that another
// node can make the same database of the log. internal/cluster/journal implements it.
type Journal interface {
	storage.Log
	// Replay gives apply the records behind a position, in their order, up to the last one that there
	// can be. apply may keep them.
	Replay(from storage.LogPosition, apply func(sequence uint64, record []byte) error) error
	// Owns reports whether a host belongs to the shard.
	Owns(host string) bool
	// Publish makes URLs durable that belong to other shards. It takes the same URLs under the same
	// number once.
	Publish(number uint64, urls []storage.Discovery) error
	// Incoming gives take the URLs that other shards have published for this one, behind a sequence,
	// until the context ends or take fails.
	Incoming(ctx context.Context, after uint64, take func(sequence uint64, urls []storage.Discovery) error) error
}

// loggedView is what the engine needs of a store that follows a log.
type loggedView interface {
	store
	CommitTo(storage.Log, *storage.Batch) (storage.Result, error)
	LogPosition() (storage.LogPosition, error)
	Replay(storage.Codec, ...storage.LogRecord) error
}

// loggedStore is a store whose commits go through a journal. Whoever commits owns it.
type loggedStore struct {
	loggedView
	journal Journal
	cluster Cluster // nil: other shards have nothing but their logs
	last    routed  // the batch that is being committed
}

// routed is a batch, divided into what this shard keeps and the URLs of others.
type routed struct {
	batch     *storage.Batch // nil: there is none
	own       *storage.Batch // the batch itself if it has no URLs of others
	indexes   []int          // of own.Found in batch.Found; nil: own is the batch
	others    []storage.Discovery
	published bool
}

// Records are replayed in groups, each in one transaction, that end at these bounds.
const (
	replayRecords = 100
	replayBytes   = 2 << 20
)

// replay brings a store up to the end of its log.
func replay(s loggedView, j Journal) error {
	from, err := s.LogPosition()
	if err != nil {
		return err
	}
	var group []storage.LogRecord
	bytes := 0
	err = j.Replay(from, func(sequence uint64, record []byte) error {
		group, bytes = append(group, storage.LogRecord{Sequence: sequence, Data: record}), bytes+len(record)
		if len(group) < replayRecords && bytes < replayBytes {
			return nil
		}
		err := replayGroup(s, j, group)
		group, bytes = group[:0], 0
		return err
	})
	if err != nil {
		return err
	}
	return replayGroup(s, j, group)
}

// replayGroup applies records in one transaction. If that fails, those before the one that fails are applied, and
// the error is a MessageError.
func replayGroup(s loggedView, c storage.Codec, group []storage.LogRecord) error {
	if s.Replay(c, group...) == nil {
		return nil
	}
	for _, r := range group {
		if err := s.Replay(c, r); err != nil {
			return &storage.MessageError{Kind: "log", Sequence: r.Sequence, Err: err}
		}
	}
	return nil
}

// ErrPanic says that the engine of a shard has failed by a panic. Nothing is committed after it.
var ErrPanic = errors.New(
	"the engine of the shard has panicked, which is a bug: please report it with the log of the node")

// protect calls f, and returns a panic as an error if the engine is that of a shard: the other shards of the node
// go on. On one machine the process ends, and the next one begins with what is committed.
func protect(o *Options, log *slog.Logger, f func() error) (err error) {
	if o.Journal == nil {
		return f()
	}
	defer func() {
		if cause := recover(); cause != nil {
			stack := debug.Stack()
			log.Error(ErrPanic.Error(), "panic", fmt.Sprint(cause), "stack",
				string(stack[:min(len(stack), crashes.MaxStack)]))
			err = fmt.Errorf("%w: %v", ErrPanic, cause)
		}
	}()
	return f()
}

// openLogged brings a store up to the end of its log. It closes nothing.
func openLogged(s loggedView, o *Options) (*loggedStore, error) {
	if err := replay(s, o.Journal); err != nil {
		return nil, fmt.Errorf("bring the database up to its log: %w", err)
	}
	return &loggedStore{loggedView: s, journal: o.Journal, cluster: o.Cluster}, nil
}

// Commit publishes the scope seeds and the URLs of other shards, appends the batch to the log, and
// commits it to the database. After an error all of it can be tried again with the same batch.
func (s *loggedStore) Commit(b *storage.Batch) (storage.Result, error) {
	if s.last.batch != b {
		r, err := s.route(b)
		if err != nil {
			return storage.Result{}, err
		}
		s.last = r
	}
	r := &s.last
	if !r.published {
		if err := s.publish(r); err != nil {
			return storage.Result{}, err
		}
		r.published = true
	}
	result, err := s.CommitTo(s.journal, r.own)
	if err != nil {
		return result, err
	}
	if r.own != b && b.InsertResults != nil {
		for i := range b.InsertResults {
			b.InsertResults[i] = storage.InsertRouted
		}
		for i, at := range r.indexes {
			b.InsertResults[at] = r.own.InsertResults[i]
		}
	}
	s.last = routed{}
	return result, nil
}

// widen makes the seeds of a batch known to other shards.
func (s *loggedStore) widen(changes []storage.SeedRow) error {
	if s.cluster == nil || len(changes) == 0 {
		return nil
	}
	return s.cluster.PublishSeeds(changes)
}

// publish makes known what other shards need of a batch: first the scope that its URLs were judged by.
func (s *loggedStore) publish(r *routed) error {
	if err := s.widen(r.batch.Seeds); err != nil || len(r.others) == 0 {
		return err
	}
	at, err := s.LogPosition()
	if err != nil {
		return err
	}
	return s.journal.Publish(at.Number+1, r.others)
}

// route divides a batch.
func (s *loggedStore) route(b *storage.Batch) (routed, error) {
	r := routed{batch: b, own: b}
	var host string // of the discovery before
	owns := true
	for i := range b.Found {
		f := &b.Found[i]
		if h := f.URL.Host(); h != host {
			host, owns = h, s.journal.Owns(h)
		}
		if owns {
			if r.own != b {
				r.own.Found, r.indexes = append(r.own.Found, *f), append(r.indexes, i)
			}
			continue
		}
		if r.own == b {
			own := *b
			own.Found = append([]storage.Found(nil), b.Found[:i]...)
			for n := range i {
				r.indexes = append(r.indexes, n)
			}
			r.own = &own
		}
		via, err := s.via(f)
		if err != nil {
			return routed{}, err
		}
		r.others = append(r.others, storage.Discovery{Found: *f, Via: via})
	}
	if r.own != b && b.InsertResults != nil {
		r.own.InsertResults = make([]storage.InsertResult, len(r.own.Found))
	}
	return r, nil
}

// via returns the URL of the page that a discovery was found on.
func (s *loggedStore) via(f *storage.Found) (string, error) {
	if f.ViaHost == storage.NoHost {
		return "", nil
	}
	u, err := s.URL(f.ViaHost, f.ViaOrdinal)
	if errors.Is(err, storage.ErrNotFound) {
		return "", nil
	}
	return u.String(), err
}

// incoming adds the URLs that other shards have found. It runs besides the dispatcher, and each
// message is committed with its place in their sequence.
type incoming struct {
	o       *Options
	log     *slog.Logger
	journal Journal
	after   uint64 // the sequence that is committed
	url     fingerprinter
	refresh func(context.Context) error // puts the newest scope in force
	scope   func() *frontier.Scope
	add     func(context.Context, *addition) (lists.Added, error)
	failed  func(context.Context, error) // ends the crawl
}

// retryIncoming is how long to wait before the URLs are read again after an error, and warnIncoming between two
// messages about that: a node has many shards.
const retryIncoming, warnIncoming = time.Second, time.Minute

// run reads until the context ends or the dispatcher takes no more.
func (in *incoming) run(ctx context.Context) {
	for warned := (time.Time{}); ctx.Err() == nil; {
		err := in.journal.Incoming(ctx, in.after, func(sequence uint64, urls []storage.Discovery) error {
			return protect(in.o, in.log, func() error { return in.take(ctx, sequence, urls) })
		})
		switch {
		case ctx.Err() != nil || errors.Is(err, ErrNotRunning):
			return
		case !errors.Is(err, storage.ErrLogDown):
			in.failed(ctx, fmt.Errorf("URLs of other shards: %w", err))
			return
		}
		if now := time.Now(); now.Sub(warned) >= warnIncoming {
			in.log.Warn("the URLs that other shards have found cannot be read; it is tried again", "error", err)
			warned = now
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryIncoming):
		}
	}
}

func (in *incoming) take(ctx context.Context, sequence uint64, urls []storage.Discovery) error {
	if err := in.refresh(ctx); err != nil {
		return err
	}
	a := &addition{marks: map[string][]byte{marks.Incoming: storage.EncodeOffset(sequence)}}
	for i := range urls {
		if !in.journal.Owns(urls[i].Found.URL.Host()) {
			continue
		}
		if f, ok := in.o.admitIncoming(in.scope(), in.url, &urls[i]); ok {
			a.Found = append(a.Found, f)
		}
	}
	if _, err := in.add(ctx, a); err != nil {
		return err
	}
	in.after = sequence
	return nil
}

// admitIncoming judges a URL that another shard has found, and returns it as it is stored.
func (o *Options) admitIncoming(scope *frontier.Scope, p fingerprinter,
	d *storage.Discovery) (f storage.Found, ok bool) {
	f = d.Found
	rules := o.listRules()
	_, in := rules.Admit(scope, &Addition{URL: f.URL, Depth: f.Depth}, seeds.Ref(f.From))
	if e := (storage.Entry{Priority: f.Priority}); e.IsRequisite() {
		in = scope.CheckHead(f.URL, &e) == frontier.InScope
	}
	if !in && !f.Seed {
		return f, false
	}
	f.Fingerprint = p.Fingerprint(f.URL)
	if f.Stripped != "" {
		f.Fingerprint = p.Fingerprint(f.URL.Origin().URL(f.Stripped))
	}
	return f, true
}

// newIncoming returns what reads the URLs of other shards; nil without a journal.
func (e *Engine) newIncoming(m *mailbox) (*incoming, error) {
	if e.o.Journal == nil {
		return nil, nil
	}
	encoded, err := e.store.Mark(marks.Incoming)
	if err != nil {
		return nil, err
	}
	after, err := storage.DecodeOffset(encoded)
	if err != nil {
		return nil, fmt.Errorf("mark %s: %w", marks.Incoming, err)
	}
	return &incoming{
		o: &e.o, log: e.log, journal: e.o.Journal, after: after, url: e.store, add: m.add,
		refresh: func(ctx context.Context) error { return m.call(ctx, (*dispatcher).followSeeds) },
		scope:   e.scope.Load,
		failed: func(ctx context.Context, err error) {
			_ = m.call(ctx, func(d *dispatcher) { d.fail(err) }) // else it ends anyway
		},
	}, nil
}
