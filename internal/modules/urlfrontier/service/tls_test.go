package service

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
)

// certify writes a certificate of its own for loopback, with its key, and returns the files and the pool
// of those who trust it.
func certify(t *testing.T) (cert, key string, trusting *x509.CertPool) {
	t.Helper()
	cert, key = testkit.Certify(t, t.TempDir())
	certificate := must.Get(os.ReadFile(cert))(t)
	trusting = x509.NewCertPool()
	trusting.AppendCertsFromPEM(certificate)
	return cert, key, trusting
}

// TestTLS: with a certificate and a token the service speaks TLS 1.3 with clients that can, and none
// before 1.2, to those that believe the certificate and have the token.
func TestTLS(t *testing.T) {
	t.Parallel()
	cert, key, trusting := certify(t)
	_, _, others := certify(t)
	s := start(t, Options{TLSCert: cert, TLSKey: key, Token: "secret"}, newFakeCrawls())
	with := func(c *tls.Config) *client {
		return dial(t, s.Address(), grpc.WithTransportCredentials(credentials.NewTLS(c)))
	}
	for name, x := range map[string]struct {
		c     *client
		token string
		want  codes.Code
	}{
		"a client that trusts it": {with(&tls.Config{RootCAs: trusting}), "secret", codes.OK},
		"TLS 1.2": {with(&tls.Config{RootCAs: trusting, MaxVersion: tls.VersionTLS12}),
			"secret", codes.OK},
		"a wrong token":     {with(&tls.Config{RootCAs: trusting}), "wrong", codes.Unauthenticated},
		"another authority": {with(&tls.Config{RootCAs: others}), "secret", codes.Unavailable},
		"TLS 1.1": {with(&tls.Config{RootCAs: trusting, MinVersion: tls.VersionTLS10,
			MaxVersion: tls.VersionTLS11}), "secret", codes.Unavailable},
		"plaintext": {dial(t, s.Address(), grpc.WithTransportCredentials(insecure.NewCredentials())),
			"secret", codes.Unavailable},
		"another name than it is of": {with(&tls.Config{RootCAs: trusting, ServerName: "amble.test"}), "secret",
			codes.Unavailable},
	} {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+x.token)
		var from peer.Peer
		err := x.c.conn.Invoke(ctx, "/urlfrontier.URLFrontier/GetStats", &pbQueue{}, &pbStats{}, grpc.Peer(&from))
		assert.Equal(t, status.Code(err), x.want, name, err)
		version := uint16(tls.VersionTLS13)
		if name == "TLS 1.2" {
			version = tls.VersionTLS12
		}
		info, is := from.AuthInfo.(credentials.TLSInfo)
		assert.True(t, x.want != codes.OK || is && info.State.Version == version, "%s: %+v", name, from.AuthInfo)
	}
	public := Options{Listen: "0.0.0.0:0", TLSCert: cert, TLSKey: key, Token: "secret"}
	start(t, public, newFakeCrawls())
}
