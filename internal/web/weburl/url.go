package weburl

// MaxLength is the largest length of a canonical form, in bytes.
const MaxLength = 2048

// The two schemes a URL can have.
const (
	schemeHTTP  = "http"
	schemeHTTPS = "https"
)

// URL is an absolute http or https URL in canonical form. It is immutable and comparable with ==: two URLs are equal
// if and only if their texts are. The zero value is "no URL": all its parts are empty and its port is 0.
//
// A URL shares the memory of the text that it was parsed from, if that text was canonical already.
type URL struct {
	text    string
	host    uint16 // where the host starts: after "://"
	hostEnd uint16 // where it ends
	target  uint16 // where the request URI starts, and host and port end
	port    uint16 // effective port
}

// IsZero reports whether u is the zero value.
func (u URL) IsZero() bool { return u.text == "" }

// String returns the canonical form. Parse(u.String()) is u.
func (u URL) String() string { return u.text }

// Scheme returns "http" or "https".
func (u URL) Scheme() string {
	switch int(u.host) {
	case len("http://"):
		return schemeHTTP
	case len("https://"):
		return schemeHTTPS
	}
	return ""
}

// Host returns the host without the port: a domain in lower case ASCII without a final dot, an IPv4
// address of four decimal numbers, or an IPv6 address in its shortest form between brackets.
func (u URL) Host() string { return u.text[u.host:u.hostEnd] }

// Port returns the port to connect to, whether the text names it or not.
func (u URL) Port() uint16 { return u.port }

// HostPort returns host and port in the form of the Host header (RFC 9110 section 7.2), without the
// port if it is the scheme's default.
func (u URL) HostPort() string { return u.text[u.host:u.target] }

// RequestURI returns the path and the query, "?" included, in the form of the request line
// (origin-form, RFC 9112 section 3.2.1). It starts with "/".
func (u URL) RequestURI() string { return u.text[u.target:] }

// Origin returns scheme, host and port.
func (u URL) Origin() Origin { return Origin{Scheme: u.Scheme(), Host: u.Host(), Port: u.port} }

// pathEnd returns where the path ends: at the "?" of the query, or at the end of the text.
func (u URL) pathEnd() int {
	for i := int(u.target); i < len(u.text); i++ {
		if u.text[i] == '?' {
			return i
		}
	}
	return len(u.text)
}

// defaultPort returns the default port of a scheme.
func defaultPort(scheme string) uint16 {
	if scheme == schemeHTTPS {
		return 443
	}
	return 80
}
