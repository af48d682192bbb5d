//go:build !core

package shards

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/cluster/journal"
	"github.com/amble-crawler/amble/internal/cluster/membership"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/system"
	"github.com/amble-crawler/amble/storage"
)

// Exported is how far an export has come.
type Exported struct {
	Shards, Of int
	InTransit  int              // URLs that were on their way to their shard
	OptOuts    int              // that commands have recorded
	Settings   json.RawMessage  // what commands have changed of the settings of all nodes; empty: nothing
	Counters   storage.Counters // of the whole, at the end
}

// Errors of Export.
var (
	// ErrOwned says that nodes own shards, or are about to.
	ErrOwned = errors.New("the cluster is in service")
	// ErrNotEmpty says that something is in the directory.
	ErrNotEmpty = errors.New("the directory is not empty: name one that does not exist")
)

// Export makes the crawl of a cluster whose shards nobody owns that of one machine: it joins the databases of
// all shards, each from its newest snapshot and the log behind it, in the directory to, which does not exist or
// is empty. Until the end no node can join, and an Export that was killed is done again from the beginning.
// What it has made is in a directory next to it until all of it is there and durable. The cluster stays as it
// is. The options and seeds are those of the nodes. report is called after each shard.
//
// The errors are ErrOwned, ErrNotEmpty, ErrSweeping, those of membership.ReserveExport, or of reading and
// writing.
func Export(ctx context.Context, nc *nats.Conn, js jetstream.JetStream, o Options, to string,
	report func(Exported)) (done Exported, err error) {
	if err := o.Validate(); err != nil {
		return done, err
	}
	to = filepath.Clean(to)
	if entries, err := os.ReadDir(to); err == nil && len(entries) > 0 {
		return done, fmt.Errorf("%s: %w", to, ErrNotEmpty)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return done, err
	}
	x := exporting{o: &o, js: js, to: to, partial: to + ".export.partial"}
	if _, err := x.survey(ctx); err != nil { // nothing is written while the cluster is in service
		return done, err
	}
	limited, cancel := context.WithTimeout(ctx, openTimeouts*o.Timeout)
	defer cancel()
	x.reservation, err = membership.ReserveExport(limited, js, membership.Options{
		Cluster: o.Cluster, Names: o.Names, Replicas: o.Replicas, Settings: o.Agreed,
	})
	if err != nil {
		return done, err
	}
	if x.streams, err = journal.Open(limited, nc, o.journal()); err == nil {
		err = x.run(ctx, report)
	}
	release := x.bounded(context.WithoutCancel(ctx), x.reservation.Release)
	if !errors.Is(err, release) { // another export that has taken over is the reason of both
		err = errors.Join(err, release)
	}
	return x.done, err
}

// exporting is an export under way.
type exporting struct {
	o           *Options
	js          jetstream.JetStream
	to, partial string
	reservation *membership.Reservation
	streams     *journal.Streams
	done        Exported
	union       union
	incoming    []uint64 // by shard: up to which its database has the URLs of others
}

// bounded calls a step that waits for the servers.
func (x *exporting) bounded(ctx context.Context, step func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, x.o.Timeout)
	defer cancel()
	return step(ctx)
}

// hold returns nil if no other export has taken over.
func (x *exporting) hold(ctx context.Context) error { return x.bounded(ctx, x.reservation.Hold) }

// survey reads who owns what. The error is ErrOwned if that is not nobody.
func (x *exporting) survey(ctx context.Context) (s *membership.Survey, err error) {
	err = x.bounded(ctx, func(ctx context.Context) error {
		s, err = membership.ReadSurvey(ctx, x.js, x.o.Names)
		return err
	})
	if err != nil {
		return nil, err
	}
	return s, checkOwners(s)
}

// checkOwners returns ErrOwned, with who owns what, if somebody owns a shard or is about to take one.
func checkOwners(s *membership.Survey) error {
	owned := make(map[string][]string)
	var nodes, all []string
	for n, o := range s.Shards {
		if o.Node != "" {
			if owned[o.Node] == nil {
				nodes = append(nodes, o.Node)
			}
			owned[o.Node] = append(owned[o.Node], fmt.Sprint(n))
		}
	}
	for _, node := range nodes {
		all = append(all, fmt.Sprintf("node %s owns %s", node, strings.Join(owned[node], ", ")))
	}
	for _, m := range s.Members {
		if takes := m.State == membership.Trusted || m.State == membership.Doubted; takes && owned[m.Node] == nil {
			all = append(all, fmt.Sprintf("node %s runs and takes shards", m.Node))
		}
	}
	if all == nil {
		return nil
	}
	return fmt.Errorf(
		"%w: %s. Stop these nodes, or run amble cluster drain for each. What a node owns that has died is "+
			"given up when it, or another one, is started and drained", ErrOwned, strings.Join(all, "; "))
}

// run exports, and removes what it has made if it fails.
func (x *exporting) run(ctx context.Context, report func(Exported)) (err error) {
	s, err := x.survey(ctx)
	if err != nil {
		return err
	}
	desired, sequence, err := x.desired(ctx)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(x.partial); err != nil { // of an export that was killed
		return err
	}
	defer func() {
		if err != nil && x.hold(context.WithoutCancel(ctx)) == nil { // else it may be another export's
			err = errors.Join(err, os.RemoveAll(x.partial))
		}
	}()
	if err := x.merge(ctx, s, desired, report); err != nil {
		return err
	}
	if err := x.complete(ctx); err != nil {
		return err
	}
	if err := x.unchanged(ctx, s, sequence); err != nil {
		return err
	}
	if err := x.hold(ctx); err != nil {
		return err
	}
	return x.publish()
}

// desired reads what commands for the whole crawl have recorded.
func (x *exporting) desired(ctx context.Context) (d Desired, sequence uint64, err error) {
	var data []byte
	if data, sequence, err = x.streams.Register("desired").Read(ctx); err == nil {
		d, err = decodeDesired(data)
	}
	if err != nil {
		return d, 0, fmt.Errorf("read the desired state of the cluster: %w", err)
	}
	if n := len(d.Deletions); n > 0 {
		return d, 0,
			fmt.Errorf("%d deletions of URLs wait for shards that nobody crawls: start the nodes, which carry them "+
				"out, and stop them again", n)
	}
	x.done.Settings, x.done.OptOuts = d.Settings, len(d.OptOuts)
	return d, sequence, nil
}

// merge makes the database of the whole of those of the shards.
func (x *exporting) merge(ctx context.Context, s *membership.Survey, d Desired, report func(Exported)) (err error) {
	x.done.Of = len(s.Shards)
	defer func() { err = errors.Join(err, x.union.close()) }()
	for n, owner := range s.Shards {
		if err := x.shard(ctx, n, owner.Epoch); err != nil {
			return fmt.Errorf("export shard %d: %w", n, err)
		}
		x.done.Shards++
		report(x.done)
	}
	return x.union.write(ctx, x.options(), d.Paused, d.OptOuts)
}

// options are those of the crawl of one machine.
func (x *exporting) options() crawl.Options {
	o := x.o.Crawl
	o.DataDir = x.partial
	return o
}

// shardsDir is the name of the directory with the databases of the shards.
const shardsDir = "shards"

// shard adds the database of a shard, given its newest epoch: the release, behind which its log has nothing.
func (x *exporting) shard(ctx context.Context, n int, epoch uint64) error {
	if err := x.hold(ctx); err != nil {
		return err
	}
	dir := filepath.Join(x.partial, shardsDir, fmt.Sprintf("%05d", n))
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	shard := x.streams.Shard(ctx, n, epoch)
	if _, _, err := shard.Restore(ctx, dir); err != nil {
		return err
	}
	var log crawl.Journal
	if epoch > 0 {
		log = shard
	}
	owns := func(host string) bool { return int(cluster.ShardOf(host, x.o.Cluster.Shards)) == n }
	incoming, err := x.union.add(ctx, dir, log, owns)
	x.incoming = append(x.incoming, incoming)
	return err
}

// complete adds what the shards have published for each other and not committed.
func (x *exporting) complete(ctx context.Context) (err error) {
	if err := os.RemoveAll(filepath.Join(x.partial, shardsDir)); err != nil {
		return err
	}
	var changes []storage.SeedRow
	err = x.streams.AllSeeds(ctx, func(_ uint64, more []storage.SeedRow, unreadable error) {
		if unreadable == nil { // the nodes leave the others out too, and say so
			changes = append(changes, more...)
		}
	})
	if err != nil {
		return err
	}
	whole, err := crawl.OpenMerged(x.options(), changes)
	if err != nil {
		return err
	}
	defer func() {
		x.done.Counters = whole.Counters()
		err = errors.Join(err, whole.Close())
	}()
	mark, err := x.streams.Mark(ctx)
	for n := 0; err == nil && n < len(x.incoming); n++ {
		err = x.streams.Shard(ctx, n, 0).MessagesTo(ctx, x.incoming[n], mark, func(m *journal.Message) error {
			x.done.InTransit += len(m.URLs)
			return whole.Add(m.URLs)
		})
	}
	return err
}

// unchanged returns nil if nobody has owned a shard since, and no command for the whole crawl was given: a node
// that is drained may be undrained, and takes commands.
func (x *exporting) unchanged(ctx context.Context, before *membership.Survey, sequence uint64) error {
	now, err := x.survey(ctx)
	if err != nil {
		return err
	}
	for n := range now.Shards {
		if now.Shards[n].Epoch != before.Shards[n].Epoch {
			return fmt.Errorf(
				"%w: somebody has owned shard %d since the export began: stop all nodes, and export again",
				ErrOwned, n)
		}
	}
	_, last, err := x.desired(ctx)
	if err == nil && last != sequence {
		err = errors.New("a command for the whole crawl was given since the export began: export again")
	}
	return err
}

// publish puts what was made at its place, durably.
func (x *exporting) publish() error {
	err := system.SyncDir(x.partial)
	if err == nil {
		err = os.Remove(x.to) // it is empty
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = os.Rename(x.partial, x.to)
	}
	if err == nil {
		err = system.SyncDir(filepath.Dir(x.to))
	}
	return err
}
