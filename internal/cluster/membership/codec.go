package membership

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/cluster/natsconn"
	"github.com/amble-crawler/amble/internal/records/wire"
)

// protocol is the version of all messages between nodes, and of what they keep in the registers.
// Nodes of different versions do not work together.
const protocol = 1

// The kinds of messages. The second byte of a message is its kind.
const (
	kindKey      = 'k'
	kindEpoch    = 'e'
	kindGrants   = 'g'
	kindSettings = 's'
	kindCommand  = 'c'
)

// Bounds of what a message may hold.
const (
	maxNodeName     = 64
	maxLimitKey     = 1 << 10
	maxGrants       = 256
	maxSettings     = 1 << 10
	maxSettingName  = 256
	maxSettingValue = 4 << 10
	maxSlots        = 1 << 20
	maxFaultTimes   = 1 << 20
	maxFaultKind    = 16
	maxReason       = 1 << 10
)

// errProtocol means that a message was written by another version of amble.
var errProtocol = errors.New("written by another version of amble")

// writer identifies a write: the process that made it, and its number there. Whoever reads a message
// of its own process knows that this write has succeeded, even if the answer was lost.
type writer struct {
	process uint64
	id      uint64
}

func begin(kind byte, w writer) []byte {
	b := append(make([]byte, 0, 64), protocol, kind)
	b = binary.BigEndian.AppendUint64(b, w.process)
	return binary.AppendUvarint(b, w.id)
}

// header reads what all messages begin with.
func header(d *wire.Decoder, kind byte) (w writer) {
	if version := d.Byte(); d.OK() && version != protocol {
		d.Fail(fmt.Errorf("%w, with protocol %d instead of %d", errProtocol, version, protocol))
	}
	d.Require(d.Byte() == kind)
	return writer{d.Uint64(), d.Uvarint()}
}

func encodeKey(w writer, k cluster.Key) []byte {
	b := begin(kindKey, w)
	b = binary.BigEndian.AppendUint64(b, k.Process)
	b = binary.AppendUvarint(b, uint64(k.Incarnation))
	b = binary.BigEndian.AppendUint16(b, k.Weight)
	return append(b, bit(k.Sealed)+bit(k.Silent))
}

func decodeKey(b []byte) (w writer, k cluster.Key, err error) {
	d := wire.NewDecoder(b)
	w = header(&d, kindKey)
	k.Process = d.Uint64()
	k.Incarnation = cluster.Sequence(d.Uvarint())
	k.Weight = d.Uint16()
	sealed := d.Byte()
	d.Require(sealed <= 2)
	k.Sealed, k.Silent = sealed > 0, sealed == 2
	return w, k, d.End()
}

// The states of a shard in its register, besides 0: its owner opens the engine.
const (
	epochReleased    = 1
	epochQuarantined = 2
)

func encodeEpoch(w writer, e cluster.Epoch) []byte {
	b := begin(kindEpoch, w)
	b = appendText(b, e.Owner.Node)
	b = binary.AppendUvarint(b, uint64(e.Owner.Incarnation))
	if e.Fault != nil {
		return appendFault(append(b, epochQuarantined), e.Fault)
	}
	b = append(b, bit(e.Released), bit(e.Handover != nil))
	if e.Handover != nil {
		b = appendHandover(b, e.Handover)
	}
	return b
}

func decodeEpoch(b []byte) (w writer, e cluster.Epoch, err error) {
	d := wire.NewDecoder(b)
	w = header(&d, kindEpoch)
	e.Owner.Node = readText(&d, maxNodeName)
	e.Owner.Incarnation = cluster.Sequence(d.Uvarint())
	switch state := d.Byte(); {
	case state == epochQuarantined:
		e.Fault = readFault(&d)
	default:
		d.Require(state <= epochReleased)
		e.Released = state == epochReleased
		if readBit(&d) {
			d.Require(e.Released)
			e.Handover = readHandover(&d)
		}
	}
	d.Require(natsconn.ValidateName(e.Owner.Node) == nil)
	return w, e, d.End()
}

func appendFault(b []byte, f *cluster.Fault) []byte {
	b = binary.AppendUvarint(b, uint64(f.Times))
	b = appendText(b, f.Kind)
	b = binary.AppendUvarint(b, uint64(f.Sequence))
	return appendText(b, f.Reason[:min(len(f.Reason), maxReason)])
}

func readFault(d *wire.Decoder) *cluster.Fault {
	f := &cluster.Fault{Times: int(d.UvarintMax(maxFaultTimes)), Kind: readText(d, maxFaultKind),
		Sequence: cluster.Sequence(d.Uvarint())}
	f.Reason = readText(d, maxReason)
	d.Require(f.Times > 0)
	return f
}

func appendHandover(b []byte, h *cluster.Handover) []byte {
	b = binary.AppendVarint(b, int64(h.Ready))
	b = binary.AppendUvarint(b, uint64(len(h.Limits)))
	for _, l := range h.Limits {
		b = appendLimit(appendText(b, l.Key), l.Limit)
		b = binary.AppendVarint(b, int64(l.LastEnd))
		b = binary.AppendUvarint(b, uint64(len(l.Users)))
		for _, u := range l.Users {
			b = appendUser(b, u.User, u.Number)
			b = binary.AppendUvarint(b, slotsOf(u.Slots))
			b = binary.AppendVarint(b, int64(u.Left))
		}
	}
	return b
}

// readHandover reads what a granter leaves. Each part takes some bytes, so the message bounds the parts.
func readHandover(d *wire.Decoder) *cluster.Handover {
	h := &cluster.Handover{Ready: time.Duration(d.Varint())}
	for range d.UvarintMax(uint64(d.Len())) {
		l := cluster.HandoverLimit{Key: readText(d, maxLimitKey), Limit: readLimit(d),
			LastEnd: time.Duration(d.Varint())}
		for range d.UvarintMax(uint64(d.Len())) {
			user, number := readUser(d)
			l.Users = append(l.Users, cluster.HandoverUser{User: user, Number: number, Slots: readSlots(d),
				Left: time.Duration(d.Varint())})
			if !d.OK() {
				break
			}
		}
		if !d.OK() {
			break
		}
		h.Limits = append(h.Limits, l)
	}
	return h
}

// The parts of a message about grants.
const (
	partRequest = 0
	partGrant   = 1
)

// beginGrants begins a message with grants and requests for grants.
func beginGrants(process uint64) []byte { return begin(kindGrants, writer{process: process}) }

func appendGrantRequest(b []byte, r cluster.GrantRequest) []byte {
	b = appendUser(appendText(append(b, partRequest), r.Key), r.User, r.Number)
	b = appendLimit(b, r.Limit)
	b = binary.AppendUvarint(b, slotsOf(r.Keep))
	b = append(b, bit(r.Used))
	return binary.AppendUvarint(b, slotsOf(r.Want))
}

func appendGrant(b []byte, g cluster.Grant) []byte {
	b = appendUser(appendText(append(b, partGrant), g.Key), g.User, g.Number)
	b = binary.AppendUvarint(b, slotsOf(g.Slots))
	b = binary.AppendUvarint(b, uint64(max(0, g.For)))
	b = binary.AppendUvarint(b, uint64(max(0, g.After)))
	return binary.AppendUvarint(b, slotsOf(g.Share))
}

// appendUser appends the user of a limit, and the number of its request.
func appendUser(b []byte, user cluster.Member, number uint64) []byte {
	b = binary.AppendUvarint(appendText(b, user.Node), uint64(user.Incarnation))
	return binary.AppendUvarint(b, number)
}

func readUser(d *wire.Decoder) (user cluster.Member, number uint64) {
	return cluster.Member{Node: readText(d, maxNodeName), Incarnation: cluster.Sequence(d.Uvarint())}, d.Uvarint()
}

func appendLimit(b []byte, l cluster.Limit) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, slotsOf(l.Slots)), uint64(max(0, l.Delay)))
}

func readLimit(d *wire.Decoder) cluster.Limit {
	return cluster.Limit{Slots: readSlots(d), Delay: readTime(d)}
}

func slotsOf(n int) uint64 { return uint64(min(max(n, 0), maxSlots)) }

// decodeGrants returns the requests (cluster.GrantRequest) and grants (cluster.Grant) of a message, in
// their order.
func decodeGrants(b []byte) (parts []any, err error) {
	d := wire.NewDecoder(b)
	header(&d, kindGrants)
	for d.OK() && d.Len() > 0 {
		if len(parts) == maxGrants {
			return nil, wire.ErrRange
		}
		kind, key := d.Byte(), readText(&d, maxLimitKey)
		user, number := readUser(&d)
		switch kind {
		case partRequest:
			parts = append(parts, cluster.GrantRequest{Key: key, Limit: readLimit(&d), User: user, Number: number,
				Keep: readSlots(&d), Used: readBit(&d), Want: readSlots(&d)})
		case partGrant:
			parts = append(parts, cluster.Grant{Key: key, User: user, Number: number, Slots: readSlots(&d),
				For: readTime(&d), After: readTime(&d), Share: readSlots(&d)})
		default:
			d.Require(false)
		}
	}
	if err := d.End(); err != nil {
		return nil, err
	}
	return parts, nil
}

func readSlots(d *wire.Decoder) int { return int(d.UvarintMax(maxSlots)) }

func readTime(d *wire.Decoder) time.Duration { return time.Duration(d.UvarintMax(math.MaxInt64)) }

// setting is one that all nodes of a cluster have to agree on.
type setting struct{ name, value string }

func encodeSettings(w writer, settings []setting) []byte {
	b := binary.AppendUvarint(begin(kindSettings, w), uint64(len(settings)))
	for _, s := range settings {
		b = appendText(appendText(b, s.name), s.value)
	}
	return b
}

func decodeSettings(b []byte) (settings []setting, err error) {
	d := wire.NewDecoder(b)
	header(&d, kindSettings)
	count := d.UvarintMax(maxSettings)
	for range count {
		if !d.OK() {
			break
		}
		settings = append(settings, setting{readText(&d, maxSettingName), readText(&d, maxSettingValue)})
	}
	return settings, d.End()
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func readText(d *wire.Decoder, most uint64) string { return string(d.Bytes(int(d.UvarintMax(most)))) }

func bit(f bool) byte {
	if f {
		return 1
	}
	return 0
}

func readBit(d *wire.Decoder) bool {
	b := d.Byte()
	d.Require(b <= 1)
	return b == 1
}
