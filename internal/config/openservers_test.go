package config

import (
	"slices"
	"testing"
)

// TestOpenServers: servers beyond this machine that a node does not identify itself to are named, and no others.
func TestOpenServers(t *testing.T) {
	for _, tt := range []struct {
		set  func(*Cluster)
		want []string
	}{
		{func(*Cluster) {}, []string{"nats://n1.example:4222", "tls://192.0.2.7:4222"}},
		{func(c *Cluster) { c.Credentials = "file" }, nil},
		{func(c *Cluster) { c.TLSCert = "cert.pem" }, nil},
	} {
		c := Default()
		c.Cluster.URLs = []string{"nats://n1.example:4222", "nats://127.0.0.1:4222", "nats://localhost:4222",
			"nats://[::1]:4222",
			"tls://192.0.2.7:4222", "nats://user:secret@n2.example:4222"}
		tt.set(&c.Cluster)
		if got := c.OpenServers(); !slices.Equal(got, tt.want) {
			t.Errorf("%v, want %v", got, tt.want)
		}
	}
}
