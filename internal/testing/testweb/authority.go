package testweb

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// Authority issues the certificates of a web with TLS: a root, an authority below it, and a
// certificate of its own for each host, as on the public web. The keys are those of ECDSA P-256.
type Authority struct {
	root    *x509.Certificate
	between *x509.Certificate
	key     *ecdsa.PrivateKey // of between
	hostKey *ecdsa.PrivateKey // of all hosts
}

// NewAuthority makes keys and certificates that are valid for a year.
func NewAuthority(now time.Time) (*Authority, error) {
	var keys [3]*ecdsa.PrivateKey
	for i := range keys {
		var err error
		if keys[i], err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			return nil, fmt.Errorf("testweb: key: %w", err)
		}
	}
	a := &Authority{key: keys[1], hostKey: keys[2]}
	var err error
	if a.root, err = issue(&x509.Certificate{Subject: pkix.Name{CommonName: "testweb root"}, IsCA: true},
		nil, &keys[0].PublicKey, keys[0], now); err != nil {
		return nil, err
	}
	a.between, err = issue(&x509.Certificate{Subject: pkix.Name{CommonName: "testweb authority"}, IsCA: true},
		a.root, &keys[1].PublicKey, keys[0], now)
	return a, err
}

// issue signs a certificate with the key of its parent; nil: it is its own.
func issue(c, parent *x509.Certificate, key *ecdsa.PublicKey, signer *ecdsa.PrivateKey,
	now time.Time) (*x509.Certificate, error) {
	c.SerialNumber, c.NotBefore, c.NotAfter = big.NewInt(1), now.Add(-time.Hour), now.AddDate(1, 0, 0)
	c.BasicConstraintsValid, c.KeyUsage = true, x509.KeyUsageDigitalSignature
	if c.IsCA {
		c.KeyUsage = x509.KeyUsageCertSign
	}
	if parent == nil {
		parent = c
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key, signer)
	if err != nil {
		return nil, fmt.Errorf("testweb: certificate: %w", err)
	}
	return x509.ParseCertificate(der)
}

// PEM returns the root.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.root.Raw})
}

// Certificate returns the certificate of a host with its chain. The host is a name or an address.
func (a *Authority) Certificate(host string, now time.Time) (*tls.Certificate, error) {
	c := &x509.Certificate{DNSNames: []string{host}}
	if ip := net.ParseIP(host); ip != nil {
		c.DNSNames, c.IPAddresses = nil, []net.IP{ip}
	}
	leaf, err := issue(c, a.between, &a.hostKey.PublicKey, a.key, now)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{leaf.Raw, a.between.Raw}, PrivateKey: a.hostKey, Leaf: leaf}, nil
}

// Config is that of a server for any host: its certificate has the name or the address that the client uses.
func (a *Authority) Config() *tls.Config {
	own := func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
		host := h.ServerName
		if host == "" {
			host = h.Conn.LocalAddr().(*net.TCPAddr).IP.String()
		}
		return a.Certificate(host, time.Now())
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: own}
}
