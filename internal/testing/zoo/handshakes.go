package zoo

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"strings"
	"time"
)

// handshakes are servers with a bad TLS handshake, or none.
func handshakes(c *certificates) []server {
	over := behindTLS
	below := func(name string, do func(*client)) server {
		return server{name: name, secure: true, path: "/", serve: do}
	}
	h2 := c.config(c.good)
	h2.NextProtos = []string{"h2"}
	old := c.config(c.good)
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS10
	answer := func(g *client) {
		g.request()
		g.send(sized("text/html", "<p>should not be seen"))
	}
	return []server{
		below("tls-stalls", (*client).wait),
		below("tls-closes", func(*client) {}),
		below("tls-resets", func(g *client) {
			_, _ = g.r.Peek(1)
			g.reset()
		}),
		below("tls-is-http", func(g *client) {
			_, _ = g.r.Peek(1)
			g.send("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
			g.wait()
		}),
		below("tls-noise", func(g *client) { g.forever(0, "\x16\x03\x03\xff\xff"+strings.Repeat("\x00", 1000)) }),
		below("tls-alert", func(g *client) {
			_, _ = g.r.Peek(1)
			g.send("\x15\x03\x03\x00\x02\x02\x28")
			g.wait()
		}),
		over("tls-old", old, answer),
		over("certificate-self-signed", c.config(c.selfSigned), answer),
		over("certificate-expired", c.config(c.expired), answer),
		over("certificate-wrong-host", c.config(c.wrongHost), answer),
		over("h2-says-nothing", h2, (*client).wait),
		over("h2-is-http1", h2, func(g *client) {
			g.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			g.wait()
		}),
		over("h2-noise", h2, func(g *client) {
			g.forever(0,
				"\x00\x40\x00\x04\x00\x00\x00\x00\x00"+strings.Repeat("\x00", 1000))
		}),
		over("h2-pings", h2, func(g *client) {
			g.send("\x00\x00\x00\x04\x00\x00\x00\x00\x00") // SETTINGS
			g.forever(time.Millisecond, strings.Repeat("\x00\x00\x08\x06\x00\x00\x00\x00\x0012345678", 10))
		}),
		over("h2-goes-away", h2, func(g *client) {
			g.send("\x00\x00\x00\x04\x00\x00\x00\x00\x00",
				"\x00\x00\x08\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")
			g.wait()
		}),
		over("tls-cut-body", c.config(c.good), func(g *client) {
			g.request()
			g.send("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>the end is not signed")
			_ = g.raw.Close()
		}),
	}
}

// certificates are the certificates of the servers.
type certificates struct {
	roots                                *x509.CertPool
	good, selfSigned, expired, wrongHost tls.Certificate
}

func newCertificates(now time.Time) (*certificates, error) {
	authority, err := issue(nil, "zoo authority", now, time.Hour)
	if err != nil {
		return nil, err
	}
	c := &certificates{roots: x509.NewCertPool()}
	c.roots.AddCert(authority.Leaf)
	for _, one := range []struct {
		to    *tls.Certificate
		by    *tls.Certificate
		name  string
		lasts time.Duration
	}{
		{to: &c.good, by: authority, name: "*.zoo.test", lasts: time.Hour},
		{to: &c.selfSigned, name: "*.zoo.test", lasts: time.Hour},
		{to: &c.expired, by: authority, name: "*.zoo.test", lasts: -time.Minute},
		{to: &c.wrongHost, by: authority, name: "bank.example", lasts: time.Hour},
	} {
		made, err := issue(one.by, one.name, now, one.lasts)
		if err != nil {
			return nil, err
		}
		*one.to = *made
	}
	return c, nil
}

func (c *certificates) config(one tls.Certificate) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{one}, SessionTicketsDisabled: true}
}

// issue makes a certificate signed by by, or self-signed if that is nil.
func issue(by *tls.Certificate, name string, now time.Time, lasts time.Duration) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 62))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(lasts),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		BasicConstraintsValid: true, IsCA: by == nil,
	}
	parent, signer := template, any(key)
	if by != nil {
		parent, signer = by.Leaf, by.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, nil
}
