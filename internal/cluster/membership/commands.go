package membership

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/cluster/natsconn"
	"github.com/amble-crawler/amble/internal/records/wire"
)

// ErrNoNode means that no node of that name answers: it does not run, or cannot reach the servers.
var ErrNoNode = errors.New("no such node runs and can reach the NATS servers")

// Order is what a command makes a node do.
type Order byte

// The commands to a node. The first two hold as long as its process.
const (
	Undrain     Order = 0 // take shards again
	Drain       Order = 1 // hand over all shards and take no others
	RetryFaults Order = 2 // open the engines of its shards in quarantine now
)

// Command gives a node a command. It returns when the node has understood.
func Command(ctx context.Context, nc *nats.Conn, names natsconn.Names, node string, order Order) error {
	m, err := nc.RequestWithContext(ctx, names.Subject("command", node), encodeCommand(order))
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return fmt.Errorf("node %s of cluster %s: %w", node, names.Cluster, ErrNoNode)
	case err != nil:
		return fmt.Errorf("node %s of cluster %s does not answer: %w", node, names.Cluster, natsconn.Down(err))
	}
	if answer, err := decodeCommand(m.Data); err != nil || answer != order {
		return fmt.Errorf("node %s of cluster %s has not understood: %v", node, names.Cluster, err)
	}
	return nil
}

func encodeCommand(o Order) []byte { return append(begin(kindCommand, writer{}), byte(o)) }

func decodeCommand(b []byte) (Order, error) {
	d := wire.NewDecoder(b)
	header(&d, kindCommand)
	o := Order(d.Byte())
	d.Require(o <= RetryFaults)
	return o, d.End()
}

// maxCommands bounds the commands that wait.
const maxCommands = 16

// takeCommands carries out commands until the context ends.
func (n *Node) takeCommands(ctx context.Context) {
	in := make(chan *nats.Msg, maxCommands)
	var sub *nats.Subscription
	again := time.NewTicker(time.Second)
	defer again.Stop()
	defer func() { _ = sub.Unsubscribe() }() // the connection may be gone
	for {
		if !sub.IsValid() {
			sub, _ = n.reg.nc.ChanSubscribe(n.o.Names.Subject("command", n.o.Cluster.Node), in) // or in a second
		}
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		case m := <-in:
			order, err := decodeCommand(m.Data)
			if err != nil {
				n.foreign(m.Subject, err)
				continue
			}
			n.obey(order)
			_ = m.Respond(encodeCommand(order)) // the operator may repeat it
		}
	}
}

// obey carries out a command.
func (n *Node) obey(o Order) {
	switch o {
	case Drain:
		n.log.Warn("a command for this node: it hands over its shards")
		n.Drain()
	case Undrain:
		n.log.Warn("a command for this node: it takes shards")
		n.Undrain()
	case RetryFaults:
		n.log.Warn("a command for this node: it opens its shards that are in quarantine")
		n.do(func(m *cluster.Node, now cluster.Instant) { m.RetryFaults(now) })
	}
}
