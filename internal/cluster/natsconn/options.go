// Package natsconn connects to the NATS servers of a cluster, and runs one of them inside the
// process if it has to. It names the subjects and streams of a cluster, so that everything that a
// cluster keeps is under one prefix and an account can be limited to it ([Names.Permissions]).
//
// The package knows nothing about the messages. internal/cluster/membership and internal/cluster/journal do.
package natsconn

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Options say where the servers are and who the node is.
type Options struct {
	// URLs are the servers: nats://HOST:PORT, or tls://HOST:PORT. One that answers is enough; it
	// names the others.
	URLs []string
	// Node is shown in the reports of the servers.
	Node string
	// Names are those of the cluster.
	Names Names
	// Credentials is a file with the credentials of the node, or empty: see [ReadCredentials].
	Credentials string
	// TLS are the files for TLS.
	TLS TLS
	// Server, unless nil, is the server of this process. If URLs is empty, it is the only one that is
	// connected to, without the network.
	Server *Server
	// IgnoreOthers makes the connection use URLs only, and not the servers that these name.
	IgnoreOthers bool
	// Events, unless nil, gets a line for each change of the connection. It is called by
	// goroutines of the connection, one at a time, and must not block.
	Events func(event string, err error)
}

// TLS names the files for TLS, in PEM form.
type TLS struct {
	// CA is the file with the certificates that sign those of the servers. Empty: those of the
	// system.
	CA string
	// Cert and Key are the files of the certificate of the node itself. Both or none.
	Cert, Key string
}

// reconnectWait is the time between two attempts to connect to a server. A lost connection is
// found after two pings without an answer.
const (
	connectTimeout = 5 * time.Second
	reconnectWait  = 250 * time.Millisecond
	pingInterval   = 5 * time.Second
)

// Connect connects to the servers. If none answers it returns an error that names them: ErrDown, unless
// the settings are wrong. Later on
// the connection is made again for ever, to any server of the cluster. While there is none,
// publishing fails at once: nothing is kept to be sent later.
func Connect(o Options) (*nats.Conn, jetstream.JetStream, error) {
	if err := o.Names.Validate(); err != nil {
		return nil, nil, err
	}
	options, err := o.nats()
	if err != nil {
		return nil, nil, err
	}
	urls, err := o.urls()
	if err != nil {
		return nil, nil, err
	}
	nc, err := nats.Connect(urls, options...)
	if err != nil {
		return nil, nil, fmt.Errorf("connect to NATS at %s: %w", urls, Down(err))
	}
	js, err := jetstream.New(nc)
	if err != nil {
		nc.Close()
		return nil, nil, fmt.Errorf("use JetStream at %s: %w", urls, err)
	}
	return nc, js, nil
}

// urls returns the servers as nats.go wants them.
func (o *Options) urls() (string, error) {
	urls := o.URLs
	if len(urls) == 0 && o.Server != nil {
		urls = []string{o.Server.URL()}
	}
	if len(urls) == 0 {
		return "", errors.New("cluster.urls is empty; name at least one server, as nats://HOST:4222")
	}
	list := ""
	for i, text := range urls {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "nats" && u.Scheme != "tls" || u.Hostname() == "" || u.User != nil {
			return "", fmt.Errorf("cluster.urls: %q: want nats://HOST:PORT or tls://HOST:PORT, without a user", text)
		}
		if i > 0 {
			list += ","
		}
		list += text
	}
	return list, nil
}

// nats returns the options of the connection.
func (o *Options) nats() ([]nats.Option, error) {
	options := []nats.Option{
		nats.Name("amble " + o.Node),
		nats.CustomInboxPrefix(o.Names.Subject("inbox")),
		nats.Timeout(connectTimeout),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectWait),
		nats.ReconnectJitter(reconnectWait, reconnectWait),
		nats.PingInterval(pingInterval),
		nats.MaxPingsOutstanding(2),
		nats.ReconnectBufSize(-1),
		nats.FlusherTimeout(connectTimeout),
		nats.IgnoreAuthErrorAbort(),
		nats.PermissionErrOnSubscribe(true),
	}
	if report := o.Events; report != nil {
		options = append(options,
			nats.DisconnectErrHandler(func(nc *nats.Conn, err error) {
				if !nc.IsClosed() {
					report("disconnected from NATS", err)
				}
			}),
			nats.ReconnectHandler(
				func(nc *nats.Conn) { report("connected to NATS at "+nc.ConnectedUrlRedacted(), nil) }),
			nats.ErrorHandler(
				func(_ *nats.Conn, _ *nats.Subscription, err error) { report("error of NATS", Plain(err)) }))
	} else {
		options = append(options, nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	}
	inProcess := o.Server != nil && len(o.URLs) == 0
	if inProcess {
		options = append(options, nats.InProcessServer(o.Server.server))
	}
	if o.TLS != (TLS{}) && (!inProcess || o.Server.secured) {
		config, err := o.TLS.client()
		if err != nil {
			return nil, err
		}
		config.InsecureSkipVerify = inProcess // the other end of the pipe is this process
		options = append(options, nats.Secure(config))
	}
	if o.IgnoreOthers {
		options = append(options, nats.IgnoreDiscoveredServers())
	}
	if o.Credentials != "" {
		c, err := ReadCredentials(o.Credentials)
		if err != nil {
			return nil, err
		}
		options = append(options, c.option())
	}
	return options, nil
}

// client returns the TLS settings of a connection to a server.
func (t TLS) client() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if err := t.loadCert(config); err != nil {
		return nil, err
	}
	roots, err := t.roots()
	config.RootCAs = roots
	return config, err
}

// server returns the TLS settings of a server, for its clients and for other servers. With a CA,
// both sides have to show a certificate that it has signed.
func (t TLS) server() (*tls.Config, error) {
	if t.Cert == "" {
		return nil, errors.New("a server with TLS needs a certificate: set cluster.tls_cert and cluster.tls_key")
	}
	config, err := t.client()
	if err == nil && config.RootCAs != nil {
		config.ClientCAs, config.ClientAuth = config.RootCAs, tls.RequireAndVerifyClientCert
	}
	return config, err
}

func (t TLS) loadCert(config *tls.Config) error {
	if (t.Cert == "") != (t.Key == "") {
		return errors.New("cluster.tls_cert and cluster.tls_key belong together; set both or none")
	}
	if t.Cert == "" {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return fmt.Errorf("cluster.tls_cert and cluster.tls_key: %w", err)
	}
	config.Certificates = []tls.Certificate{pair}
	return nil
}

func (t TLS) roots() (*x509.CertPool, error) {
	if t.CA == "" {
		return nil, nil
	}
	text, err := readSmall(t.CA)
	if err != nil {
		return nil, fmt.Errorf("cluster.tls_ca: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("cluster.tls_ca: %s: no certificate in PEM form is in it", t.CA)
	}
	return roots, nil
}

// maxFile bounds the files that are read here.
const maxFile = 1 << 20

// readSmall reads a file of at most maxFile bytes.
func readSmall(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err = errors.Join(err, f.Close()); err == nil && len(text) > maxFile {
		err = fmt.Errorf("%s is longer than %d bytes", path, maxFile)
	}
	return text, err
}
