package natsconn_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/amble-crawler/amble/internal/cluster/natsconn"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/natstest"
)

// TestFollow: whoever follows subjects asks the server for signs of life, so that a request that was lost is noticed
// soon, and leaves no consumer behind. The stream may have more consumers than a server takes by default.
func TestFollow(t *testing.T) {
	t.Parallel()
	nc, js := natstest.Connect(t, natsconn.Options{
		URLs: natstest.Start(t, names, 1, nil).URLs(), Node: "a", Names: names,
	})
	defer nc.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stream, err := natsconn.OpenStream(ctx, js, names, 1)
	must.Do(t, err)
	assert.Equal(t, stream.CachedInfo().Config.MaxConsumers, natsconn.MaxConsumers, "the stream may consumers")
	asked, err := nc.SubscribeSync("$JS.API.CONSUMER.MSG.NEXT.>")
	must.Do(t, err)
	must.Get(js.Publish(ctx, names.Subject("member", "a"), []byte("x")))(t)
	following, end := context.WithCancel(ctx)
	delivered := 0
	f := natsconn.Following{Subjects: []string{names.Subject("member", "*")}, Policy: jetstream.DeliverAllPolicy}
	err = natsconn.Follow(following, nc, stream, f, func(jetstream.RawStreamMsg) { delivered++ }, end)
	assert.True(t, delivered == 1 && errors.Is(err, context.Canceled), "%d messages, then %v", delivered, err)
	m, err := asked.NextMsgWithContext(ctx)
	must.Do(t, err)
	var request struct {
		Heartbeat time.Duration `json:"idle_heartbeat"`
	}
	err = json.Unmarshal(m.Data, &request)
	if every := request.Heartbeat; err != nil || every <= 0 || every > 2*time.Second {
		t.Errorf("a sign of life each %v is asked for: %v", every, err)
	}
	if info, err := stream.Info(ctx); err != nil || info.State.Consumers != 0 {
		t.Errorf("%d consumers are left: %v", info.State.Consumers, err)
	}
}
