package membership

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/amble-crawler/amble/internal/natsconn"
)

// ErrReserved means that somebody prepares the cluster, or has begun to, and no node can join it yet.
var ErrReserved = errors.New("an import into the cluster is not complete: nodes can join when it is; if it was interrupted, " +
	"run amble cluster import again")

// ErrInService means that a cluster cannot be prepared any more.
var ErrInService = errors.New("nodes have joined the cluster, or may join it, and its shards have owners and logs of their " +
	"own: set another cluster.name")

// settingReserved is the only setting in the register of a cluster that is reserved. Its value says by
// whom. It is a setting so that nodes of versions that do not know it do not join.
const settingReserved = "cluster.import"

// Reservation keeps nodes from joining a cluster that none has ever joined. The register of the settings
// holds it, which the first node would write: so a node or a reservation is first. Its methods must not
// be used concurrently.
type Reservation struct {
	reg      *registers
	w        writer
	seq      uint64 // of its newest message
	settings []setting
}

// Reserve reserves a cluster. It takes over a reservation whose holder may have ended. Of the options it
// uses those that nodes agree on, Names and Replicas. The error is ErrInService, or natsconn.ErrDown if it
// may go away by itself.
func Reserve(ctx context.Context, js jetstream.JetStream, o Options) (*Reservation, error) {
	stream, err := natsconn.OpenStream(ctx, js, o.Names, o.Replicas)
	if err != nil {
		return nil, err
	}
	var process [8]byte
	_, _ = rand.Read(process[:]) // it never fails
	r := &Reservation{
		reg: &registers{nc: js.Conn(), js: js, stream: stream, names: o.Names},
		w:   writer{process: binary.BigEndian.Uint64(process[:])}, settings: o.settings(),
	}
	if err := r.take(ctx); err != nil {
		return nil, fmt.Errorf("reserve cluster %s: %w", o.Names.Cluster, err)
	}
	return r, nil
}

// take writes the reservation, unless the cluster is in service.
func (r *Reservation) take(ctx context.Context) error {
	m, found, err := r.reg.read(ctx, r.subject())
	if err != nil {
		return natsconn.Down(err)
	}
	if found {
		if theirs, err := decodeSettings(m.data); err != nil || !isReserved(theirs) {
			return errors.Join(ErrInService, err)
		}
	}
	info, err := r.reg.stream.Info(ctx, jetstream.WithSubjectFilter(r.reg.names.Subject(">")))
	if err != nil {
		return natsconn.Down(err)
	}
	for subject := range info.State.Subjects {
		for _, kind := range []string{"log", "epoch", "member"} {
			if strings.HasPrefix(subject, r.reg.names.Subject(kind, "")) {
				return ErrInService
			}
		}
	}
	r.seq = m.seq
	return r.Hold(ctx)
}

func (r *Reservation) subject() string { return r.reg.names.Subject("settings") }

// Hold returns nil if the reservation holds. Otherwise another one has taken over.
func (r *Reservation) Hold(ctx context.Context) error {
	return r.write(ctx, []setting{{settingReserved, fmt.Sprintf("%016x", r.w.process)}})
}

// Release ends the reservation: nodes with the settings of the options can join now.
func (r *Reservation) Release(ctx context.Context) error { return r.write(ctx, r.settings) }

// errTakenOver is the error of a reservation that another one has taken over.
var errTakenOver = errors.New("another import into the cluster has begun after this one, and goes on alone")

// write replaces what the register holds, if that is of this reservation.
func (r *Reservation) write(ctx context.Context, settings []setting) error {
	r.w.id++
	data := encodeSettings(r.w, settings)
	for {
		seq, result, err := r.reg.write(ctx, r.subject(), data, r.seq, true)
		if result == written {
			r.seq = seq
			return nil
		}
		m, found, readErr := r.reg.read(ctx, r.subject())
		switch {
		case readErr == nil && found && bytes.Equal(m.data, data): // the answer was lost
			r.seq = m.seq
			return nil
		case readErr == nil && m.seq != r.seq && m.seq != 0:
			return errTakenOver
		}
		select {
		case <-ctx.Done():
			return natsconn.Down(errors.Join(err, readErr, ctx.Err()))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// isReserved reports whether settings are those of a reservation.
func isReserved(all []setting) bool { return len(all) == 1 && all[0].name == settingReserved }
