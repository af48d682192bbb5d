package membership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/cluster/natsconn"
)

// ErrNoCluster means that no node has ever joined the cluster.
var ErrNoCluster = errors.New("there is no such cluster on these NATS servers: no node has joined it yet")

// Survey is what the registers say of a cluster, read by somebody who need not be a node.
type Survey struct {
	At       time.Time // by the clock of the servers, as all times here
	Members  []Member  // by name; those that have left and own nothing are left out
	Shards   []Owner   // by number
	Replicas []Replica // of the registers and logs; none: a single server
}

// Member is what its register says of a node.
type Member struct {
	Node   string
	State  MemberState
	Weight uint16        // 0: it takes no shards
	Beat   time.Duration // since its newest heartbeat was written
	Owns   int           // shards
	Gets   int           // shards that it should own and does not
	Notes  []string      // what it says of itself, or why its register cannot be read
}

// MemberState says whether a node may make requests.
type MemberState string

// The states of a member.
const (
	Trusted MemberState = "trusted" // it may make requests
	Drained MemberState = "drained" // it takes no shards, and hands over those that it has
	Doubted MemberState = "doubted" // too long without a heartbeat to make requests
	Dead    MemberState = "dead"    // so long without a heartbeat that others take its shards
	Left    MemberState = "left"    // its membership has ended

	Unreadable MemberState = "unreadable" // its register cannot be read; after a TTL others take its shards
)

// UnknownOwner is the owner of a shard whose register cannot be read. No node has this name.
const UnknownOwner = "?"

// Owner is who owns a shard, and who should.
type Owner struct {
	Node  string         // empty: nobody; or UnknownOwner
	Since time.Time      // of its epoch
	Epoch uint64         // the sequence of its epoch; 0: nobody has ever owned it
	Goal  string         // the node that should own it; empty: there is none that could
	Fault *cluster.Fault // why its owner does not crawl it; nil: it does
}

// ReadSurvey reads the registers of a cluster. The error is ErrNoCluster if there are none, or ErrReserved.
func ReadSurvey(ctx context.Context, js jetstream.JetStream, names natsconn.Names) (*Survey, error) {
	s, err := readSurvey(ctx, js, names)
	if err != nil {
		return nil, fmt.Errorf("read the registers of cluster %s: %w", names.Cluster, err)
	}
	return s, nil
}

func readSurvey(ctx context.Context, js jetstream.JetStream, names natsconn.Names) (*Survey, error) {
	stream, err := js.Stream(ctx, names.Stream())
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, ErrNoCluster
	}
	if err == nil {
		stream, err = natsconn.Readable(ctx, js, stream)
	}
	if err != nil {
		return nil, natsconn.Down(err)
	}
	r := &registers{nc: js.Conn(), js: js, stream: stream, names: names}
	v := surveyor{names: names, settings: make(map[string]string), keys: make(map[string]keyAt)}
	if err := v.readSettings(ctx, r); err != nil {
		return nil, err
	}
	err = r.all(ctx, "member", v.take)
	if err == nil {
		err = r.newest(ctx, v.epochSubjects(), v.take)
	}
	if err != nil {
		return nil, ended(ctx, err)
	}
	info, err := stream.Info(ctx)
	if err != nil {
		return nil, natsconn.Down(err)
	}
	return v.survey(info)
}

// surveyor gathers what the registers say.
type surveyor struct {
	names    natsconn.Names
	settings map[string]string
	keys     map[string]keyAt // by node
	epochs   []epochAt        // by shard
}

type keyAt struct {
	cluster.Key
	seq   cluster.Sequence
	at    time.Time
	notes []string
	err   error // it cannot be read
}

type epochAt struct {
	cluster.Epoch
	seq cluster.Sequence
	at  time.Time
}

// readSettings reads the settings that the nodes agree on.
func (v *surveyor) readSettings(ctx context.Context, r *registers) error {
	m, found, err := r.read(ctx, v.names.Subject("settings"))
	if err != nil {
		return natsconn.Down(err)
	}
	if !found {
		return ErrNoCluster
	}
	list, err := decodeSettings(m.data)
	if err != nil {
		return err
	}
	if reason := reservedBy(list); errors.Is(reason, errImporting) {
		return reason
	}
	for _, s := range list {
		v.settings[s.name] = s.value
	}
	shards, err := strconv.Atoi(v.settings["cluster.shards"])
	if err != nil || shards < 1 || shards > maxSurveyed {
		return fmt.Errorf("cluster.shards is %q", v.settings["cluster.shards"])
	}
	v.epochs = make([]epochAt, shards)
	return nil
}

// epochSubjects returns the registers of all shards.
func (v *surveyor) epochSubjects() (all []string) {
	for s := range v.epochs {
		all = append(all, v.names.OfShard("epoch", int32(s)))
	}
	return all
}

// maxSurveyed bounds the shards that a register can make a reader allocate.
const maxSurveyed = 1 << 20

// take takes the newest message of a register. One that cannot be read costs its row only.
func (v *surveyor) take(m message) {
	if node, ok := v.names.Cut(m.subject, "member"); ok && natsconn.ValidateName(node) == nil {
		k := keyAt{seq: cluster.Sequence(m.seq), at: m.at, notes: m.notes}
		if _, k.Key, k.err = decodeKey(m.data); k.err != nil {
			k.Key = cluster.Key{}
		}
		if len(v.keys) < maxNames {
			v.keys[node] = k
		}
	} else if text, ok := v.names.Cut(m.subject, "epoch"); ok {
		e := epochAt{seq: cluster.Sequence(m.seq), at: m.at}
		_, epoch, err := decodeEpoch(m.data)
		if e.Epoch = epoch; err != nil {
			e.Epoch = cluster.Epoch{Owner: cluster.Member{Node: UnknownOwner}}
		}
		if s, bad := strconv.Atoi(text); bad == nil && s >= 0 && s < len(v.epochs) {
			v.epochs[s] = e
		}
	}
}

// survey puts together what was gathered.
func (v *surveyor) survey(info *jetstream.StreamInfo) (*Survey, error) {
	ttl, err := time.ParseDuration(v.settings["cluster.ttl"])
	margin, badMargin := time.ParseDuration(v.settings["cluster.margin"])
	if err := errors.Join(err, badMargin); err != nil {
		return nil, err
	}
	s := &Survey{At: info.TimeStamp, Replicas: replicas(info)}
	members := make(map[string]*Member)
	var takers cluster.Candidates
	for node, k := range v.keys {
		m := &Member{Node: node, Weight: k.Weight, Beat: max(0, s.At.Sub(k.at)), Notes: k.notes}
		m.State = stateOf(k, m.Beat, ttl, margin)
		if k.err != nil {
			m.Notes = []string{fmt.Sprintf("its register %s cannot be read: %v",
				v.names.Subject("member", node), k.err)}
		}
		if members[node] = m; m.State == Trusted || m.State == Doubted {
			takers.Add(node, k.Weight)
		}
	}
	for i, e := range v.epochs {
		o := Owner{Since: e.at, Epoch: uint64(e.seq), Goal: takers.Best(cluster.Shard(i))}
		if e.seq != 0 && !e.Released {
			o.Node, o.Fault = e.Owner.Node, e.Fault
		}
		if m := members[o.Node]; m != nil {
			m.Owns++
		}
		if m := members[o.Goal]; m != nil && o.Goal != o.Node {
			m.Gets++
		}
		s.Shards = append(s.Shards, o)
	}
	for _, m := range members {
		if m.State != Left || m.Owns > 0 {
			s.Members = append(s.Members, *m)
		}
	}
	slices.SortFunc(s.Members, func(a, b Member) int { return strings.Compare(a.Node, b.Node) })
	return s, nil
}

// stateOf returns the state of a member, given the time since its heartbeat. A node counts its trust from
// before it sends the heartbeat, so it may have lost it a little earlier than this says.
func stateOf(k keyAt, beat, ttl, margin time.Duration) MemberState {
	switch {
	case k.err != nil:
		return Unreadable
	case k.Sealed:
		return Left
	case beat >= ttl:
		return Dead
	case beat >= ttl-margin:
		return Doubted
	case k.Weight == 0:
		return Drained
	}
	return Trusted
}
