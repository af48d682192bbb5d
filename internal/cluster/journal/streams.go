//go:build !core

package journal

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/amble-crawler/amble/internal/cluster/natsconn"
	"github.com/amble-crawler/amble/storage"
)

// Options say where the logs of a cluster are.
type Options struct {
	// Prefix begins the names of all streams and subjects: letters, digits, "-" and "_", at most 64.
	Prefix   string
	Replicas int           // of each stream, 1 to 5
	Shards   int           // of the cluster, 1 to 65536
	Timeout  time.Duration // for one answer of the server

	SnapshotAbove int64 // bytes of log that a snapshot is worth at least
}

// DefaultOptions returns the options of a cluster with three servers. The caller sets Prefix.
func DefaultOptions() Options {
	return Options{Replicas: 3, Shards: 64, Timeout: 5 * time.Second, SnapshotAbove: 16 << 20}
}

// validPrefix are the prefixes that streams, subjects and buckets may have.
var validPrefix = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Validate says what is wrong with the options, all of it.
func (o *Options) Validate() error {
	var errs []error
	if !validPrefix.MatchString(o.Prefix) {
		errs = append(errs,
			fmt.Errorf("journal: Prefix is %q, should be 1 to 64 letters, digits, '-' or '_'", o.Prefix))
	}
	if o.Replicas < 1 || o.Replicas > 5 {
		errs = append(errs, fmt.Errorf("journal: Replicas is %d, should be 1 to 5", o.Replicas))
	}
	if o.Shards < 1 || o.Shards > 1<<16 {
		errs = append(errs, fmt.Errorf("journal: Shards is %d, should be 1 to 65536", o.Shards))
	}
	if o.Timeout <= 0 {
		errs = append(errs, fmt.Errorf("journal: Timeout is %v, should be more than 0", o.Timeout))
	}
	return errors.Join(errs...)
}

// ConnectOptions are what a connection needs that is given to Open: it comes back whatever happens,
// and keeps nothing that was published while it was away, because the publisher settles that itself.
func ConnectOptions() []nats.Option {
	return []nats.Option{
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(250 * time.Millisecond),
		nats.ReconnectBufSize(-1),
	}
}

// Streams are the logs of a cluster, what crosses its shards, and its snapshots. All methods may be
// called concurrently.
type Streams struct {
	o         Options
	js        jetstream.JetStream
	log       jetstream.Stream
	in        jetstream.Stream
	snapshots jetstream.ObjectStore

	logReads, inReads, snapshotReads *natsconn.Reads
	logArrivals, inArrivals          *arrivals

	made time.Time // the log
	part int       // bytes of data in one message
}

// messageRoom is what a message has besides data: headers and the head of a frame.
const messageRoom = 4 << 10

// Open opens the streams of a cluster and makes those that are missing. A stream that is not as the
// options say is an error, which names the differences. The error is storage.ErrLogDown while the
// servers have no leader: then Open can be called again.
func Open(ctx context.Context, nc *nats.Conn, o Options) (*Streams, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncTimeout(o.Timeout))
	if err != nil {
		return nil, fmt.Errorf("open the streams of %s: %w", o.Prefix, err)
	}
	s := &Streams{o: o, js: js, part: int(nc.MaxPayload()) - messageRoom}
	if s.part < messageRoom {
		return nil,
			fmt.Errorf("the NATS server takes messages of %d bytes only: set max_payload to 1 MiB", nc.MaxPayload())
	}
	if err := s.openLog(ctx); err != nil {
		return nil, err
	}
	if s.in, err = s.stream(ctx, "_in", "in.*"); err != nil {
		return nil, err
	}
	s.logReads, s.inReads = natsconn.NewReads(nc, o.Prefix+"_log"), natsconn.NewReads(nc, o.Prefix+"_in")
	s.snapshotReads = natsconn.NewReads(nc, "OBJ_"+s.bucket())
	s.logArrivals, s.inArrivals = s.newArrivals(nc, s.log, s.logReads, ".*"),
		s.newArrivals(nc, s.in, s.inReads, ".in.*")
	s.inArrivals.mark = s.markSubject()
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	s.snapshots, err = js.CreateOrUpdateObjectStore(ctx, jetstream.ObjectStoreConfig{
		Bucket: s.bucket(), Replicas: o.Replicas, Storage: jetstream.FileStorage, Compression: true,
	})
	if err != nil {
		return nil, fmt.Errorf("open the snapshots of %s: %w", o.Prefix, downError(err))
	}
	return s, nil
}

// bucket is the name of the object store with the snapshots.
func (s *Streams) bucket() string { return s.o.Prefix + "_snapshots" }

// repeats is for how long a stream knows the ids of messages. A message that comes again later is in
// the log twice, and counts once.
const repeats = 10 * time.Minute

// openLog opens or makes the stream with the logs and the registers, which membership uses too.
func (s *Streams) openLog(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	s.log, err = natsconn.OpenStream(ctx, s.js, natsconn.Names{Cluster: s.o.Prefix, Prefix: s.o.Prefix}, s.o.Replicas)
	if s.log == nil {
		return downError(err)
	}
	s.made = s.log.CachedInfo().Created
	return err
}

// Identity tells the log of the cluster from one that was made again in its place: it is the time at which
// the log was made. It has no spaces.
func (s *Streams) Identity() string { return s.made.UTC().Format(time.RFC3339Nano) }

// stream opens or makes a stream with the given subjects. It never drops a message by itself.
func (s *Streams) stream(ctx context.Context, name string, subjects ...string) (jetstream.Stream, error) {
	c := jetstream.StreamConfig{
		Name: s.o.Prefix + name, Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardNew,
		Storage: jetstream.FileStorage, Replicas: s.o.Replicas, Duplicates: repeats, AllowRollup: true,
		MaxMsgs: -1, MaxBytes: -1, MaxMsgsPerSubject: -1, MaxMsgSize: -1, AllowDirect: true,
		MaxConsumers: natsconn.MaxConsumers,
	}
	for _, subject := range subjects {
		c.Subjects = append(c.Subjects, s.o.Prefix+"."+subject)
	}
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	stream, err := s.js.Stream(ctx, c.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		stream, err = natsconn.Limited(c, func(c jetstream.StreamConfig) (jetstream.Stream, error) {
			return s.js.CreateStream(ctx, c)
		})
	}
	if err != nil {
		return nil, fmt.Errorf("open stream %s: %w", c.Name, downError(err))
	}
	if differ := differences(&c, &stream.CachedInfo().Config); len(differ) > 0 {
		return nil, fmt.Errorf("stream %s is not as amble needs it: %s", c.Name, strings.Join(differ, ", "))
	}
	if stream, err = natsconn.Readable(ctx, s.js, stream); err != nil {
		return nil, fmt.Errorf("change stream %s: %w", c.Name, downError(err))
	}
	return stream, nil
}

// differences names what differs of that which the log depends on.
func differences(want, is *jetstream.StreamConfig) (names []string) {
	compare := func(name string, want, is any) {
		if fmt.Sprint(want) != fmt.Sprint(is) {
			names = append(names, fmt.Sprintf("%s is %v, should be %v", name, is, want))
		}
	}
	compare("subjects", want.Subjects, is.Subjects)
	compare("retention", want.Retention, is.Retention)
	compare("discard", want.Discard, is.Discard)
	compare("storage", want.Storage, is.Storage)
	compare("replicas", want.Replicas, is.Replicas)
	compare("allow_rollup_hdrs", want.AllowRollup, is.AllowRollup)
	compare("max_age", want.MaxAge, is.MaxAge)
	compare("max_msgs", want.MaxMsgs, is.MaxMsgs)
	compare("max_bytes", want.MaxBytes, is.MaxBytes)
	compare("max_msgs_per_subject", want.MaxMsgsPerSubject, is.MaxMsgsPerSubject)
	compare("max_msg_size", want.MaxMsgSize, is.MaxMsgSize)
	return names
}

// downError marks an error of the server or of the way to it with storage.ErrLogDown.
func downError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", storage.ErrLogDown, natsconn.Plain(err))
}

func (s *Streams) subject(kind string, n int) string {
	return fmt.Sprintf("%s.%s.%d", s.o.Prefix, kind, n)
}

// EpochSubject is the subject of a shard's epochs. The sequence of the last message there fences the
// log of the shard.
func (s *Streams) EpochSubject(shard int) string { return s.subject("epoch", shard) }

// last returns the last message of a subject of the log; nil: there is none. It is read from the
// leader of the stream, which may be about to learn that it is not that any more.
func (s *Streams) last(ctx context.Context, subject string) (*message, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	m, err := s.logReads.Last(ctx, subject)
	if err != nil {
		return nil, downError(err)
	}
	return m, nil
}
