package weburl

import (
	"fmt"
	"strconv"
)

// Origin is the scheme, host and effective port that robots rules belong to (RFC 9309 section 2.3).
// It is comparable with ==. The zero value is the origin of the zero URL.
type Origin struct {
	Scheme string // "http" or "https"
	Host   string // as [URL.Host] returns it
	Port   uint16 // effective port, 0 only in the zero value
}

// String returns scheme://host, and :port if it is not the scheme's default. The zero value is "".
func (o Origin) String() string {
	if o == (Origin{}) {
		return ""
	}
	return o.Scheme + "://" + o.Host + o.portSuffix()
}

// URL returns the URL of the origin and a request URI. It checks nothing: requestURI must come from
// [URL.RequestURI] or be a valid constant, such as "/robots.txt". The zero origin gives the zero
// URL.
func (o Origin) URL(requestURI string) URL {
	if o == (Origin{}) {
		return URL{}
	}
	host := len(o.Scheme) + len("://")
	suffix := o.portSuffix()
	return URL{
		text:    o.Scheme + "://" + o.Host + suffix + requestURI,
		host:    uint16(host),
		hostEnd: uint16(host + len(o.Host)),
		target:  uint16(host + len(o.Host) + len(suffix)),
		port:    o.Port,
	}
}

// portSuffix returns the port as in the canonical form: nothing if it is the scheme's default.
func (o Origin) portSuffix() string {
	if o.Port == defaultPort(o.Scheme) {
		return ""
	}
	return ":" + strconv.Itoa(int(o.Port))
}

// ParseOrigin parses a result of [Origin.String], and any other URL without a path (other than "/")
// and a query. Its errors are those of [Parse].
func ParseOrigin(s string) (Origin, error) {
	u, err := Parse(s)
	if err != nil {
		return Origin{}, err
	}
	if u.RequestURI() != "/" {
		return Origin{}, refuse(s, fmt.Errorf("%w: an origin ends before %q", ErrSyntax, u.RequestURI()))
	}
	return u.Origin(), nil
}
