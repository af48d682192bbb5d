//go:build !core

package config

import (
	"net"
	"net/url"
	"os"
	"regexp"
	"strings"
)

// checkModules checks the values of settings that only modules use.
func checkModules(k *checker) {
	k.urlfrontier()
	k.cluster()
}

// checkModulesTogether checks such settings that are valid alone.
func checkModulesTogether(k *checker) {
	k.serviceExposure()
	k.nodes()
}

// clusterName is what a cluster or a node can be called: a token of a NATS subject.
var clusterName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// NodeName returns the name of the node: cluster.node, or else the name of the machine up to its first
// dot.
func (c *Cluster) NodeName() string {
	if c.Node != "" {
		return c.Node
	}
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	name, _, _ = strings.Cut(name, ".")
	return name
}

// cluster checks the values of the section.
func (k *checker) cluster() {
	c := &k.c.Cluster
	for i, text := range c.URLs {
		if u, err := url.Parse(text); err == nil {
			text = u.Redacted()
		}
		if !isNATSURL(text) {
			k.rejectItem("cluster.urls", i, text,
				"want nats://HOST:PORT or tls://HOST:PORT; user and password go into the file of cluster.credentials")
		}
	}
	const wantName = "want 1 to 64 letters, digits, - and _"
	if !clusterName.MatchString(c.Name) {
		k.reject("cluster.name", wantName)
	}
	if c.Node != "" && !clusterName.MatchString(c.Node) {
		k.reject("cluster.node", wantName+`; or "" for the name of the machine`)
	}
	if c.Replicas != 1 && c.Replicas != 3 && c.Replicas != 5 {
		k.reject("cluster.replicas", "want 1, 3 or 5")
	}
	k.embedAddresses()
}

// embedAddresses checks the addresses of a NATS server inside the process.
func (k *checker) embedAddresses() {
	e := &k.c.Cluster.Embed
	const wantAddress = "want host:port such as 10.1.2.3:"
	if e.Listen != "" && !isListenAddress(e.Listen) {
		k.reject("cluster.embed.listen", wantAddress+`4222, or "" for no NATS server`)
	}
	if e.ListenRoutes != "" && !isListenAddress(e.ListenRoutes) {
		k.reject("cluster.embed.listen_routes", wantAddress+`6222, or "" for a single NATS server`)
	}
	for i, route := range e.Routes {
		if host, _, err := net.SplitHostPort(route); err != nil || host == "" || !isListenAddress(route) {
			k.rejectItem("cluster.embed.routes", i, route, wantAddress+"6222")
		}
	}
}

func isNATSURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "nats" || u.Scheme == "tls") && u.Hostname() != "" && u.User == nil &&
		strings.Trim(u.Path, "/") == "" && u.RawQuery == ""
}

// nodes checks settings of the section that are valid alone.
func (k *checker) nodes() {
	c := &k.c.Cluster
	e := &c.Embed
	k.together("cluster", c.TLSCert, c.TLSKey)
	if k.unsure("cluster.embed.listen") || k.unsure("cluster.embed.listen_routes") {
		return
	}
	if e.Listen == "" {
		for key, isSet := range map[string]bool{"cluster.embed.listen_routes": e.ListenRoutes != "",
			"cluster.embed.routes": len(e.Routes) > 0, "cluster.embed.directory": e.Directory != ""} {
			if isSet {
				k.conflict(key, "is for the NATS server inside amble, and cluster.embed.listen is empty: set that too")
			}
		}
	} else {
		k.embedded()
	}
	if k.c.InCluster() && c.Node == "" && !clusterName.MatchString(c.NodeName()) {
		k.conflict("cluster.node",
			"is empty, and the name of this machine cannot be used: give each node a name of its own")
	}
}

// embedded checks the settings of a NATS server inside the process.
func (k *checker) embedded() {
	c := &k.c.Cluster
	e := &c.Embed
	if len(e.Routes) > 0 && e.ListenRoutes == "" {
		k.conflict("cluster.embed.routes", "needs cluster.embed.listen_routes, where the other servers connect to")
	}
	if e.ListenRoutes == "" && len(c.URLs) == 0 && c.Replicas > 1 && !k.unsure("cluster.replicas") {
		k.conflict("cluster.replicas",
			"needs as many NATS servers, and this one is alone: set it to 1, or name the others "+
				"in cluster.embed.routes")
	}
	if c.Credentials != "" {
		return
	}
	for key, address := range map[string]string{"cluster.embed.listen": e.Listen,
		"cluster.embed.listen_routes": e.ListenRoutes} {
		if address != "" && !isLoopback(address) {
			k.conflict(key,
				"other machines can reach it, so cluster.credentials must be set too; or listen on 127.0.0.1")
		}
	}
}
