package natsconn_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/amble-crawler/amble/internal/cluster/natsconn"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/natstest"
)

// TestDown: what goes away by itself is marked, and what does not says which setting is wrong.
func TestDown(t *testing.T) {
	assert.NoError(t, natsconn.Down(nil), "no error is one")
	for _, err := range []error{io.EOF, nats.ErrNoServers, nats.ErrTimeout, nats.ErrNoResponders,
		context.DeadlineExceeded, &jetstream.APIError{Code: 503, ErrorCode: 10008}} {
		down := natsconn.Down(err)
		assert.True(t, errors.Is(down, natsconn.ErrDown) && errors.Is(down, err), "%v: %v", err, down)
	}
	gone := &jetstream.APIError{Code: 404, ErrorCode: jetstream.JSErrCodeStreamNotFound,
		Description: "stream not found"}
	if got := natsconn.Down(gone); !errors.Is(got, natsconn.ErrDown) || !strings.Contains(got.Error(), "is gone") {
		t.Errorf("a lost stream: %v", got)
	}
	for want, err := range map[string]error{
		"JetStream on":        &jetstream.APIError{ErrorCode: 10039},
		"cluster.credentials": nats.ErrAuthorization,
		"cluster.replicas: 1": &jetstream.APIError{ErrorCode: 10074},
		"cluster.tls_":        nats.ErrSecureConnWanted,
	} {
		got := natsconn.Down(err)
		assert.True(t, !errors.Is(got, natsconn.ErrDown) && strings.Contains(got.Error(), want), "%v: %v", err, got)
	}
}

// TestRefused: servers that can never do what is wanted are no servers that are down.
func TestRefused(t *testing.T) {
	t.Parallel()
	without, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true})
	must.Do(t, err)
	without.Start()
	defer without.WaitForShutdown()
	defer without.Shutdown()
	must.True(t, without.ReadyForConnections(time.Minute), "the server does not start")
	alone := natstest.Start(t, names, 1, nil)
	for _, tt := range []struct {
		url, want string
		replicas  int
	}{
		{without.ClientURL(), "switch JetStream on", 1},
		{"nats://" + alone.Addresses()[0], "set cluster.replicas: 1", 3},
	} {
		nc, js, err := natsconn.Connect(natsconn.Options{URLs: []string{tt.url}, Node: "a", Names: names})
		must.Do(t, err)
		_, err = natsconn.OpenStream(t.Context(), js, names, tt.replicas)
		assert.True(t, err != nil && !errors.Is(err, natsconn.ErrDown) && strings.Contains(err.Error(), tt.want),
			"%v, want %q", err, tt.want)
		nc.Close()
	}
	_, _, err = natsconn.Connect(natsconn.Options{URLs: []string{"nats://127.0.0.1:1"}, Node: "a", Names: names})
	assert.Is(t, err, natsconn.ErrDown, "nobody answers")
}

// TestPlain: a publish without a connection fails with words that say so.
func TestPlain(t *testing.T) {
	server := natstest.Start(t, names, 1, nil)
	nc, js, err := natsconn.Connect(
		natsconn.Options{URLs: []string{"nats://" + server.Addresses()[0]}, Node: "a", Names: names})
	must.Do(t, err)
	defer nc.Close()
	server.Stop(0)
	for nc.IsConnected() {
		time.Sleep(time.Millisecond)
	}
	_, err = js.Publish(t.Context(), names.Subject("x"), nil)
	down := natsconn.Down(err)
	assert.True(t, errors.Is(down, natsconn.ErrDown) && errors.Is(down, nats.ErrReconnectBufExceeded) &&
		strings.HasSuffix(down.Error(), ": there is no connection to a NATS server"), "%v", down)
}
