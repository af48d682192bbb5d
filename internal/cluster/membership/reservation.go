package membership

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/amble-crawler/amble/internal/cluster/natsconn"
)

// ErrReserved means that somebody imports into the cluster or exports it, or has begun to, and no node can join
// it before the end of that.
var ErrReserved = errors.New("no node can join now")

// The two reasons of ErrReserved.
var (
	errImporting = fmt.Errorf("%w: an import into the cluster is not complete: nodes can join when it is; if it was "+
		"interrupted, run amble cluster import again", ErrReserved)
	errExporting = fmt.Errorf("%w: the cluster is being exported: nodes can join at the end of that; if it was "+
		"interrupted, run amble cluster export again", ErrReserved)
)

// ErrInService means that a cluster cannot be prepared any more.
var ErrInService = errors.New("nodes have joined the cluster, or may join it, and its shards have owners and logs of " +
	"their own: set another cluster.name")

// A reservation is a setting in the register of the settings, so that nodes of versions that do not know it do
// not join. Its value says by whom.
const (
	settingImport = "cluster.import" // the only setting: no node has ever joined
	settingExport = "cluster.export" // besides those that the nodes agree on
)

// Reservation keeps nodes from joining a cluster: one that none has ever joined, or that is exported. The
// register of the settings holds it, which the first node would write, and which every node reads when it
// joins. Its methods must not be used concurrently.
type Reservation struct {
	reg      *registers
	w        writer
	seq      uint64    // of its newest message
	reserved []setting // while it holds
	settings []setting // after it
}

// Reserve reserves a cluster. It takes over a reservation whose holder may have ended. Of the options it
// uses those that nodes agree on, Names and Replicas. The error is ErrInService, or natsconn.ErrDown if it
// may go away by itself.
func Reserve(ctx context.Context, js jetstream.JetStream, o Options) (*Reservation, error) {
	stream, err := natsconn.OpenStream(ctx, js, o.Names, o.Replicas)
	if err != nil {
		return nil, err
	}
	r := newReservation(js, stream, o)
	r.reserved = []setting{r.by(settingImport)}
	if err := r.take(ctx); err != nil {
		return nil, fmt.Errorf("reserve cluster %s: %w", o.Names.Cluster, err)
	}
	return r, nil
}

// ReserveExport reserves a cluster that nodes have joined, for as long as it is exported. It takes over the
// reservation of an export that may have ended. Nodes that have joined before are not its concern. Of the
// options it uses those of Reserve. The error is ErrNoCluster, ErrReserved by an import, that of settings that
// differ from those of the nodes, or natsconn.ErrDown.
func ReserveExport(ctx context.Context, js jetstream.JetStream, o Options) (*Reservation, error) {
	stream, err := js.Stream(ctx, o.Names.Stream())
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		err = ErrNoCluster
	} else {
		err = natsconn.Down(err)
	}
	if err != nil {
		return nil, fmt.Errorf("reserve cluster %s: %w", o.Names.Cluster, err)
	}
	r := newReservation(js, stream, o)
	if err := r.takeExport(ctx); err != nil {
		return nil, fmt.Errorf("reserve cluster %s: %w", o.Names.Cluster, err)
	}
	return r, nil
}

func newReservation(js jetstream.JetStream, stream jetstream.Stream, o Options) *Reservation {
	var process [8]byte
	_, _ = rand.Read(process[:]) // it never fails
	return &Reservation{
		reg: &registers{nc: js.Conn(), js: js, stream: stream, names: o.Names},
		w:   writer{process: binary.BigEndian.Uint64(process[:])}, settings: o.settings(),
	}
}

// by returns the setting that says whose the reservation is.
func (r *Reservation) by(name string) setting {
	return setting{name, fmt.Sprintf("%016x", r.w.process)}
}

// takeExport writes the reservation of an export, if the settings are those of the cluster.
func (r *Reservation) takeExport(ctx context.Context) error {
	m, found, err := r.reg.read(ctx, r.subject())
	switch {
	case err != nil:
		return natsconn.Down(err)
	case !found:
		return ErrNoCluster
	}
	theirs, err := decodeSettings(m.data)
	if err != nil {
		return err
	}
	if reason := reservedBy(theirs); errors.Is(reason, errImporting) {
		return reason
	}
	theirs = slices.DeleteFunc(theirs, func(s setting) bool { return s.name == settingExport })
	if err := r.reg.compare(theirs, r.settings); err != nil {
		return err
	}
	r.reserved = append(slices.Clone(r.settings), r.by(settingExport))
	slices.SortFunc(r.reserved, func(a, b setting) int { return strings.Compare(a.name, b.name) })
	r.seq = m.seq
	return r.Hold(ctx)
}

// take writes the reservation, unless the cluster is in service.
func (r *Reservation) take(ctx context.Context) error {
	m, found, err := r.reg.read(ctx, r.subject())
	if err != nil {
		return natsconn.Down(err)
	}
	if found {
		if theirs, err := decodeSettings(m.data); err != nil || !errors.Is(reservedBy(theirs), errImporting) {
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
func (r *Reservation) Hold(ctx context.Context) error { return r.write(ctx, r.reserved) }

// Release ends the reservation: nodes with the settings of the options can join now.
func (r *Reservation) Release(ctx context.Context) error { return r.write(ctx, r.settings) }

// errTakenOver is the error of a reservation that another one has taken over.
var errTakenOver = errors.New("another import or export of the cluster has begun after this one, and goes on alone")

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
			return ended(ctx, err, readErr)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// reservedBy returns the reason of ErrReserved if settings are those of a reservation.
func reservedBy(all []setting) error {
	for i := range all {
		switch {
		case all[i].name == settingImport && len(all) == 1:
			return errImporting
		case all[i].name == settingExport:
			return errExporting
		}
	}
	return nil
}
