package identity

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// message is what a verifier sees of a request, or of a response and its request.
type message struct {
	method, authority, path string
	header                  http.Header
}

// memberOf returns the value of a member of a dictionary, as it stands there. It knows strings, byte sequences and
// inner lists, in which commas do not end a member.
func memberOf(h http.Header, field, label string) (string, bool) {
	text, quoted := strings.Join(h.Values(field), ","), false
	begin := 0
	for i := 0; i <= len(text); i++ {
		if i < len(text) && text[i] == '"' {
			quoted = !quoted
		}
		if i < len(text) && (quoted || text[i] != ',') {
			continue
		}
		name, value, ok := strings.Cut(strings.TrimSpace(text[begin:i]), "=")
		if ok && name == label {
			return value, true
		}
		begin = i + 1
	}
	return "", false
}

var (
	identifierOf = regexp.MustCompile(`"([^"]*)"((?:;[a-z]+(?:="[^"]*")?)*)`)
	numberOf     = func(name string) *regexp.Regexp { return regexp.MustCompile(`;` + name + `=(\d+)`) }
	textOf       = func(name string) *regexp.Regexp { return regexp.MustCompile(`;` + name + `="([^"]*)"`) }
)

// verify checks the signature with a label by RFC 9421, section 3.2, reading the fields as text: it shares no code with
// the signer. now zero: the times are not checked.
func verify(m message, label string, key ed25519.PublicKey, now time.Time) error {
	input, ok := memberOf(m.header, "Signature-Input", label)
	if !ok {
		return errors.New("no Signature-Input")
	}
	signature, ok := memberOf(m.header, "Signature", label)
	if !ok {
		return errors.New("no Signature")
	}
	covered, params, ok := strings.Cut(strings.TrimPrefix(input, "("), ")")
	if !ok {
		return errors.New("no list of components")
	}
	var base strings.Builder
	for _, id := range identifierOf.FindAllStringSubmatch(covered, -1) {
		value, err := m.value(id[1], id[2])
		if err != nil {
			return err
		}
		fmt.Fprintf(&base, "%s: %s\n", id[0], value)
	}
	fmt.Fprintf(&base, "\"@signature-params\": %s", input)
	raw, err := base64.StdEncoding.DecodeString(strings.Trim(signature, ":"))
	if err != nil || !ed25519.Verify(key, []byte(base.String()), raw) {
		return fmt.Errorf("the signature does not hold for\n%s", base.String())
	}
	if now.IsZero() {
		return nil
	}
	return inForce(params, now)
}

// value returns the value of a component.
func (m message) value(name, params string) (string, error) {
	switch name {
	case "@authority":
		return strings.ToLower(m.authority), nil
	case "@method":
		return m.method, nil
	case "@path":
		return m.path, nil
	}
	if key := textOf("key").FindStringSubmatch(params); key != nil {
		value, ok := memberOf(m.header, name, key[1])
		if !ok {
			return "", fmt.Errorf("%s has no member %s", name, key[1])
		}
		return value, nil
	}
	values := m.header.Values(name)
	if len(values) == 0 {
		return "", fmt.Errorf("no field %s", name)
	}
	return strings.Join(values, ", "), nil
}

// inForce checks created and expires.
func inForce(params string, now time.Time) error {
	var at [2]time.Time
	for i, name := range []string{"created", "expires"} {
		found := numberOf(name).FindStringSubmatch(params)
		if found == nil {
			return fmt.Errorf("no %s", name)
		}
		seconds, _ := strconv.ParseInt(found[1], 10, 64)
		at[i] = time.Unix(seconds, 0)
	}
	if at[0].After(now) || !at[1].After(now) || at[1].Sub(at[0]) > 10*time.Minute {
		return fmt.Errorf("created %v and expires %v at %v", at[0], at[1], now)
	}
	return nil
}

// verifyBot checks a request by the profile of Web Bot Auth.
func verifyBot(m message, key ed25519.PublicKey, agent string, now time.Time) error {
	label, _, _ := strings.Cut(m.header.Get("Signature-Input"), "=")
	if err := verify(m, label, key, now); err != nil {
		return err
	}
	input, _ := memberOf(m.header, "Signature-Input", label)
	for _, want := range []string{`"@authority"`, `"signature-agent";key="` + label + `"`, `;tag="web-bot-auth"`,
		`;keyid="` + thumbprintOf(key) + `"`, `;alg="ed25519"`} {
		if !strings.Contains(input, want) {
			return fmt.Errorf("%s is not in %s", want, input)
		}
	}
	if got, _ := memberOf(m.header, "Signature-Agent", label); got != `"`+agent+`"` {
		return fmt.Errorf("Signature-Agent is %s", m.header.Get("Signature-Agent"))
	}
	return nil
}

// thumbprintOf is RFC 7638 with RFC 8037, section 2: the members of the JSON in the order of their names.
func thumbprintOf(key ed25519.PublicKey) string {
	x := base64.RawURLEncoding.EncodeToString(key)
	sum := sha256.Sum256([]byte("{\"crv\":\"Ed25519\",\"kty\":\"OKP\",\"x\":\"" + x + "\"}"))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
