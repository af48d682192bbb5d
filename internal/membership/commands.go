package membership

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/amble-crawler/amble/internal/natsconn"
	"github.com/amble-crawler/amble/internal/wire"
)

// ErrNoNode means that no node of that name answers: it does not run, or cannot reach the servers.
var ErrNoNode = errors.New("no such node runs and can reach the NATS servers")

// Command makes a node hand over its shards and take no others, or take shards again. It returns when the
// node has understood. The command holds as long as the process of the node.
func Command(ctx context.Context, nc *nats.Conn, names natsconn.Names, node string, drain bool) error {
	m, err := nc.RequestWithContext(ctx, names.Subject("command", node), encodeCommand(drain))
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return fmt.Errorf("node %s of cluster %s: %w", node, names.Cluster, ErrNoNode)
	case err != nil:
		return fmt.Errorf("node %s of cluster %s does not answer: %w", node, names.Cluster, natsconn.Down(err))
	}
	if answer, err := decodeCommand(m.Data); err != nil || answer != drain {
		return fmt.Errorf("node %s of cluster %s has not understood: %v", node, names.Cluster, err)
	}
	return nil
}

func encodeCommand(drain bool) []byte { return append(begin(kindCommand, writer{}), bit(drain)) }

func decodeCommand(b []byte) (drain bool, err error) {
	d := wire.NewDecoder(b)
	header(&d, kindCommand)
	drain = readBit(&d)
	return drain, d.End()
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
			drain, err := decodeCommand(m.Data)
			if err != nil {
				n.foreign(m.Subject, err)
				continue
			}
			n.log.Warn("a command for this node", "drain", drain)
			if drain {
				n.Drain()
			} else {
				n.Undrain()
			}
			_ = m.Respond(encodeCommand(drain)) // the operator may repeat it
		}
	}
}
