package natsconn

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// Credentials are what a node shows to the servers. The zero value shows nothing.
type Credentials struct {
	user, password string
	seed           []byte // of an NKey
	creds          []byte // a JWT and its seed, as nsc writes them
}

// ReadCredentials reads a file with credentials, in one of three forms: USER:PASSWORD in a line, the
// seed of an NKey of a user (SU...), or a .creds file with a JWT and its seed.
func ReadCredentials(path string) (*Credentials, error) {
	text, err := readSmall(path)
	if err != nil {
		return nil, fmt.Errorf("cluster.credentials: %w", err)
	}
	c, err := parseCredentials(text)
	if err != nil {
		return nil, fmt.Errorf("cluster.credentials: %s: %w", path, err)
	}
	return c, nil
}

func parseCredentials(text []byte) (*Credentials, error) {
	text = bytes.TrimSpace(text)
	if bytes.Contains(text, []byte("-----BEGIN NATS USER JWT-----")) {
		if _, err := nkeys.ParseDecoratedUserNKey(text); err != nil {
			return nil, errors.New("the seed of the user is missing, or not valid")
		}
		return &Credentials{creds: text}, nil
	}
	if bytes.ContainsAny(text, "\r\n") {
		return nil, errors.New("want one line, USER:PASSWORD or the seed of an NKey, or a .creds file")
	}
	if user, password, found := strings.Cut(string(text), ":"); found {
		if user == "" || password == "" {
			return nil, errors.New("the user or the password is empty")
		}
		return &Credentials{user: user, password: password}, nil
	}
	if prefix, _, err := nkeys.DecodeSeed(text); err != nil || prefix != nkeys.PrefixByteUser {
		return nil, errors.New("want USER:PASSWORD, the seed of an NKey of a user, or a .creds file")
	}
	return &Credentials{seed: text}, nil
}

// option returns the option of a connection with these credentials.
func (c *Credentials) option() nats.Option {
	switch {
	case c.creds != nil:
		return nats.UserCredentialBytes(c.creds)
	case c.seed != nil:
		return nats.Nkey(c.publicKey(), func(nonce []byte) ([]byte, error) {
			pair, err := nkeys.FromSeed(c.seed)
			if err != nil {
				return nil, err
			}
			defer pair.Wipe()
			return pair.Sign(nonce)
		})
	}
	return nats.UserInfo(c.user, c.password)
}

// publicKey returns the public key of the seed, or nothing.
func (c *Credentials) publicKey() string {
	pair, err := nkeys.FromSeed(c.seed)
	if err != nil {
		return ""
	}
	public, err := pair.PublicKey()
	if err != nil {
		return ""
	}
	return public
}

// routeSecret is the password that servers with these credentials show to each other.
func (c *Credentials) routeSecret() string {
	h := sha256.New()
	for _, part := range []string{"amble: routes of the servers inside the nodes", c.user, c.password, string(c.seed)} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))
}
