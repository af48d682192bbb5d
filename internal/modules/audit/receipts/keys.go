//go:build !core

package receipts

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// maxKeyFile bounds a file with keys in bytes.
const maxKeyFile = 1 << 20

// ReadKeys reads public keys by their thumbprints (RFC 7638): of a JSON Web Key, of a key directory, or of all *.jwk
// files of a directory. One that does not exist has none.
func ReadKeys(path string) (map[string]ed25519.PublicKey, error) {
	keys := make(map[string]ed25519.PublicKey)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return keys, nil
	}
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	names := []string{path}
	if info.IsDir() {
		if names, err = filepath.Glob(filepath.Join(path, "*.jwk")); err != nil {
			return nil, fmt.Errorf("keys: %w", err)
		}
	}
	for _, name := range names {
		if err := readKeyFile(name, keys); err != nil {
			return nil, fmt.Errorf("keys: %w", err)
		}
	}
	return keys, nil
}

func readKeyFile(name string, keys map[string]ed25519.PublicKey) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	if err != nil {
		return err
	}
	type key struct {
		Curve string `json:"crv"`
		X     string `json:"x"`
	}
	var set struct {
		key
		Keys []key `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil {
		return fmt.Errorf("%s has no JSON Web Keys", name)
	}
	for _, k := range append(set.Keys, set.key) {
		x, err := base64.RawURLEncoding.DecodeString(k.X)
		if k.Curve != "Ed25519" || err != nil || len(x) != ed25519.PublicKeySize {
			continue
		}
		sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + k.X + `"}`))
		keys[base64.RawURLEncoding.EncodeToString(sum[:])] = x
	}
	return nil
}
