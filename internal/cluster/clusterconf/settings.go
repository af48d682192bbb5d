//go:build !core

// Package clusterconf makes the options of connections and servers of NATS from the settings.
package clusterconf

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"

	"github.com/amble-crawler/amble/internal/cluster/natsconn"
	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/service/listen"
)

// Names returns the names of what the cluster keeps on its servers.
func Names(c *config.Config) natsconn.Names { return natsconn.Names{Cluster: c.Cluster.Name} }

// Options returns the options of a connection to the NATS servers. The caller sets Server, if the
// process runs one, and Events.
func Options(c *config.Config) natsconn.Options {
	s := &c.Cluster
	return natsconn.Options{
		URLs: s.URLs, Node: c.Cluster.NodeName(), Names: Names(c), Credentials: s.Credentials, TLS: tlsOf(c),
	}
}

// OpenServers returns the NATS servers of cluster.urls beyond this machine to which a node says nothing of who it is:
// neither credentials nor a certificate.
func OpenServers(c *config.Config) (open []string) {
	s := &c.Cluster
	if s.Credentials != "" || s.TLSCert != "" {
		return nil
	}
	for _, text := range s.URLs {
		u, err := url.Parse(text)
		if err == nil && u.User == nil && !listen.IsLoopback(u.Host) {
			open = append(open, u.Redacted())
		}
	}
	return open
}

// Client returns the options of a connection of a command, which is no node. Without cluster.urls it
// connects to the NATS server inside the node on this machine.
func Client(c *config.Config) (natsconn.Options, error) {
	o := Options(c)
	if len(o.URLs) > 0 {
		return o, nil
	}
	host, port, err := net.SplitHostPort(c.Cluster.Embed.Listen)
	switch {
	case err != nil:
		return o,
			errors.New("cluster.urls and cluster.embed.listen are empty, so there is no cluster: name a NATS server " +
				"with --set cluster.urls=nats://HOST:4222, or the config file of a node with -c")
	case port == "0":
		return o,
			errors.New("cluster.embed.listen has port 0: the log of amble run says which one it is; name it with " +
				"--set cluster.urls=nats://HOST:PORT")
	case isUnspecified(host):
		host = "127.0.0.1"
	}
	o.URLs = []string{"nats://" + net.JoinHostPort(host, port)}
	return o, nil
}

func isUnspecified(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}

// Server returns the options of the NATS server inside the process, without Log.
func Server(c *config.Config) natsconn.ServerOptions {
	s, e := &c.Cluster, &c.Cluster.Embed
	directory := e.Directory
	if directory == "" {
		directory = filepath.Join(c.DataDir, "nats")
	}
	return natsconn.ServerOptions{
		Node: c.Cluster.NodeName(), Names: Names(c), Listen: e.Listen, ListenRoutes: e.ListenRoutes,
		Routes: e.Routes, Directory: directory, Credentials: s.Credentials, TLS: tlsOf(c),
	}
}

func tlsOf(c *config.Config) natsconn.TLS {
	s := &c.Cluster
	return natsconn.TLS{CA: s.TLSCA, Cert: s.TLSCert, Key: s.TLSKey}
}
