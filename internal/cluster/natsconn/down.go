package natsconn

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrDown marks an error that may go away by itself: no server answers, or the servers have no leader.
var ErrDown = errors.New("the NATS servers cannot be used now")

// The codes of JetStream for what does not go away by itself.
const (
	codeOffForAccount = 10039
	codeAlone         = 10074
	codeOff           = 10076
)

// lost is the error of a stream that is not there any more: somebody has deleted it, or its only server lost it. It
// may come back, so it is ErrDown too.
type lost struct{ error }

// Error says what is gone and what to do.
func (l lost) Error() string {
	return "a stream of the cluster is gone from the NATS servers, with what only it had: " + l.error.Error() +
		`; see "A log that is lost" in docs/CLUSTER.md`
}

// Unwrap returns the cause.
func (l lost) Unwrap() []error { return []error{ErrDown, l.error} }

// Down marks an error of a server, or of the way to it, with ErrDown, unless it stays until somebody
// changes a setting. Then it says which. nil stays nil.
func Down(err error) error {
	if err == nil {
		return nil
	}
	var refusal *jetstream.APIError
	if errors.As(err, &refusal) {
		switch refusal.ErrorCode {
		case jetstream.JSErrCodeStreamNotFound:
			return lost{err}
		case codeOff, codeOffForAccount:
			return fmt.Errorf("%w: switch JetStream on in the configuration of the NATS servers, for the account of "+
				"cluster.credentials too", err)
		case codeAlone:
			return fmt.Errorf("%w: this NATS server is no part of a cluster of servers; set cluster.replicas: 1, or "+
				"connect it with others", err)
		}
	}
	var untrusted *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	switch {
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired),
		errors.Is(err, nats.ErrAuthRevoked):
		return fmt.Errorf("%w: the NATS servers do not take the credentials of this node; look at cluster.credentials",
			err)
	case errors.As(err, &name):
		return fmt.Errorf(
			"%w: the certificate of a NATS server has to name the host of its URL, which is 127.0.0.1 for the "+
				"server on this machine; name another server with --set cluster.urls=tls://HOST:PORT", err)
	case errors.As(err, &untrusted), errors.As(err, &authority):
		return fmt.Errorf("%w: set cluster.tls_ca to the authorities that have signed the certificates of the servers",
			err)
	case errors.Is(err, nats.ErrSecureConnRequired), errors.Is(err, nats.ErrSecureConnWanted):
		return fmt.Errorf("%w: either all NATS servers use TLS or none; look at cluster.urls and cluster.tls_*", err)
	}
	return fmt.Errorf("%w: %w", ErrDown, Plain(err))
}

// Plain returns an error that says in plain words what an error of nats.go does not: nothing is kept for
// later while there is no connection, and a publish then fails since the buffer for that has no room. It
// wraps err.
func Plain(err error) error {
	if errors.Is(err, nats.ErrReconnectBufExceeded) {
		return unconnected{err}
	}
	return err
}

type unconnected struct{ error }

func (unconnected) Error() string   { return "there is no connection to a NATS server" }
func (u unconnected) Unwrap() error { return u.error }

// noJetStream returns an error that stays, if there is no answer because the server that the
// connection is with does not run JetStream.
func noJetStream(js jetstream.JetStream, err error) error {
	if !errors.Is(err, nats.ErrNoResponders) && !errors.Is(err, jetstream.ErrJetStreamNotEnabled) {
		return err
	}
	if is, _ := js.Conn().ConnectedServerJetStream(); is {
		return err
	}
	return jetstream.ErrJetStreamNotEnabled.APIError()
}
