package clusterconf

import (
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/cluster/natsconn"
	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestNamesOfSettings: the settings take what can be a name, and the defaults are those of a cluster.
func TestNamesOfSettings(t *testing.T) {
	for _, name := range []string{"a", "A-b_9", strings.Repeat("x", 64), strings.Repeat("x", 65), "a.b",
		"a b", "ä", ""} {
		_, err := config.Load("", []string{"cluster.name=" + name}, nil)
		assert.Equal(t, (err == nil), (natsconn.ValidateName(name) == nil), name, err)
	}
	o, c := cluster.DefaultOptions(), config.Default().Cluster
	assert.True(t, c.Shards == o.Shards && c.Weight == int(o.Weight), "%d shards and a weight of %d, want %d and %d",
		c.Shards, c.Weight, o.Shards, o.Weight)
}

// TestClient: a command connects to the servers of the settings, or to the one inside the node.
func TestClient(t *testing.T) {
	for _, tt := range []struct{ set, want string }{
		{"cluster.urls=nats://a:1,tls://b:2", "nats://a:1"},
		{"cluster.embed.listen=127.0.0.7:4222", "nats://127.0.0.7:4222"},
		{"cluster.embed.listen=localhost:4222", "nats://localhost:4222"},
		{"cluster.embed.listen=127.0.0.1:0", ""},
		{"log.level=info", ""},
	} {
		c := must.Get(config.Load("", []string{"cluster.replicas=1", tt.set}, nil))(t)
		o, err := Client(c)
		assert.True(t, (tt.want != "" || err != nil) && (tt.want == "" || err == nil && o.URLs[0] == tt.want),
			"%s: %v, %v", tt.set, o.URLs, err)
	}
	c := must.Get(config.Load("",
		[]string{"cluster.credentials=x", "cluster.replicas=1", "cluster.embed.listen=[::]:4222"}, nil))(t)
	o, err := Client(c)
	assert.True(t, err == nil && o.URLs[0] == "nats://127.0.0.1:4222", "%v, %v", o.URLs, err)
}

// TestOpenServers: servers beyond this machine that a node does not identify itself to are named, and no others.
func TestOpenServers(t *testing.T) {
	for _, tt := range []struct {
		set  func(*config.Cluster)
		want []string
	}{
		{func(*config.Cluster) {}, []string{"nats://n1.example:4222", "tls://192.0.2.7:4222"}},
		{func(c *config.Cluster) { c.Credentials = "file" }, nil},
		{func(c *config.Cluster) { c.TLSCert = "cert.pem" }, nil},
	} {
		c := config.Default()
		c.Cluster.URLs = []string{"nats://n1.example:4222", "nats://127.0.0.1:4222", "nats://localhost:4222",
			"nats://[::1]:4222",
			"tls://192.0.2.7:4222", "nats://user:secret@n2.example:4222"}
		tt.set(&c.Cluster)
		assert.Slice(t, OpenServers(&c), tt.want)
	}
}
