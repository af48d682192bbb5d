//go:build !core

package identity

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/amble-crawler/amble/internal/rules/wall"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// When requests are signed.
const (
	SignAlways = "always"
	SignAsked  = "asked" // by hosts that ask for it, or that show a challenge
	SignNever  = "never"
)

// Times of a signature.
const (
	lifetime = 10 * time.Minute // from created to expires
	renewal  = 5 * time.Minute  // the age from which another one is made
	skew     = 10 * time.Second // a server's clock may be behind by that
)

// SignerOptions are the options of a signer.
type SignerOptions struct {
	URL    string              // of the directory's origin: the value of Signature-Agent
	Sign   string              // SignAlways, SignAsked or SignNever
	Legacy []fetch.HostPattern // hosts that want Signature-Agent as a bare string, as drafts before 2026 had it
	Now    func() time.Time
	// Marks find challenges in the header of a response.
	Marks  *wall.Marks
	Counts Counts // zero: nothing is counted
}

// Signer signs requests. It is a fetch.Signer.
type Signer struct {
	o    SignerOptions
	keys *Keyring

	mu            sync.Mutex
	recent, older map[weburl.Origin]*origin // older becomes recent by use, and goes when recent is full
}

// origin is what is known of an origin.
type origin struct {
	asked  bool      // it wants signatures
	again  time.Time // when it was last promised another request
	label  string    // of the signature that it asked for; empty: any
	nonce  string    // for the next request alone; empty: none
	fields []fetch.Header
	counts OriginAnswers
	until  time.Time // when another signature is made
}

// maxOrigins bounds what is known of origins, twice.
const maxOrigins = 8192

// NewSigner returns a signer.
func NewSigner(o SignerOptions, keys *Keyring) *Signer {
	return &Signer{o: o, keys: keys, recent: make(map[weburl.Origin]*origin)}
}

// of returns what is known of an origin. The caller holds the lock.
func (s *Signer) of(u weburl.URL) *origin {
	key := u.Origin()
	if o := s.recent[key]; o != nil {
		return o
	}
	o := s.older[key]
	if o == nil {
		o = new(origin)
	}
	if len(s.recent) >= maxOrigins {
		s.older, s.recent = s.recent, make(map[weburl.Origin]*origin)
	}
	s.recent[key] = o
	return o
}

// Sign implements fetch.Signer. One signature serves its origin for some minutes, unless the origin gave a nonce.
// Without TLS nothing is signed: whoever reads it could use it.
func (s *Signer) Sign(u weburl.URL) []fetch.Header {
	if u.Scheme() != "https" || s.o.Sign == SignNever {
		return nil
	}
	now := s.o.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.of(u)
	switch {
	case s.o.Sign == SignAsked && !o.asked:
		return nil
	case o.nonce == "" && now.Before(o.until):
		return o.fields
	}
	fields, err := s.fields(u, o, now)
	if err != nil {
		return nil // without a key nobody signs; amble identity check says so
	}
	if o.nonce != "" {
		o.nonce = ""
		return fields
	}
	o.fields, o.until = fields, now.Add(renewal)
	return fields
}

// defaultLabel is the label of a signature if nobody asked for another.
const defaultLabel = "sig1"

// fields makes a signature.
func (s *Signer) fields(u weburl.URL, o *origin, now time.Time) ([]fetch.Header, error) {
	k, err := s.keys.Signing(now)
	if err != nil {
		return nil, err
	}
	c := claim{label: defaultLabel, created: now.Add(-skew), nonce: o.nonce, tag: tagRequest}
	if o.label != "" {
		c.label = o.label
	}
	c.expires = c.created.Add(lifetime)
	value, err := httpsfv.Marshal(httpsfv.NewItem(s.o.URL))
	if err != nil {
		return nil, err
	}
	agent, field := component{name: "signature-agent", value: value}, value
	if !slices.ContainsFunc(s.o.Legacy, func(p fetch.HostPattern) bool { return p.Match(u.Host()) }) {
		agent.params, field = []param{{"key", c.label}}, c.label+"="+value
	}
	input, signature, err := sign(k, []component{{name: "@authority", value: u.HostPort()}, agent}, c)
	if err != nil {
		return nil, err
	}
	return []fetch.Header{
		{Name: "Signature-Agent", Value: field}, {Name: "Signature-Input", Value: input},
		{Name: "Signature", Value: signature},
	}, nil
}

// Answered implements fetch.Signer.
func (s *Signer) Answered(u weburl.URL, signed bool, status int, header http.Header) (again bool) {
	if u.Scheme() == "https" {
		s.count(u, signed, status, s.o.Counts.add(signed, status, header, s.o.Marks))
	}
	asks := header["Accept-Signature"]
	if len(asks) == 0 && (signed || status < 400 || s.o.Sign != SignAsked) {
		return false // nearly all
	}
	if u.Scheme() != "https" || s.o.Sign == SignNever {
		return false
	}
	wants, label, nonce := acceptSignature(asks)
	if !wants && s.o.Marks.Find(header, nil).Tier != wall.TierHeader {
		return false
	}
	now := s.o.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.of(u)
	o.asked = true
	if label != o.label {
		o.label, o.until = label, time.Time{}
	}
	o.nonce = nonce
	if !isRefusal(status) || signed && nonce == "" || now.Sub(o.again) < lifetime {
		return false
	}
	if _, err := s.keys.Signing(now); err != nil {
		return false
	}
	o.again = now
	return true
}

// count counts a response of an origin; name is the maker of the wall that refused it.
func (s *Signer) count(u weburl.URL, signed bool, status int, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &s.of(u).counts
	if name != "" {
		c.Wall = name
	}
	if signed {
		c.Signed.add(status)
	} else {
		c.Unsigned.add(status)
	}
}

// Origins returns what signing changed at each origin that refused something or asked for signatures, of the origins
// that were requested last, by name. Any goroutine may call it.
func (s *Signer) Origins() (all []OriginAnswers) {
	s.mu.Lock()
	for _, known := range []map[weburl.Origin]*origin{s.recent, s.older} {
		for name, o := range known {
			if c := o.counts; o.asked || c.Signed.Refused+c.Unsigned.Refused > 0 {
				c.Origin, c.Asked = name.String(), o.asked
				all = append(all, c)
			}
		}
	}
	s.mu.Unlock()
	slices.SortFunc(all, func(a, b OriginAnswers) int { return strings.Compare(a.Origin, b.Origin) })
	return slices.CompactFunc(all, func(a, b OriginAnswers) bool { return a.Origin == b.Origin })
}

// Bounds of what a server may ask for.
const (
	maxLabel = 64
	maxNonce = 256
	maxAsked = 4 << 10 // bytes of Accept-Signature
)

// acceptSignature reads Accept-Signature (RFC 9421, section 5.1): whether it asks for a signature of this profile, its
// label and its nonce.
func acceptSignature(lines []string) (wants bool, label, nonce string) {
	size := 0
	for _, line := range lines {
		size += len(line)
	}
	if size == 0 || size > maxAsked {
		return false, "", ""
	}
	members, err := httpsfv.UnmarshalDictionary(lines)
	if err != nil {
		return false, "", ""
	}
	for _, name := range members.Names() {
		member, _ := members.Get(name)
		list, is := member.(httpsfv.InnerList)
		if !is || len(name) > maxLabel {
			continue
		}
		if tag, given := list.Params.Get("tag"); given && tag != tagRequest {
			continue
		}
		if algorithm, given := list.Params.Get("alg"); given && algorithm != "ed25519" {
			continue
		}
		if given, _ := list.Params.Get("nonce"); given != nil {
			text, is := given.(string)
			if !is || len(text) > maxNonce {
				continue
			}
			nonce = text
		}
		return true, name, nonce
	}
	return false, "", ""
}
