//go:build !core

package identity

import (
	"crypto/ed25519"
	"fmt"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"
)

// component is a part of a message that a signature covers (RFC 9421, section 2): its name, the parameters of the
// name, and its value.
type component struct {
	name   string
	params []param
	value  string
}

type param struct {
	name  string
	value any
}

func (c component) item() httpsfv.Item {
	item := httpsfv.NewItem(c.name)
	for _, p := range c.params {
		item.Params.Add(p.name, p.value)
	}
	return item
}

// The tags of the signatures.
const (
	tagRequest   = "web-bot-auth"
	tagDirectory = "http-message-signatures-directory"
)

// claim is what a signature says besides what it covers.
type claim struct {
	label            string // of the signature in its fields
	created, expires time.Time
	nonce            string // empty: none
	tag              string
}

// sign signs components of a message. input and signature are the values of Signature-Input and Signature, as members
// of dictionaries.
func sign(k *Key, components []component, c claim) (input, signature string, err error) {
	covered := httpsfv.InnerList{Params: httpsfv.NewParams()}
	for _, part := range components {
		covered.Items = append(covered.Items, part.item())
	}
	covered.Params.Add("created", c.created.Unix())
	covered.Params.Add("expires", c.expires.Unix())
	covered.Params.Add("keyid", k.ID)
	covered.Params.Add("alg", "ed25519")
	if c.nonce != "" {
		covered.Params.Add("nonce", c.nonce)
	}
	covered.Params.Add("tag", c.tag)
	base, params, err := signatureBase(components, covered)
	if err != nil {
		return "", "", err
	}
	value, err := httpsfv.Marshal(httpsfv.NewItem(ed25519.Sign(k.private, []byte(base))))
	if err != nil {
		return "", "", fmt.Errorf("sign: %w", err)
	}
	return c.label + "=" + params, c.label + "=" + value, nil
}

// signatureBase returns what is signed (RFC 9421, section 2.5), and the parameters in the form of its last line.
func signatureBase(components []component, covered httpsfv.InnerList) (base, params string, err error) {
	var b strings.Builder
	for _, c := range components {
		name, err := httpsfv.Marshal(c.item())
		if err != nil {
			return "", "", fmt.Errorf("sign: component %s: %w", c.name, err)
		}
		b.WriteString(name + ": " + c.value + "\n")
	}
	if params, err = httpsfv.Marshal(covered); err != nil {
		return "", "", fmt.Errorf("sign: parameters: %w", err)
	}
	b.WriteString(`"@signature-params": ` + params)
	return b.String(), params, nil
}
