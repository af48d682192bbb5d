package membership

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/cluster/natsconn"
)

// ErrNameTaken means that another live process has the name of this node.
var ErrNameTaken = errors.New("another process that runs has the name of this node")

// ErrInUse means that another process on this machine uses the state file.
var ErrInUse = errors.New("another process that runs uses it")

// Node is a process in a cluster. Its methods may be called concurrently.
type Node struct {
	shell
	writes *writes
	grants *grants
	state  *stateFile

	wake    chan struct{} // for the loop: there are actions
	alarm   chan struct{} // for the guard: trust or a holding has ended
	leaving atomic.Bool   // Leave was called

	// Guarded by mu.
	closed bool // nothing happens any more
	names  map[string]struct{}
	watch  watchState
	notes  []note

	drained   bool // until Undrain
	suspended bool // until Resume
}

// shell is what a node keeps around its state machine.
type shell struct {
	o     Options
	log   *slog.Logger
	reg   *registers
	trust *Trust

	mu       sync.Mutex // guards what follows, here and in Node; nothing blocks under it
	machine  *cluster.Node
	actions  []cluster.Action // to be carried out by the loop
	holdings map[cluster.Shard]*Holding
}

// watchState is how far what the node follows is behind what it has written itself.
type watchState struct {
	written cluster.Sequence // the newest heartbeat that was written
	seen    cluster.Sequence // the newest own message that was delivered
	since   cluster.Instant  // behind since then; 0: it is not
	again   context.CancelFunc
}

// maxNames bounds the names of nodes that this one has ever heard of.
const maxNames = 10_000

// Join looks whether the process can be a node of the cluster: the stream and the settings are those
// that the other nodes have. It creates them if this is the first node. The node is no member before
// [Node.Run], and a node that is not run is closed. The error is natsconn.ErrDown or ErrReserved if it may go
// away by itself, so Join can be called again.
func Join(ctx context.Context, nc *nats.Conn, js jetstream.JetStream, o Options) (*Node, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	var process [8]byte
	_, _ = rand.Read(process[:]) // it never fails
	o.Cluster.Process = binary.BigEndian.Uint64(process[:])
	n := &Node{
		shell: shell{
			o: o, log: o.Log, trust: &Trust{uptime: o.Uptime}, holdings: make(map[cluster.Shard]*Holding),
		},
		wake: make(chan struct{}, 1), alarm: make(chan struct{}, 1), names: make(map[string]struct{}),
	}
	if n.log == nil {
		n.log = slog.New(slog.DiscardHandler)
	}
	stream, err := natsconn.OpenStream(ctx, js, o.Names, o.Replicas)
	if stream == nil {
		return nil, err
	}
	n.reg = &registers{nc: nc, js: js, stream: stream, names: o.Names}
	if err := errors.Join(err, n.reg.agree(ctx, writer{process: o.Cluster.Process}, o.settings())); err != nil {
		return nil, err
	}
	n.writes = newWrites(n)
	n.grants = newGrants(n, nc)
	if n.state, err = openState(o.StateFile); err != nil {
		return nil, err
	}
	return n, nil
}

// Trust returns the trust of the node.
func (n *shell) Trust() *Trust { return n.trust }

// now reads the clock.
func (n *shell) now() cluster.Instant { return cluster.Instant(n.o.Uptime()) }

// tickEvery is how often the state machine lets time pass.
const tickEvery = 200 * time.Millisecond

// Run makes the process a member and carries out what the state machine wants, until the node has
// left: see [Node.Leave]. Then it returns nil. If the context ends before that, or another process has
// the name of the node, it breaks off all engines, waits for their end and returns an error. Others
// then wait for a TTL before they take the shards. Run is called once.
func (n *Node) Run(ctx context.Context) error {
	o := n.o.Cluster
	defer n.Close()
	o.Predecessor = n.state.predecessor
	var err error
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	n.mu.Lock()
	n.machine, err = cluster.NewNode(n.now(), o)
	n.mu.Unlock()
	if err != nil {
		return err
	}
	if n.leaving.Load() { // Leave was called before Run
		n.Leave()
	}
	var wg sync.WaitGroup
	synced := make(chan struct{})
	wg.Go(func() { n.follow(ctx, synced) })
	wg.Go(func() { n.grants.receive(ctx) })
	wg.Go(func() { n.grants.send(ctx) })
	wg.Go(func() { n.watchReplicas(ctx) })
	wg.Go(func() { n.takeCommands(ctx) })
	guarded, endGuard := context.WithCancel(context.WithoutCancel(ctx))
	wg.Go(func() { n.guard(guarded) })
	select {
	case <-ctx.Done():
		err = ctx.Err()
	case <-synced:
		err = n.loop(ctx)
	}
	n.breakAll()
	cancel()
	endGuard()
	n.writes.wait()
	wg.Wait()
	return err
}

// loop lets time pass and carries out actions until the node has left.
func (n *Node) loop(ctx context.Context) error {
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	trusted := false
	for {
		n.do(func(m *cluster.Node, now cluster.Instant) {
			m.Tick(now)
			n.state.note(m.Incarnation())
			n.checkWatch(now)
		})
		if is := n.trust.Left() > 0; is != trusted {
			if trusted = is; trusted {
				n.log.Info("the place of this node in the cluster is confirmed")
			} else if !n.leaving.Load() {
				n.log.Warn("the place of this node in the cluster is not confirmed, so it makes no request; " +
					"look whether the NATS servers can be reached and a majority of them runs")
			}
		}
		if err := n.state.save(); err != nil {
			n.log.Warn("cannot note the membership, so a restart takes longer", "error", err)
		}
		for ticked := false; !ticked; {
			if left, err := n.carryOut(ctx); left || err != nil {
				return err
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-ticker.C:
				ticked = true
			case <-n.wake:
			}
		}
	}
}

// Close gives up a node that is not run, so that another process can use its state file.
func (n *Node) Close() { n.state.close() }

// Leave makes the node hand over its shards and end its membership. [Node.Run] returns when that is
// done.
func (n *Node) Leave() {
	n.leaving.Store(true)
	n.do(func(m *cluster.Node, now cluster.Instant) { m.Drain(now, true) })
}

// do calls f with the state machine and the time, and takes what follows from that. Before Run and
// after its end it does nothing.
func (n *Node) do(f func(m *cluster.Node, now cluster.Instant)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.machine == nil || n.closed {
		return
	}
	now := n.now()
	f(n.machine, now)
	n.absorb(now)
}

// maxLocal bounds the messages about grants that are delivered inside the process at once.
const maxLocal = 1 << 12

// absorb takes the actions of the state machine. What ends a permission takes effect at once, and
// messages about grants of this node to itself are delivered. The rest is for the loop.
func (n *Node) absorb(now cluster.Instant) {
	local := 0
	for actions := append([]cluster.Action(nil), n.machine.Actions()...); len(actions) > 0; actions = actions[1:] {
		switch a := actions[0].(type) {
		case cluster.OpenEngine:
			h := &Holding{n: n, shard: a.Shard, epoch: a.Epoch, requests: make(map[*Request]struct{})}
			h.ctx, h.cancel = context.WithCancelCause(context.Background())
			n.holdings[a.Shard] = h
			n.actions = append(n.actions, openHolding{holding: h})
			continue
		case cluster.StopEngine:
			n.stop(a)
			continue
		case cluster.SendGrantRequest:
			if local < maxLocal && n.machine.IsGranter(now, a.Request.Key) {
				local++
				n.machine.GrantRequested(now, a.Request)
				actions = append(actions, n.machine.Actions()...)
				continue
			}
		case cluster.SendGrant:
			if local < maxLocal && a.Grant.User == n.machine.Member() {
				local++
				n.granted(now, a.Grant)
				actions = append(actions, n.machine.Actions()...)
				continue
			}
		}
		n.actions = append(n.actions, actions[0])
	}
	if n.trust.set(n.machine.Trust()) {
		ring(n.alarm)
	}
	if len(n.actions) > 0 {
		ring(n.wake)
	}
}

// The actions for engines.
type (
	openHolding struct {
		cluster.Action
		holding *Holding
	}
	closeHolding struct {
		cluster.Action
		holding *Holding
		orderly bool
	}
	keyGranted struct {
		cluster.Action
		key string
	}
)

// stop takes the permission from an engine that has to end. n.mu is held.
func (n *shell) stop(a cluster.StopEngine) {
	h := n.holdings[a.Shard]
	if h == nil {
		return
	}
	n.actions = append(n.actions, closeHolding{holding: h, orderly: a.Orderly})
	if a.Orderly {
		h.state.Store(stateDraining)
	} else {
		h.breakOff()
	}
}

// ended takes the end of an engine, and tells the state machine by report.
func (n *Node) ended(h *Holding, report func(m *cluster.Node, now cluster.Instant)) {
	n.mu.Lock()
	if n.holdings[h.shard] == h {
		h.breakOff() // nothing is in flight, says the engine
		delete(n.holdings, h.shard)
		ring(n.grants.changed)
	}
	ring(n.wake)
	n.mu.Unlock()
	n.do(report)
}

// isOpen reports whether a holding has not ended, and notes that its engine is being opened if it is.
func (n *shell) isOpen(h *Holding, opens bool) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	h.opened = h.opened || opens
	return n.holdings[h.shard] == h
}

// carryOut carries out the actions that there are. It reports whether the node has left.
func (n *Node) carryOut(ctx context.Context) (left bool, err error) {
	n.mu.Lock()
	actions := n.actions
	n.actions = nil
	n.mu.Unlock()
	defer n.grants.flush()
	for _, action := range actions {
		switch a := action.(type) {
		case cluster.WriteKey, cluster.WriteEpoch, cluster.ReadKey, cluster.ReadEpoch:
			n.writes.start(ctx, action)
		case openHolding:
			n.log.Info("shard taken", "shard", a.holding.shard, "epoch", a.holding.epoch)
			ring(n.grants.changed)
			if n.isOpen(a.holding, true) {
				n.o.Engines.Open(a.holding)
			}
		case closeHolding:
			n.log.Info("shard given up", "shard", a.holding.shard, "orderly", a.orderly)
			if n.isOpen(a.holding, false) {
				n.o.Engines.Close(a.holding, a.orderly)
			}
		case keyGranted:
			n.o.Engines.Granted(a.key)
		case cluster.SendGrantRequest:
			n.grants.gather(n.grants.ofGranter(a.Request.Key),
				func(b []byte) []byte { return appendGrantRequest(b, a.Request) })
		case cluster.SendGrant:
			n.grants.gather(n.grants.ofUser(a.Grant.User.Node),
				func(b []byte) []byte { return appendGrant(b, a.Grant) })
		case cluster.NameTaken:
			return false, fmt.Errorf("cluster %s, node %s: %w; give each node a name of its own (cluster.node)",
				n.o.Names.Cluster, n.o.Cluster.Node, ErrNameTaken)
		case cluster.Left:
			left = true
		}
	}
	return left, nil
}

// guardEvery is how often the guard reads the clock. A timer alone would stop while the machine sleeps.
const guardEvery = 100 * time.Millisecond
