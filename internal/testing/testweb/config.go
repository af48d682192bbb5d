package testweb

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// Site is one host of a Web.
type Site struct {
	Host    string       // lower case, without port
	Handler http.Handler // handles every request to Host, /robots.txt included; nil: 404 everywhere

	// Group is the name of an address. Sites of the same group share one. Empty: an address of its
	// own.
	Group string

	// Alias is the name that a CNAME record of Host leads to; empty: there is none.
	Alias string

	// Secure has the site speak TLS, at a port of its own beside the site Beside, with whose name it is
	// reached: another origin of that host.
	Secure *tls.Config
	Beside string
}

// Network is what a web listens on and is reached by in place of the loopback.
type Network interface {
	Listen(network, address string) (net.Listener, error)
	Dial(ctx context.Context, network, address string) (net.Conn, error)
}

// Reach says how clients reach the sites of a Web.
type Reach uint8

// The ways to reach a site.
const (
	ByName    Reach = iota // by its name, which the web's DNS knows, at a port that all share; also through Proxy
	ByPort                 // by a port of its own at 127.0.0.1
	ByAddress              // by an address of its own, at a port that all share
)

// Config says what a Web serves. Its zero value has no sites.
type Config struct {
	Sites []Site

	// TTL is the lifetime of DNS answers, in whole seconds. 0: a minute.
	TTL time.Duration

	// MaxRequests bounds the record. Later requests are served and counted
	// (Dropped), but not kept. 0: DefaultMaxRequests.
	MaxRequests int

	// CountOnly keeps no record except the number of requests, for benchmarks: no clock is read and
	// Requests is always empty.
	CountOnly bool

	// Authorities are those of the server's certificates, in PEM form, if it speaks TLS: see NewWith.
	Authorities []byte

	// Reach is how clients reach the sites. With ByPort and ByAddress, Group has no effect.
	Reach Reach

	// MaxConns bounds the connections that are open at a time, and with it the time that a client may
	// take for its header fields: further ones are closed. 0: no bound.
	MaxConns int64

	// Port is the port of the web, for stores of an earlier process that name it. 0: any free port.
	Port uint16

	// Network is the network in virtual time on which the web listens. Nil: the loopback.
	Network Network

	// AbsenceTakes is the time until DNS answers that a name does not exist. AbsenceLasts is the
	// lifetime of that answer; 0: the answer has none.
	AbsenceTakes, AbsenceLasts time.Duration
}

// listener returns the function that opens listeners.
func (c *Config) listener() func(network, address string) (net.Listener, error) {
	if c.Network != nil {
		return c.Network.Listen
	}
	return net.Listen
}

// Dial makes a connection, as net.Dialer.DialContext does.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

func (c *Config) dial() Dial {
	if c.Network != nil {
		return c.Network.Dial
	}
	return new(net.Dialer).DialContext
}
