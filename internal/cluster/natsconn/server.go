package natsconn

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// ServerOptions are those of a NATS server inside the process.
type ServerOptions struct {
	// Node names the server among the others; each has another name.
	Node string
	// Names are those of the cluster.
	Names Names
	// Listen is the HOST:PORT for clients. Port 0 takes a free one.
	Listen string
	// ListenRoutes is the HOST:PORT for other servers. Empty: this is the only server.
	ListenRoutes string
	// Routes are the HOST:PORT of the servers, in any number. The own one may be among them.
	Routes []string
	// Directory holds what the server stores. No other process may use it.
	Directory string
	// Credentials, unless empty, is the file with the credentials that clients have to show. The
	// servers show a secret to each other that is made from them. A .creds file cannot be used.
	Credentials string
	// TLS are the files for TLS. With a certificate, clients and other servers have to use TLS.
	TLS TLS
	// Log, unless nil, gets what the server says. It is called by many goroutines and must not
	// block.
	Log func(level, text string) `json:"-"`
}

// Server is a NATS server inside the process. Each message is on disk before it is acknowledged.
// Its methods may be called concurrently.
type Server struct {
	server  *server.Server
	names   Names
	secured bool // its clients use TLS
}

// maxPayload bounds a message. It is the default of NATS, so a cluster can move to servers of its own.
const maxPayload = 1 << 20

// Start starts a server and waits until it takes connections. It need not have found the others by
// then. The server runs until [Server.Stop].
func Start(o ServerOptions, patience time.Duration) (*Server, error) {
	options, err := o.server()
	if err != nil {
		return nil, fmt.Errorf("cluster.embed: %w", err)
	}
	s, err := server.NewServer(options)
	if err != nil {
		return nil, fmt.Errorf("cluster.embed: start a NATS server: %w", err)
	}
	l := logger{o.Log, make(chan string, 1)}
	s.SetLoggerV2(l, false, false, false)
	s.Start()
	if err := ready(s, l, patience); err != nil {
		s.Shutdown()
		s.WaitForShutdown()
		return nil, fmt.Errorf("cluster.embed: the NATS server does not take connections at %s: %w; "+
			"look whether another process uses the port, or %s", o.Listen, err, o.Directory)
	}
	if !s.JetStreamEnabled() {
		s.Shutdown()
		s.WaitForShutdown()
		return nil, fmt.Errorf("cluster.embed: the NATS server cannot store in %s", o.Directory)
	}
	return &Server{server: s, names: o.Names, secured: options.TLSConfig != nil}, nil
}

// ready returns when a server takes connections, or why it does not.
func ready(s *server.Server, l logger, patience time.Duration) error {
	const step = 100 * time.Millisecond
	for waited := time.Duration(0); waited < patience; waited += step {
		if s.ReadyForConnections(step) {
			return nil
		}
		select {
		case text := <-l.fatal:
			return errors.New(text)
		default:
		}
	}
	return fmt.Errorf("waited for %v", patience)
}

// Stop stops the server and returns when it has ended.
func (s *Server) Stop() {
	s.server.Shutdown()
	s.server.WaitForShutdown()
}

// URL returns where clients connect to.
func (s *Server) URL() string { return s.server.ClientURL() }

// Leads reports whether the server leads the stream of the registers.
func (s *Server) Leads() bool { return s.server.JetStreamIsStreamLeader("$G", s.names.Stream()) }

// RoutesURL returns the HOST:PORT for other servers, or nothing.
func (s *Server) RoutesURL() string {
	if a := s.server.ClusterAddr(); a != nil {
		return a.String()
	}
	return ""
}

// server returns the options as the server wants them.
func (o *ServerOptions) server() (*server.Options, error) {
	host, port, err := splitAddress(o.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if err := errors.Join(o.Names.Validate(), ValidateName(o.Node)); err != nil {
		return nil, err
	}
	if o.Directory == "" {
		return nil, errors.New("directory is empty")
	}
	if o.Credentials == "" && !isLoopback(host) {
		return nil, fmt.Errorf("listen: %s can be reached from other machines; set cluster.credentials, "+
			"so that nobody else can write to the cluster", o.Listen)
	}
	s := &server.Options{
		ServerName: o.Node, Host: host, Port: port, NoSigs: true, DisableJetStreamBanner: true,
		MaxPayload: maxPayload, JetStream: true, StoreDir: o.Directory, SyncAlways: true,
	}
	if o.TLS != (TLS{}) {
		if s.TLSConfig, err = o.TLS.server(); err != nil {
			return nil, err
		}
		s.TLS, s.TLSVerify, s.TLSTimeout = true, s.TLSConfig.ClientCAs != nil, connectTimeout.Seconds()
	}
	var secret string
	if o.Credentials != "" {
		c, err := ReadCredentials(o.Credentials)
		if err != nil {
			return nil, err
		}
		if secret, err = o.admit(s, c); err != nil {
			return nil, err
		}
	}
	return s, o.join(s, secret)
}

// admit makes the server take clients with these credentials only, and only for the cluster.
func (o *ServerOptions) admit(s *server.Options, c *Credentials) (secret string, err error) {
	publish, subscribe := o.Names.Permissions()
	allowed := &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: publish},
		Subscribe: &server.SubjectPermission{Allow: subscribe},
	}
	switch {
	case c.creds != nil:
		return "", errors.New("a NATS server inside amble takes no .creds file; " +
			"use USER:PASSWORD or the seed of an NKey in cluster.credentials")
	case c.seed != nil:
		s.Nkeys = []*server.NkeyUser{{Nkey: c.publicKey(), Permissions: allowed}}
	default:
		s.Users = []*server.User{{Username: c.user, Password: c.password, Permissions: allowed}}
	}
	return c.routeSecret(), nil
}

// routeUser is the name that servers show to each other.
const routeUser = "amble"

// join makes the server one of several.
func (o *ServerOptions) join(s *server.Options, secret string) error {
	if o.ListenRoutes == "" {
		if len(o.Routes) > 0 {
			return errors.New("routes need listen_routes, where the other servers connect to")
		}
		return nil
	}
	host, port, err := splitAddress(o.ListenRoutes)
	if err != nil {
		return fmt.Errorf("listen_routes: %w", err)
	}
	if secret == "" && !isLoopback(host) {
		return fmt.Errorf("listen_routes: %s can be reached from other machines; set cluster.credentials",
			o.ListenRoutes)
	}
	s.Cluster = server.ClusterOpts{Name: o.Names.Base(), Host: host, Port: port, PoolSize: -1,
		ConnectRetries: 1 << 30, TLSConfig: s.TLSConfig, TLSTimeout: s.TLSTimeout}
	if secret != "" {
		s.Cluster.Username, s.Cluster.Password = routeUser, secret
	}
	for _, route := range o.Routes {
		if _, _, err := splitAddress(route); err != nil {
			return fmt.Errorf("routes: %w", err)
		}
		u := &url.URL{Scheme: "nats-route", Host: route}
		if secret != "" {
			u.User = url.UserPassword(routeUser, secret)
		}
		s.Routes = append(s.Routes, u)
	}
	return nil
}

// splitAddress splits HOST:PORT. Port 0 becomes one that the system picks.
func splitAddress(address string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, fmt.Errorf("%q: want HOST:PORT", address)
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("%q: the port is not a number up to 65535", address)
	}
	if n == 0 {
		return host, server.RANDOM_PORT, nil
	}
	return host, int(n), nil
}

func isLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

// logger passes on what a server says.
type logger struct {
	log   func(level, text string) // nil: nobody listens
	fatal chan string              // holds the first reason why the server cannot run
}

func (l logger) say(level, format string, args []any) {
	if l.log != nil {
		l.log(level, strings.TrimSpace(fmt.Sprintf(format, args...)))
	}
}

func (l logger) Noticef(format string, args ...any) { l.say("info", format, args) }
func (l logger) Warnf(format string, args ...any)   { l.say("warn", format, args) }
func (l logger) Errorf(format string, args ...any)  { l.say("error", format, args) }
func (l logger) Debugf(string, ...any)              {}
func (l logger) Tracef(string, ...any)              {}

// Fatalf is called by a server that cannot go on. It must not end the process.
func (l logger) Fatalf(format string, args ...any) {
	l.say("error", format, args)
	select {
	case l.fatal <- strings.TrimSpace(fmt.Sprintf(format, args...)):
	default:
	}
}
