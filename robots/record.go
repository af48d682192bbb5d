package robots

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
)

// Class is the result of the fetch of a robots.txt. The numbers are stored; new ones are added at the end.
type Class uint8

const (
	ClassNone        Class = iota // never fetched
	ClassFound                    // a file, perhaps an empty one: its rules count
	ClassUnavailable              // 4xx, too many redirects: everything is allowed
	ClassNotRobots                // 2xx, but no robots.txt (an HTML page): everything is allowed
	ClassForbidden                // 401 or 403 under Options.ForbiddenDenies: nothing is allowed
	ClassUnreachable              // 429, 5xx, no connection, broken transfer, a wall: see Options.Decide
	classEnd
)

// String returns the name used in reports.
func (c Class) String() string {
	switch c {
	case ClassFound:
		return "found"
	case ClassUnavailable:
		return "unavailable"
	case ClassNotRobots:
		return "not a robots file"
	case ClassForbidden:
		return "forbidden"
	case ClassUnreachable:
		return "unreachable"
	}
	return "never fetched"
}

// Failure is why an exchange brought no response that counts. The numbers are stored; new ones are added at the end.
type Failure uint8

const (
	FailureNone        Failure = iota
	FailureDNS                 // the name could not be resolved
	FailureConnect             // refused, reset or no route, before a response
	FailureTLS                 // handshake or certificate
	FailureTimeout             // the deadline passed
	FailureTransfer            // the response is incomplete, or its coding is broken (gzip, chunks)
	FailureBlocked             // the address may not be dialled
	FailureProtocol            // the response is invalid: not HTTP, or a 304 to a plain request
	FailureTargetBusy          // the target of a redirect has too many robots jobs of other hosts
	FailureCrash               // the response made the crawler itself fail
	FailureWall                // the response is that of a wall before the host: a challenge or a refusal
	FailureUnconfirmed         // in place of a good file came something else; it counts if the next response agrees
	failureEnd
)

// IsKnown reports whether f is one of the failures above.
func (f Failure) IsKnown() bool { return f < failureEnd }

// String returns the name used in reports.
func (f Failure) String() string {
	switch f {
	case FailureDNS:
		return "dns"
	case FailureConnect:
		return "connect"
	case FailureTLS:
		return "tls"
	case FailureTimeout:
		return "timeout"
	case FailureTransfer:
		return "broken transfer"
	case FailureBlocked:
		return "blocked address"
	case FailureProtocol:
		return "protocol"
	case FailureTargetBusy:
		return "redirect target busy"
	case FailureCrash:
		return "crash"
	case FailureWall:
		return "wall"
	case FailureUnconfirmed:
		return "not confirmed"
	}
	return "none"
}

// Record is the robots record of one origin. It is plain data: copy it, store it with AppendBinary,
// and let Options.Next make the next one. The zero value means that the file was never fetched.
//
// An unreachable file changes nothing that was known before: Copy, Body, FinalURL, Fetched, Expires and the validators
// always belong to the last response, Class, Status and Failure to the last attempt.
type Record struct {
	Class   Class
	Failure Failure // of the last attempt
	Copy    Class   // of the last response: ClassNone, or any class except ClassUnreachable
	Cut     bool    // Body is the beginning of a longer file

	Status   int    // HTTP status of the last attempt, 0: there was no response
	Body     []byte // with Copy ClassFound, at most MaxBody octets; read-only
	FinalURL string // of the response, after all redirects

	Fetched time.Time // when the response arrived, or a 304 confirmed it
	Expires time.Time // when its lifetime ends
	Refresh time.Time // when to fetch again: before Expires, or after the backoff while unreachable

	FirstUnreachable time.Time // when the failures in a row began; zero while reachable
	Failures         int       // attempts that failed in a row
	Redirects        int       // that led to the response

	ETag, LastModified string // validators of Body, for FinalURL only; see Validators
}

// Rules returns the rules for URLs, for any class: those of the file, or rules that allow or disallow everything. For
// an unreachable file they are those of its last good copy; Options.Decide says whether they count.
func (r Record) Rules(tokens ...string) *Rules { return r.read(nil, tokens) }

// Read returns Rules and the sitemaps that the file names ([File.Sitemaps]), in one pass over the
// file. Only a file that was found has sitemaps, not its last good copy.
func (r Record) Read(tokens ...string) (rules *Rules, urls []string) {
	if r.Class != ClassFound {
		return r.Rules(tokens...), nil
	}
	s := sitemaps{base: r.FinalURL}
	rules = r.read(&s, tokens)
	return rules, s.urls
}

func (r Record) read(s *sitemaps, tokens []string) *Rules {
	class := r.Class
	if class == ClassUnreachable {
		class = r.Copy
	}
	switch class {
	case ClassFound:
		text, _, _ := readable(r.Body)
		rules := compile(text, tokens, s)
		rules.version = VersionOf(r.Body)
		return rules
	case ClassUnavailable:
		return answer(true, ReasonUnavailable)
	case ClassNotRobots:
		return answer(true, ReasonNotRobots)
	case ClassForbidden:
		return answer(false, ReasonForbidden)
	}
	return answer(false, ReasonUnreachable)
}

// Version identifies the content of a robots.txt: the first half of the SHA-256 of its body, as
// received. The zero value means that there is no file.
type Version [16]byte

// ParseVersion is the inverse of String.
func ParseVersion(s string) (v Version, err error) {
	if len(s) != hex.EncodedLen(len(v)) {
		return v, fmt.Errorf("version %q of a robots.txt: should have %d digits", s, hex.EncodedLen(len(v)))
	}
	_, err = hex.Decode(v[:], []byte(s))
	return v, err
}

// VersionOf returns the version of a body.
func VersionOf(body []byte) (v Version) {
	sum := sha256.Sum256(body)
	copy(v[:], sum[:])
	return v
}

// String returns the version in hexadecimal digits, as sha256sum begins.
func (v Version) String() string { return hex.EncodeToString(v[:]) }

// IsZero reports whether there is no file.
func (v Version) IsZero() bool { return v == Version{} }

// Validators returns the values of If-None-Match and If-Modified-Since for a request to url. Both
// are empty if the copy has another URL.
func (r Record) Validators(url string) (etag, lastModified string) {
	if r.Copy != ClassFound || url != r.FinalURL {
		return "", ""
	}
	return r.ETag, r.LastModified
}

// Forget returns the record with an expired lifetime: the file is fetched again, in full, before
// the next page. Its content stays, for comparison with the next response; its failures do not.
func (r Record) Forget() Record {
	if r.Copy == ClassNone {
		return Record{}
	}
	return Record{Class: r.Copy, Copy: r.Copy, Body: r.Body, Cut: r.Cut, FinalURL: r.FinalURL, Redirects: r.Redirects}
}
