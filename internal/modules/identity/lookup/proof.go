package lookup

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/amble-crawler/amble/internal/web/weburl"
)

// A host proves itself by a token that stands in its DNS or in a file. The token follows from a key that only the
// visitor has, and does not show the key: whoever reads the token cannot use it.
const (
	recordName = "_crawler-proof."             // before the name of the host: a TXT record with the token
	filePath   = "/.well-known/crawler-proof-" // and the first letters of the token: a file with the token
	keyLength  = 26                            // of rand.Text
)

// newKey returns a key.
func newKey() string { return rand.Text() }

// isKey reports whether text can be a key of newKey.
func isKey(text string) bool {
	return len(text) == keyLength && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}

// tokenOf returns the token of a key for a host.
func tokenOf(host, key string) string {
	sum := sha256.Sum256([]byte("crawler-proof\n" + host + "\n" + key))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:20]))
}

// fileOf returns the URL of the file with a token, at an origin.
func fileOf(origin, token string) (weburl.URL, error) {
	return weburl.Parse(strings.TrimSuffix(origin, "/") + filePath + token[:8] + ".txt")
}

// isName reports whether a host is a name, and no address: only names have TXT records.
func isName(host string) bool {
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err != nil
}

// Times of proofs.
const (
	proofLife   = time.Hour        // until the DNS is asked again
	retryDNS    = 10 * time.Second // after a look-up that found nothing
	fileLife    = 24 * time.Hour   // how long a fetched file proves
	lookupTime  = 3 * time.Second
	maxProofs   = 4096
	fileEvery   = 10 * time.Minute // between two files that are fetched from a host for anybody
	maxFileAges = 4096
)

// Names looks up TXT records. A *net.Resolver is one.
type Names interface {
	LookupTXT(ctx context.Context, name string) ([]string, error)
}

// proofs remembers which keys have been proven by the DNS, and when files were asked for.
type proofs struct {
	names Names
	now   func() time.Time

	mu    sync.Mutex
	known map[[2]string]proof  // by host and key
	files map[string]time.Time // by host
}

type proof struct {
	proven bool
	at     time.Time
}

func newProofs(names Names, now func() time.Time) *proofs {
	return &proofs{names: names, now: now, known: make(map[[2]string]proof), files: make(map[string]time.Time)}
}

// byDNS reports whether the DNS of a host has the token of a key.
func (p *proofs) byDNS(ctx context.Context, host, key string) bool {
	if !isName(host) {
		return false
	}
	id := [2]string{host, key}
	p.mu.Lock()
	last, found := p.known[id]
	p.mu.Unlock()
	age := p.now().Sub(last.at)
	if found && (last.proven && age < proofLife || !last.proven && age < retryDNS) {
		return last.proven
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	records, err := p.names.LookupTXT(ctx, recordName+host+".")
	proven := err == nil && slices.Contains(records, tokenOf(host, key))
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.known) >= maxProofs {
		clear(p.known)
	}
	p.known[id] = proof{proven, p.now()}
	return proven
}

// byFile reports whether the file that the crawl fetched last has the token.
func (p *proofs) byFile(ctx context.Context, c Crawl, origins []string, token string) (bool, error) {
	for _, origin := range origins {
		u, err := fileOf(origin, token)
		if err != nil {
			continue
		}
		story, err := c.URL(ctx, u)
		if err != nil {
			return false, err
		}
		if story.Known && story.Digest != "" && p.now().Sub(story.LastFetched) < fileLife &&
			slices.Contains(digestsOf(token), story.Digest) {
			return true, nil
		}
	}
	return false, nil
}

// digestsOf returns the digests of files with a token, with a line end or without, as the API shows them.
func digestsOf(token string) (all []string) {
	for _, end := range []string{"", "\n", "\r\n"} {
		sum := sha256.Sum256([]byte(token + end))
		all = append(all, fmt.Sprintf("sha256:%016x", binary.BigEndian.Uint64(sum[:])))
	}
	return all
}

// mayFetch reports whether a file may be fetched from a host now: nobody can make the crawler request much.
func (p *proofs) mayFetch(host string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if len(p.files) >= maxFileAges {
		for name, at := range p.files {
			if now.Sub(at) >= fileEvery {
				delete(p.files, name)
			}
		}
	}
	if at, found := p.files[host]; found && now.Sub(at) < fileEvery || !found && len(p.files) >= maxFileAges {
		return false
	}
	p.files[host] = now
	return true
}
