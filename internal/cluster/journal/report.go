//go:build !core

package journal

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/amble-crawler/amble/internal/cluster/natsconn"
)

// Report is what the streams hold of a shard, as far as somebody can see who is no node.
type Report struct {
	Records  uint64 // messages of the log behind the newest snapshot, which a new owner has to replay
	Bytes    uint64 // of these, estimated by their share of all messages
	Incoming uint64 // messages with URLs of other shards since the newest snapshot
	// Snapshot is the newest one, and At when it was made; zero: there is none.
	Snapshot Snapshot
	At       time.Time
}

// ReadReports returns what the streams of a cluster hold of each of its shards. It makes no stream: of a
// cluster that has none it returns nothing.
func ReadReports(ctx context.Context, js jetstream.JetStream, names natsconn.Names, shards int) ([]Report, error) {
	r := &reports{ctx: ctx, js: js, names: names, all: make([]Report, shards)}
	log, err := r.count(names.Stream(), "log", func(to *Report, n uint64) { to.Records = n })
	if err == nil {
		_, err = r.count(names.Incoming(), "in", func(to *Report, n uint64) { to.Incoming = n })
	}
	if err == nil {
		err = r.snapshots()
	}
	if err != nil {
		return nil, fmt.Errorf("read the logs of cluster %s: %w", names.Cluster, natsconn.Down(err))
	}
	if log != nil && log.State.Msgs > 0 {
		for i := range r.all {
			r.all[i].Bytes = uint64(float64(log.State.Bytes) * float64(r.all[i].Records) / float64(log.State.Msgs))
		}
	}
	return r.all, nil
}

// reports are being read.
type reports struct {
	ctx   context.Context
	js    jetstream.JetStream
	names natsconn.Names
	all   []Report
}

// count counts the messages of a stream for each shard.
func (r *reports) count(stream, kind string, set func(to *Report, n uint64)) (*jetstream.StreamInfo, error) {
	s, err := r.js.Stream(r.ctx, stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	info, err := s.Info(r.ctx, jetstream.WithSubjectFilter(r.names.Subject(kind, "*")))
	if err != nil {
		return nil, err
	}
	for subject, n := range info.State.Subjects {
		text, _ := r.names.Cut(subject, kind)
		if shard, err := strconv.Atoi(text); err == nil && shard >= 0 && shard < len(r.all) {
			set(&r.all[shard], n)
		}
	}
	return info, nil
}

// snapshots finds the newest snapshot of each shard.
func (r *reports) snapshots() error {
	_, err := r.js.Stream(r.ctx, "OBJ_"+r.names.Bucket())
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	objects, err := listObjects(r.ctx, natsconn.NewReads(r.js.Conn(), "OBJ_"+r.names.Bucket()), r.names.Bucket())
	if err != nil {
		return err
	}
	for _, object := range objects {
		text, _, _ := strings.Cut(object.Name, ".")
		shard, err := strconv.Atoi(text)
		if err != nil || shard < 0 || shard >= len(r.all) {
			continue
		}
		snapshot, err := parseSnapshot(&object.ObjectMeta)
		if to := &r.all[shard]; err == nil && snapshot.At.Number >= to.Snapshot.At.Number {
			to.Snapshot, to.At = snapshot, object.ModTime
		}
	}
	return nil
}
