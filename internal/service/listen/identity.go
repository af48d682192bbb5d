package listen

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"os"
	"sync"
	"time"
)

// Identity is the certificate of the server. It takes up a replaced one with the next handshake.
type Identity struct {
	certFile, keyFile string
	replaced          func(fingerprint string) error // called before another certificate is in force

	mu       sync.Mutex
	modified [2]time.Time // of the files in use
	current  *tls.Certificate
}

// NewIdentity reads a certificate chain and its key, both PEM. replaced is called before another one is
// in force, and can refuse it; nil: nobody needs to know.
func NewIdentity(certFile, keyFile string, replaced func(fingerprint string) error) (*Identity, error) {
	i := &Identity{certFile: certFile, keyFile: keyFile, replaced: replaced}
	modified, err := i.stat()
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	certificate, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w", certFile, keyFile, err)
	}
	i.modified, i.current = modified, &certificate
	return i, nil
}

func (i *Identity) stat() (modified [2]time.Time, err error) {
	for n, name := range []string{i.certFile, i.keyFile} {
		info, err := os.Stat(name)
		if err != nil {
			return modified, err
		}
		modified[n] = info.ModTime()
	}
	return modified, nil
}

// Config returns the settings of TLS for a server.
func (i *Identity) Config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12, // clients on older releases of Java 8 offer no more
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return i.certificate(), nil },
	}
}

// certificate returns the certificate in force. If the files cannot be read, or do not belong
// together because one was not replaced yet, it keeps the old one.
func (i *Identity) certificate() *tls.Certificate {
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
	if i.replaced != nil && i.replaced(Fingerprint(fresh.Certificate[0])) != nil {
		return i.current // clients that know only the old one could not connect
	}
	i.current, i.modified = &fresh, modified
	return i.current
}

// Fingerprint names the certificate in force.
func (i *Identity) Fingerprint() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return Fingerprint(i.current.Certificate[0])
}

// Fingerprint is the SHA-256 of a certificate in DER.
func Fingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}
