//go:build cluster

package natsconn_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/amble-crawler/amble/internal/cluster/natsconn"
	"github.com/amble-crawler/amble/internal/testing/natstest"
	"github.com/amble-crawler/amble/internal/testing/testkit"
)

// TestClusterOfServers: three servers inside of processes find each other, and go on after one of them
// was stopped and started again.
func TestClusterOfServers(t *testing.T) {
	file := write(t, "credentials", "amble:secret")
	s := natstest.Start(t, names, 3, func(_ int, o *natsconn.ServerOptions) { o.Credentials = file })
	nc, js := natstest.Connect(t, natsconn.Options{URLs: s.URLs(), Node: "a", Names: names, Credentials: file})
	defer nc.Close()
	subject := names.Subject("member", "a")
	eventually(t, func(ctx context.Context) error {
		_, err := js.CreateStream(ctx,
			jetstream.StreamConfig{Name: names.Stream(), Subjects: []string{subject}, Replicas: 3})
		return err
	})
	for range 2 {
		eventually(t, func(ctx context.Context) error {
			_, err := js.Publish(ctx, subject, []byte("x"))
			return err
		})
		leader := max(s.Leader(), 0)
		s.Stop(leader)
		eventually(t, func(ctx context.Context) error {
			_, err := js.Publish(ctx, subject, []byte("x"))
			return err
		})
		s.Start(leader)
	}
}

// eventually tries for as long as a busy machine may need.
func eventually(t *testing.T, do func(ctx context.Context) error) {
	t.Helper()
	testkit.Eventually(t, "an answer", func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		return do(ctx)
	})
}
