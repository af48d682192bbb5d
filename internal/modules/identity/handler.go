//go:build !core

package identity

import (
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Site serves the public documents. It is a http.Handler, safe for concurrent use.
type Site struct {
	profile *Profile
	keys    *Keyring
	now     func() time.Time
	since   time.Time // when the list of addresses was made
	// Receipts returns the signed heads of the request log; nil: there are none.
	Receipts func() ([]byte, error)
	// Lookup serves what is known of one host, below PathLookup; nil: nothing does.
	Lookup http.Handler
}

// PathLookup is where Site.Lookup is.
const PathLookup = "/host"

// NewSite returns the site of a profile. now is the clock that it reads.
func NewSite(p *Profile, keys *Keyring, now func() time.Time) *Site {
	return &Site{profile: p, keys: keys, now: now, since: now()}
}

// cacheable is how long caches may keep the documents besides the key directory.
const cacheable = time.Hour

// ServeHTTP serves the documents, each at its path, and nothing else.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	if s.Lookup != nil && r.URL.Path == PathLookup {
		s.Lookup.ServeHTTP(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		s.refuse(w, http.StatusMethodNotAllowed)
		return
	}
	content, media, err := s.document(r.URL.Path)
	switch {
	case err != nil:
		s.refuse(w, http.StatusInternalServerError)
		return
	case content == nil:
		s.refuse(w, http.StatusNotFound)
		return
	}
	age := cacheable
	if media == typeDirectory {
		age = directoryAge
		h.Set("Access-Control-Allow-Origin", "*") // public keys, for verifiers in browsers
		if err := signDirectory(h, s.keys.Published(s.now()), content, s.authority(), s.now()); err != nil {
			s.refuse(w, http.StatusInternalServerError)
			return
		}
	}
	h.Set("Cache-Control", "public, max-age="+strconv.Itoa(int(age/time.Second)))
	h.Set("ETag", `"`+digest(content)+`"`)
	if r.Header.Get("If-None-Match") == h.Get("ETag") {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if media == typePage {
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; "+
			"base-uri 'none'; frame-ancestors 'none'")
		h.Set("Link", "<"+PathAddresses+`>; rel="client-ranges"`)
	}
	h.Set("Content-Type", media)
	h.Set("Content-Length", strconv.Itoa(len(content)))
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodGet {
		_, _ = w.Write(content) // a client that leaves gets no more
	}
}

// document returns the document at a path; nil: there is none.
func (s *Site) document(path string) (content []byte, media string, err error) {
	switch path {
	case PathPage:
		lookup := ""
		if s.Lookup != nil {
			lookup = PathLookup
		}
		content, err = s.profile.Page(lookup)
		return content, typePage, err
	case PathAddresses:
		content, err = s.profile.AddressList(s.since)
		return content, typeJSON, err
	case PathCard:
		content, err = s.profile.Card()
		return content, typeJSON, err
	case PathDirectory:
		keys := s.keys.Published(s.now())
		if len(keys) == 0 {
			return nil, "", nil // an empty set would say that there are keys, and none of them holds
		}
		content, err = Directory(keys)
		return content, typeDirectory, err
	case PathReceipts:
		if s.Receipts != nil {
			content, err = s.Receipts()
		}
		return content, typeLines, err
	case "/robots.txt":
		return []byte("User-agent: *\nDisallow:\n"), typeText, nil
	}
	return nil, "", nil
}

// authority is the one that the documents are published at. A request names any.
func (s *Site) authority() string {
	u, err := url.Parse(s.profile.URL)
	if err != nil {
		return ""
	}
	return u.Host
}

func (s *Site) refuse(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", typeText)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(http.StatusText(status) + "\n"))
}
