//go:build !core

package identity

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/amble-crawler/amble/internal/system"
)

// KeysDir is the name of the directory of keys under the data directory.
const KeysDir = "identity"

// keySuffix ends the names of key files, publicSuffix of those without a private half.
const (
	keySuffix    = ".jwk"
	publicSuffix = ".pub.jwk"
)

// maxKeys bounds the keys of a directory: verifiers accept few.
const maxKeys = 64

// overlap is how long a key is published after the next one has taken its place: signatures last ten minutes, and the
// directory may be kept by caches for a day.
const overlap = 25 * time.Hour

// reread is how old the keys in memory may be.
const reread = time.Minute

// ErrNoKey means that there is no key to sign with now.
var ErrNoKey = errors.New("there is no key to sign with")

// Keyring are the keys in a directory. Any goroutine may use it.
type Keyring struct {
	dir string

	mu   sync.Mutex
	keys []*Key // in the order of From
	read time.Time
}

// OpenKeyring reads the keys of a directory. One that does not exist has none.
func OpenKeyring(dir string, now time.Time) (*Keyring, error) {
	keys, err := readKeys(dir)
	return &Keyring{dir: dir, keys: keys, read: now}, err
}

func readKeys(dir string) (keys []*Key, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) { // others report it
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("keys of the identity: %w", err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), keySuffix) {
			continue
		}
		k, err := readKey(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		if keys = append(keys, k); len(keys) > maxKeys {
			return nil, fmt.Errorf("keys of the identity: %s has more than %d: remove old ones", dir, maxKeys)
		}
	}
	slices.SortFunc(keys, func(a, b *Key) int { return a.From.Compare(b.From) })
	return keys, nil
}

// readKey reads a key file. Nobody else may be able to read a private key.
func readKey(path string) (*Key, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("key of the identity: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("key of the identity: %w", err)
	}
	if !strings.HasSuffix(path, publicSuffix) && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("key of the identity %s: others can read it (mode %04o): chmod 600 it if nobody has, "+
			"otherwise remove it and make another with amble identity new", path, info.Mode().Perm())
	}
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	if err != nil {
		return nil, fmt.Errorf("key of the identity: %w", err)
	}
	k, err := parseKey(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("key of the identity %s: %w", path, err)
	case k.CanSign() && strings.HasSuffix(path, publicSuffix):
		return nil, fmt.Errorf("key of the identity %s: it has a private half, and the name of a public key", path)
	}
	return k, nil
}

// Add writes a key to the directory, which is made with it. A private key is readable for its owner alone.
func (r *Keyring) Add(k *Key) (path string, err error) {
	text, err := k.marshal()
	if err != nil {
		return "", fmt.Errorf("write a key: %w", err)
	}
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return "", fmt.Errorf("write a key: %w", err)
	}
	path = filepath.Join(r.dir, k.ID+keySuffix)
	if err := system.ReplaceFile(path, append(text, '\n'), 0o600, func() error { return nil }); err != nil {
		return "", fmt.Errorf("write a key: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keys, err = readKeys(r.dir)
	return path, err
}

// fresh returns the keys. It reads them again once in a while; if they cannot be read, those in memory stay.
func (r *Keyring) fresh(now time.Time) []*Key {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.read) >= reread {
		if keys, err := readKeys(r.dir); err == nil {
			r.keys = keys
		}
		r.read = now
	}
	return r.keys
}

// Signing returns the key to sign with: the newest whose time has come.
func (r *Keyring) Signing(now time.Time) (*Key, error) {
	for _, k := range slices.Backward(r.fresh(now)) {
		if k.CanSign() && !k.From.After(now) {
			return k, nil
		}
	}
	return nil, ErrNoKey
}

// Sign signs a content that is no message of HTTP, with the key in use.
func (r *Keyring) Sign(now time.Time, content []byte) (key string, signature []byte, err error) {
	k, err := r.Signing(now)
	if err != nil {
		return "", nil, err
	}
	return k.ID, ed25519.Sign(k.private, content), nil
}

// Published returns the keys that verifiers need: those of other processes, the one in use, those whose time comes,
// and those that were in use a day ago.
func (r *Keyring) Published(now time.Time) (keys []*Key) {
	var successor *Key // the next one in use after the key at hand
	for _, k := range slices.Backward(r.fresh(now)) {
		switch {
		case !k.CanSign() || k.From.After(now):
			keys = append(keys, k)
		case successor == nil || now.Sub(successor.From) < overlap:
			keys = append(keys, k)
			successor = k
		default:
			successor = k
		}
	}
	slices.Reverse(keys)
	return keys
}
