package natsconn_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/amble-crawler/amble/internal/cluster/natsconn"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/natstest"
	"github.com/amble-crawler/amble/internal/testing/testkit"
)

var names = natsconn.Names{Cluster: "web"}

// use writes to a stream of the cluster and reads from it, as nodes do.
func use(t *testing.T, o natsconn.Options) error {
	t.Helper()
	nc, js, err := natsconn.Connect(o)
	if err != nil {
		return err
	}
	defer nc.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: o.Names.Stream(),
		Subjects: []string{o.Names.Subject("member", "*")}, AllowRollup: true})
	if err != nil {
		return err
	}
	subject := o.Names.Subject("member", "a")
	if _, err := js.Publish(ctx, subject, []byte("x")); err != nil {
		return err
	}
	if _, err := s.GetLastMsgForSubject(ctx, subject); err != nil {
		return err
	}
	c, err := s.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{FilterSubjects: []string{subject}})
	if err != nil {
		return err
	}
	m, err := c.Next(jetstream.FetchMaxWait(time.Minute))
	assert.True(t, err == nil && string(m.Data()) == "x", "%v, %v", m, err)
	sub, err := nc.SubscribeSync(o.Names.Subject("grant", "7"))
	if err == nil {
		err = nc.Publish(sub.Subject, nil)
	}
	if err == nil {
		_, err = sub.NextMsgWithContext(ctx)
	}
	return errors.Join(err, s.Purge(ctx), js.DeleteStream(ctx, o.Names.Stream()))
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// TestCredentials: a server inside a node takes the clients that have its credentials, and no
// others, and these can only touch their own cluster.
func TestCredentials(t *testing.T) {
	pair := must.Get(nkeys.CreateUser())(t)
	seed := must.Get(pair.Seed())(t)
	for kind, text := range map[string]string{"password": "amble:secret\n", "nkey": string(seed) + "\n"} {
		t.Run(kind, func(t *testing.T) {
			file := write(t, "credentials", text)
			s := natstest.Start(t, names, 1, func(_ int, o *natsconn.ServerOptions) { o.Credentials = file })
			o := natsconn.Options{URLs: s.URLs(), Node: "a", Names: names, Credentials: file}
			assert.NoError(t, use(t, o), "own cluster")
			stranger := o
			stranger.Credentials = write(t, "wrong", "amble:wrong")
			_, _, err := natsconn.Connect(stranger)
			assert.True(t, errors.Is(err, nats.ErrAuthorization), "wrong password: %v", err)
			stranger.Credentials = ""
			if _, _, err := natsconn.Connect(stranger); !errors.Is(err, nats.ErrAuthorization) {
				t.Errorf("no credentials: %v", err)
			}
			refused(t, o)
		})
	}
}

// refused holds that a client can neither read nor write what belongs to another cluster.
func refused(t *testing.T, o natsconn.Options) {
	t.Helper()
	failed := make(chan error, 100)
	o.Events = func(_ string, err error) { failed <- err }
	nc, js := natstest.Connect(t, o)
	defer nc.Close()
	for _, subject := range []string{"amble-other.member.a", "$JS.API.STREAM.CREATE.other", "$JS.API.STREAM.LIST"} {
		assert.NoError(t, nc.Publish(subject, nil))
		assert.Is(t, <-failed, nats.ErrPermissionViolation, "publish to", subject)
	}
	_, err := nc.SubscribeSync("amble-other.>")
	assert.True(t, err == nil, "%v", err)
	assert.Is(t, <-failed, nats.ErrPermissionViolation, "subscribe")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	assert.Fails(js.CreateStream(ctx, jetstream.StreamConfig{Name: "other", Subjects: []string{"x"}}))(t, nil,
		"a stream of another cluster was created")
}

// TestTLS: with a CA, both sides show certificates that it has signed.
func TestTLS(t *testing.T) {
	files := certificates(t)
	s := natstest.Start(t, names, 1, func(_ int, o *natsconn.ServerOptions) { o.TLS = files })
	o := natsconn.Options{URLs: s.URLs(), Node: "a", Names: names, TLS: files}
	must.Do(t, use(t, o))
	o.TLS = natsconn.TLS{CA: files.CA}
	assert.True(t, use(t, o) != nil, "a client without a certificate was taken")
	o.TLS = natsconn.TLS{CA: certificates(t).CA, Cert: files.Cert, Key: files.Key}
	assert.True(t, use(t, o) != nil, "a server whose certificate another CA has signed was taken")
	misnamed := &tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: &x509.Certificate{}, Host: "a"}}
	err := natsconn.Down(misnamed)
	if errors.Is(err, natsconn.ErrDown) || !strings.Contains(err.Error(), "has to name the host of its URL") {
		t.Errorf("a server whose certificate has another name: %v", err)
	}
}

// certificates makes a certificate of 127.0.0.1 that is its own CA.
func certificates(t *testing.T) natsconn.TLS {
	t.Helper()
	cert, key := testkit.Certify(t, t.TempDir())
	return natsconn.TLS{CA: cert, Cert: cert, Key: key}
}

// TestPortInUse: a server whose port another process uses says so at once.
func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	defer l.Close()
	_, err = natsconn.Start(
		natsconn.ServerOptions{Node: "a", Names: names, Listen: l.Addr().String(), Directory: t.TempDir()},
		time.Minute)
	assert.True(t, err != nil && strings.Contains(err.Error(), "in use"), "%v", err)
}

// TestRefusals: what cannot work is refused by name.
func TestRefusals(t *testing.T) {
	good := natsconn.ServerOptions{Node: "a", Names: names, Listen: "127.0.0.1:0", Directory: t.TempDir()}
	for want, alter := range map[string]func(*natsconn.ServerOptions){
		"want HOST:PORT":                            func(o *natsconn.ServerOptions) { o.Listen = "127.0.0.1" },
		"port is not a number":                      func(o *natsconn.ServerOptions) { o.Listen = "127.0.0.1:x" },
		"cluster.name: the name is empty":           func(o *natsconn.ServerOptions) { o.Names.Cluster = "" },
		"only letters":                              func(o *natsconn.ServerOptions) { o.Node = "a.b" },
		"cluster.prefix":                            func(o *natsconn.ServerOptions) { o.Names.Prefix = "a.>" },
		"directory is empty":                        func(o *natsconn.ServerOptions) { o.Directory = "" },
		"can be reached from other machines":        func(o *natsconn.ServerOptions) { o.Listen = "0.0.0.0:0" },
		"listen_routes: [::]:0 can be reached from": func(o *natsconn.ServerOptions) { o.ListenRoutes = "[::]:0" },
		"routes need listen_routes": func(
			o *natsconn.ServerOptions) {
			o.Routes = []string{"127.0.0.1:1"}
		},
		"no such file":        func(o *natsconn.ServerOptions) { o.Credentials = "/nowhere" },
		"needs a certificate": func(o *natsconn.ServerOptions) { o.TLS.CA = "/nowhere" },
		"takes no .creds file": func(o *natsconn.ServerOptions) {
			o.Credentials = write(t, "creds", creds(t))
		},
	} {
		o := good
		alter(&o)
		s, err := natsconn.Start(o, time.Minute)
		if err == nil {
			s.Stop()
		}
		assert.True(t, err != nil && strings.Contains(err.Error(), want), "want %q, got %v", want, err)
	}
	for want, urls := range map[string][]string{
		"cluster.urls is empty":        nil,
		"want nats://HOST:PORT":        {"http://127.0.0.1"},
		"without a user":               {"nats://a:b@127.0.0.1"},
		"connect to NATS at nats://12": {"nats://127.0.0.1:1"},
	} {
		_, _, err := natsconn.Connect(natsconn.Options{URLs: urls, Names: names})
		assert.True(t, err != nil && strings.Contains(err.Error(), want), "want %q, got %v", want, err)
	}
	for text, want := range map[string]string{
		"":                                 "want USER:PASSWORD",
		"a":                                "want USER:PASSWORD",
		":b":                               "empty",
		"a:":                               "empty",
		"a:b\nc:d":                         "one line",
		"SAAAA":                            "want USER:PASSWORD",
		"-----BEGIN NATS USER JWT-----\nx": "seed",
		strings.Repeat("a:", 1<<20):        "longer",
	} {
		_, err := natsconn.ReadCredentials(write(t, "credentials", text))
		assert.True(t, err != nil && strings.Contains(err.Error(), want), "%.20q: want %q, got %v", text, want, err)
	}
}

// creds returns a file as nsc writes it. Its JWT is not valid.
func creds(t *testing.T) string {
	t.Helper()
	pair := must.Get(nkeys.CreateUser())(t)
	seed := must.Get(pair.Seed())(t)
	return "-----BEGIN NATS USER JWT-----\neyJ\n------END NATS USER JWT------\n\n" +
		"-----BEGIN USER NKEY SEED-----\n" + string(seed) + "\n------END USER NKEY SEED------\n"
}

// TestInProcess: a node uses the server inside of it without the network, whatever that wants of
// others.
func TestInProcess(t *testing.T) {
	files, file := certificates(t), write(t, "credentials", "amble:secret")
	for name, alter := range map[string]func(*natsconn.ServerOptions){
		"plain":       func(*natsconn.ServerOptions) {},
		"TLS":         func(o *natsconn.ServerOptions) { o.TLS = files },
		"credentials": func(o *natsconn.ServerOptions) { o.TLS, o.Credentials = files, file },
	} {
		s := natstest.Start(t, names, 1, func(_ int, o *natsconn.ServerOptions) { alter(o) })
		o := natsconn.Options{Node: "a", Names: names, Server: s.Server(0), TLS: files}
		if name == "credentials" {
			o.Credentials = file
		}
		assert.NoError(t, use(t, o), name)
	}
}
