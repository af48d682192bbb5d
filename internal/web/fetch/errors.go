package fetch

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Kind says what ended a request without a response. The numbers are stored on disk: a kind is
// added at the end and never renumbered.
type Kind uint8

// The kinds of failure.
const (
	// KindUnknown is a failure that none of the others describes.
	KindUnknown Kind = 0
	// KindCanceled means that the caller's context ended first.
	KindCanceled Kind = 1
	// KindDNSNotFound means that the name has no address, says its name server.
	KindDNSNotFound Kind = 2
	// KindDNSFailure means that the name servers gave no usable response.
	KindDNSFailure Kind = 3
	// KindDNSTimeout means that the name servers did not respond in time.
	KindDNSTimeout Kind = 4
	// KindBlockedAddress means that the address or port must not be dialled.
	KindBlockedAddress Kind = 5
	// KindRefused means that nothing listens at the address.
	KindRefused Kind = 6
	// KindUnreachable means that there is no route to the address.
	KindUnreachable Kind = 7
	// KindConnectTimeout means that the connection was not made in time.
	KindConnectTimeout Kind = 8
	// KindTLS means that the TLS handshake failed.
	KindTLS Kind = 9
	// KindCertificate means that the server's certificate is not valid for the host.
	KindCertificate Kind = 10
	// KindTLSTimeout means that the TLS handshake did not end in time.
	KindTLSTimeout Kind = 11
	// KindReset means that the connection was reset.
	KindReset Kind = 12
	// KindClosed means that the server closed the connection before a whole header.
	KindClosed Kind = 13
	// KindLostOnReuse means that a reused connection broke before the first byte of a response.
	KindLostOnReuse Kind = 14
	// KindHeaderTimeout means that the header did not arrive in time.
	KindHeaderTimeout Kind = 15
	// KindHeaderTooLarge means that the header exceeds Options.MaxHeader.
	KindHeaderTooLarge Kind = 16
	// KindBadResponse means that the received bytes are not an HTTP response.
	KindBadResponse Kind = 17
	// KindBodyTimeout means that the body stalled or did not end in time.
	KindBodyTimeout Kind = 18
	// KindIncompleteBody means that the body ended before its announced end.
	KindIncompleteBody Kind = 19
	// KindBadEncoding means that the content encoding is unknown, nested too deeply, or does not
	// match the bytes.
	KindBadEncoding Kind = 20
	// KindUnsupported means that the request cannot be sent as it is.
	KindUnsupported Kind = 21
	// KindLocal means that this machine lacks a resource: descriptors, ports, memory.
	KindLocal Kind = 22
	// KindTypeNotWanted means that the content is of a type that
	// Options.ContentTypes leaves out.
	KindTypeNotWanted Kind = 23
	// KindProxy means that the proxy could not be reached, or did not connect.
	KindProxy Kind = 24

	// KindTooSlow means that the host sent less than Options.MinRate.
	KindTooSlow Kind = 25

	// KindSignatureAsked means that the server asks who sends the request: see Signer.
	KindSignatureAsked Kind = 26

	kindCount = 27
)

// kindNames are the names shown to people and written to output.
func kindNames() [kindCount]string {
	return [kindCount]string{
		KindUnknown:        "unknown",
		KindCanceled:       "canceled",
		KindDNSNotFound:    "dns_not_found",
		KindDNSFailure:     "dns_failure",
		KindDNSTimeout:     "dns_timeout",
		KindBlockedAddress: "blocked_address",
		KindRefused:        "refused",
		KindUnreachable:    "unreachable",
		KindConnectTimeout: "connect_timeout",
		KindTLS:            "tls",
		KindCertificate:    "certificate",
		KindTLSTimeout:     "tls_timeout",
		KindReset:          "reset",
		KindClosed:         "closed",
		KindLostOnReuse:    "lost_on_reuse",
		KindHeaderTimeout:  "header_timeout",
		KindHeaderTooLarge: "header_too_large",
		KindBadResponse:    "bad_response",
		KindBodyTimeout:    "body_timeout",
		KindIncompleteBody: "incomplete_body",
		KindBadEncoding:    "bad_encoding",
		KindUnsupported:    "unsupported",
		KindLocal:          "local",
		KindTypeNotWanted:  "type_not_wanted",
		KindProxy:          "proxy",
		KindTooSlow:        "too_slow",
		KindSignatureAsked: "signature_asked",
	}
}

// String returns the stable name of the kind, such as "connect_timeout".
func (k Kind) String() string {
	if names := kindNames(); int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("kind_%d", uint8(k))
}

// IsKnown reports whether k is one of the kinds.
func (k Kind) IsKnown() bool { return k < kindCount }

// ParseKind is the inverse of Kind.String.
func ParseKind(name string) (k Kind, ok bool) {
	for k, known := range kindNames() {
		if name == known {
			return Kind(k), true
		}
	}
	return KindUnknown, false
}

// Temporary reports whether the same request may well succeed later without a change: networks,
// name servers and overloaded hosts recover; a bad certificate or a malformed response usually does
// not.
func (k Kind) Temporary() bool {
	switch k {
	case KindCanceled, KindDNSFailure, KindDNSTimeout, KindRefused, KindUnreachable,
		KindConnectTimeout, KindTLS, KindTLSTimeout, KindReset, KindClosed, KindLostOnReuse,
		KindHeaderTimeout, KindBodyTimeout, KindIncompleteBody, KindLocal, KindProxy, KindTooSlow,
		KindSignatureAsked:
		return true
	}
	return false
}

// Repeats reports whether the request has no result and does not count: it was broken off, it failed with a kept
// connection, or it goes again with a signature.
func (k Kind) Repeats() bool {
	return k == KindCanceled || k == KindLostOnReuse || k == KindSignatureAsked
}

// Error is the error of every failed [Client.Do] and [Client.Resolve].
type Error struct {
	// Kind is the kind of the failure.
	Kind Kind
	// Op is the phase in which it happened: "resolve", "request", "connect",
	// "tls", "send", "header" or "body".
	Op string
	// URL is the canonical URL of the request, or the host name for "resolve".
	URL string
	// Sent reports whether bytes of the request may have reached the server. If it is false,
	// certainly none have, and the request may be made again at once.
	Sent bool
	// Start and End bound the attempt on the client's clock.
	Start, End time.Time
	// Throttled is the time between Start and End for which the request waited for bandwidth: see
	// Client.SetBandwidth.
	Throttled time.Duration
	// Header is that of the response, as Response.Header; nil: none came.
	Header http.Header
	// Err is the cause.
	Err error
	// Partial is the incomplete response whose body broke off, without Body; Wire has what was
	// received. It is nil without Options.Capture, and if no whole header came. The owner of the
	// error closes it.
	Partial *Response
}

// Error names the URL, the phase, the kind and the cause.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "fetch %s: %s: %s", e.URL, e.Op, strings.ReplaceAll(e.Kind.String(), "_", " "))
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// maxDetail bounds Detail, in bytes.
const maxDetail = 120

// Detail says in words which of several faults it was, if the kind covers more than one; else it is
// empty. It is short and printable, though it may have words of the server.
func (e *Error) Detail() string {
	switch e.Kind {
	case KindUnknown, KindTLS, KindCertificate, KindBadResponse, KindIncompleteBody, KindBadEncoding, KindUnsupported,
		KindProxy:
	default:
		return ""
	}
	if e.Err == nil {
		return ""
	}
	var b strings.Builder
	for _, r := range e.Err.Error() {
		if r < ' ' || r > '~' {
			r = '?'
		}
		if b.Len() == maxDetail {
			return b.String()[:maxDetail-3] + "..."
		}
		b.WriteByte(byte(r))
	}
	return b.String()
}
