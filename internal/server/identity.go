package server

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"os"
	"sync"
	"time"
)

// identity is the certificate that the server shows. A renewed one is taken up with the next handshake.
type identity struct {
	certFile, keyFile string
	renewed           func(fingerprint string) error // called before another certificate is in force

	mu       sync.Mutex
	modified [2]time.Time // of the files in use
	current  *tls.Certificate
}

func newIdentity(certFile, keyFile string, renewed func(fingerprint string) error) (*identity, error) {
	i := &identity{certFile: certFile, keyFile: keyFile, renewed: renewed}
	modified, err := i.stat()
	if err != nil {
		return nil, fmt.Errorf("server.tls_cert: %w", err)
	}
	certificate, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("server.tls_cert: %s and %s: %w", certFile, keyFile, err)
	}
	i.modified, i.current = modified, &certificate
	return i, nil
}

func (i *identity) stat() (modified [2]time.Time, err error) {
	for n, name := range []string{i.certFile, i.keyFile} {
		info, err := os.Stat(name)
		if err != nil {
			return modified, err
		}
		modified[n] = info.ModTime()
	}
	return modified, nil
}

func (i *identity) config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return i.certificate(), nil },
	}
}

// certificate is the one in force. Files that cannot be read, or do not fit together because one of them is still to come, leave it as it is.
func (i *identity) certificate() *tls.Certificate {
	i.mu.Lock()
	defer i.mu.Unlock()
	modified, err := i.stat()
	if err != nil || modified == i.modified {
		return i.current
	}
	fresh, err := tls.LoadX509KeyPair(i.certFile, i.keyFile)
	if err != nil {
		return i.current
	}
	if i.renewed(fingerprint(fresh.Certificate[0])) != nil {
		return i.current // clients that know the old one only could not find us
	}
	i.current, i.modified = &fresh, modified
	return i.current
}

// fingerprint names the certificate in force.
func (i *identity) fingerprint() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return fingerprint(i.current.Certificate[0])
}

// fingerprint is the SHA-256 of a certificate as it goes over the wire.
func fingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}
