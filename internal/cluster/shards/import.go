//go:build !core

package shards

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/cluster/journal"
	"github.com/amble-crawler/amble/internal/cluster/membership"
	"github.com/amble-crawler/amble/storage"
)

// Imported is how far an import has come.
type Imported struct {
	Shards, Of int
	Counters   storage.Counters // of these shards
	Bytes      int64            // of their databases
}

// Import makes the crawl of one machine that of a cluster that no node has ever joined: it divides the
// database in the directory from, which no process may have open, among the shards, and stores each part as
// the first snapshot of its shard. Until all of it is there no node can join. So an Import that was
// interrupted is done again from the beginning. report is called after each shard.
//
// A part is written to a file in Options.Crawl.DataDir first: only one at a time. The errors are those of
// membership.Reserve and of opening the database, or of writing.
func Import(ctx context.Context, nc *nats.Conn, js jetstream.JetStream, o Options, from string,
	report func(Imported)) (done Imported, err error) {
	if err := o.Validate(); err != nil {
		return done, err
	}
	source := o.Crawl
	source.DataDir = from
	of := func(host string) int { return int(cluster.ShardOf(host, o.Cluster.Shards)) }
	divided, err := openDivision(ctx, source, o.Cluster.Shards, of)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, divided.close()) }()
	if err := os.MkdirAll(o.Crawl.DataDir, 0o750); err != nil {
		return done, err
	}
	limited, cancel := context.WithTimeout(ctx, openTimeouts*o.Timeout)
	defer cancel()
	reservation, err := membership.Reserve(limited, js, membership.Options{
		Cluster: o.Cluster, Names: o.Names, Replicas: o.Replicas, Settings: o.Agreed,
	})
	if err != nil {
		return done, err
	}
	streams, err := journal.Open(limited, nc, o.journal())
	if err != nil {
		return done, err
	}
	i := importing{o: &o, division: divided, reservation: reservation, streams: streams}
	return i.run(ctx, report)
}

// openTimeouts is how many answers it may take to make the streams of a cluster.
const openTimeouts = 6

// importing is an import under way.
type importing struct {
	o           *Options
	division    *division
	reservation *membership.Reservation
	streams     *journal.Streams
	done        Imported
	fetched     parts // pages of each shard
}

func (i *importing) run(ctx context.Context, report func(Imported)) (Imported, error) {
	i.done.Of, i.fetched = i.o.Cluster.Shards, make(parts)
	if err := i.streams.DeleteSnapshots(ctx); err != nil {
		return i.done, err
	}
	for i.done.Shards < i.done.Of {
		if err := i.shard(ctx, i.done.Shards); err != nil {
			return i.done, err
		}
		i.done.Shards++
		report(i.done)
	}
	for _, step := range []func(context.Context) error{i.publishScope, i.writeRegisters, i.reservation.Release} {
		if err := i.bounded(ctx, step); err != nil {
			return i.done, err
		}
	}
	return i.done, nil
}

// bounded calls a step that waits for the servers.
func (i *importing) bounded(ctx context.Context, step func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, i.o.Timeout)
	defer cancel()
	return step(ctx)
}

// partFile is the name of the file that holds one part at a time.
const partFile = "import.partial"

// shard imports one shard.
func (i *importing) shard(ctx context.Context, n int) (err error) {
	path := filepath.Join(i.o.Crawl.DataDir, partFile)
	counters, err := i.division.write(ctx, path, n, journal.FirstPosition())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(path)) }()
	info, err := os.Stat(path)
	if err == nil {
		err = i.bounded(ctx, i.reservation.Hold) // another import may have taken over
	}
	if err == nil {
		err = i.streams.PutFirst(ctx, n, path)
	}
	if err != nil {
		return fmt.Errorf("import shard %d: %w", n, err)
	}
	i.done.Counters.Add(counters)
	i.done.Bytes += info.Size()
	if fetched := counters.Of(storage.Fetched); fetched > 0 {
		i.fetched[cluster.Shard(n)] = fetched
	}
	return nil
}

// publishScope makes the seeds known to all shards, and where their redirects have led.
func (i *importing) publishScope(ctx context.Context) error {
	seeds, err := i.division.seeds()
	if err == nil {
		_, err = i.streams.PublishSeeds(ctx, seeds)
	}
	return err
}

// writeRegisters writes what is known of the whole crawl: whether it is paused, and how many of its pages
// are fetched.
func (i *importing) writeRegisters(ctx context.Context) error {
	optOuts, err := i.division.optOuts()
	if err != nil {
		return err
	}
	desired := Desired{Version: desiredVersion, Paused: i.division.paused(), OptOuts: optOuts}
	if len(desired.encode()) > maxDesired {
		return fmt.Errorf(
			"%d opt-outs that commands have recorded are too many for a cluster: move them to consent.optout",
			len(optOuts))
	}
	for name, data := range map[string][]byte{"desired": desired.encode(), "pages": i.fetched.encode()} {
		register := i.streams.Register(name)
		_, sequence, err := register.Read(ctx)
		if err == nil {
			_, err = register.Write(ctx, data, sequence)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
