//go:build !core

package identity

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/dunglas/httpsfv"
)

// directoryAge is how long caches may keep the key directory, directoryLifetime how long its signatures last: longer,
// since what caches hold is verified too.
const (
	directoryAge      = 24 * time.Hour
	directoryLifetime = 7 * 24 * time.Hour
)

// digest names a content, in a few letters.
func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:8])
}

// Directory returns the key directory: the public halves of keys as a JSON Web Key Set.
func Directory(keys []*Key) ([]byte, error) {
	set := struct {
		Keys []jwk `json:"keys"`
	}{Keys: []jwk{}}
	for _, k := range keys {
		set.Keys = append(set.Keys, k.publicJWK())
	}
	return json.Marshal(set)
}

// signDirectory adds the fields that prove possession of the keys: one signature by each key whose private half is
// here, of the content and of the authority that served it.
func signDirectory(h http.Header, keys []*Key, content []byte, authority string, now time.Time) error {
	sum := sha256.Sum256(content)
	value, err := httpsfv.Marshal(httpsfv.NewItem(sum[:]))
	if err != nil {
		return err
	}
	field := "sha-256=" + value
	h.Set("Content-Digest", field)
	components := []component{
		{name: "@authority", params: []param{{"req", true}}, value: authority},
		{name: "content-digest", value: field},
	}
	for i, k := range keys {
		if !k.CanSign() {
			continue
		}
		created := now.Add(-skew)
		input, signature, err := sign(k, components, claim{
			label: fmt.Sprintf("binding%d", i), created: created, expires: created.Add(directoryLifetime),
			tag: tagDirectory,
		})
		if err != nil {
			return err
		}
		h.Add("Signature-Input", input)
		h.Add("Signature", signature)
	}
	return nil
}
