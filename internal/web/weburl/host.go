package weburl

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// Limits of a host name: RFC 1035 section 2.3.4, and RFC 1123 section 2.1 for the text form.
const (
	maxHost  = 253 // octets of the name without its final dot
	maxLabel = 63  // octets of a label
	// maxHostInput bounds the work of IDNA. Four bytes for each octet of a legal name are enough.
	maxHostInput = 4 * maxHost
)

// canonicalHost is the host parser of the WHATWG URL Standard (section 3.5) for special schemes. It
// also refuses names that DNS cannot hold (empty or long labels), and drops the final dot: both
// forms name the same host, whose politeness must not be counted twice.
func canonicalHost(raw string) (string, error) {
	if strings.HasPrefix(raw, "[") {
		return canonicalIPv6(raw)
	}
	host, err := domainToASCII(decodePercent(raw))
	if err != nil {
		return "", err
	}
	if i := strings.IndexFunc(host, isForbiddenInDomain); i >= 0 {
		return "", fmt.Errorf("%w: %q in the host", ErrSyntax, host[i])
	}
	host = strings.TrimSuffix(host, ".")
	if host == "" {
		return "", ErrNoHost
	}
	if endsInNumber(host) {
		return canonicalIPv4(host)
	}
	return host, checkLabels(host)
}

// domainToASCII lower-cases an ASCII name and keeps labels that look like punycode. It applies IDNA
// (UTS #46, non-transitional) only to other names.
func domainToASCII(domain string) (string, error) {
	if len(domain) > maxHostInput {
		return "", fmt.Errorf("%w: a host of %d bytes", ErrSyntax, len(domain))
	}
	if isASCII(domain) {
		return strings.ToLower(domain), nil
	}
	if !utf8.ValidString(domain) {
		return "", fmt.Errorf("%w: the host is not UTF-8", ErrSyntax)
	}
	ascii, err := lookupProfile.ToASCII(domain)
	if err != nil {
		return "", fmt.Errorf("%w: host: %w", ErrSyntax, err)
	}
	return ascii, nil
}

// lookupProfile has the parameters of the standard's "domain to ASCII". Lengths are checked afterwards.
var lookupProfile = idna.New(
	idna.MapForLookup(),
	idna.ValidateLabels(true), // before CheckHyphens, which it would enable
	idna.BidiRule(),
	idna.CheckJoiners(true),
	idna.CheckHyphens(false),
	idna.StrictDomainName(false),
	idna.Transitional(false),
	idna.VerifyDNSLength(false),
)

// checkLabels refuses a name that DNS cannot look up.
func checkLabels(host string) error {
	if len(host) > maxHost {
		return fmt.Errorf("%w: a host of %d octets, %d are allowed", ErrSyntax, len(host), maxHost)
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" {
			return fmt.Errorf("%w: an empty label in the host", ErrSyntax)
		}
		if len(label) > maxLabel {
			return fmt.Errorf("%w: a host label of %d octets, %d are allowed", ErrSyntax, len(label), maxLabel)
		}
	}
	return nil
}

// isForbiddenInDomain matches the standard's forbidden domain code points.
func isForbiddenInDomain(r rune) bool {
	return r <= ' ' || r == 0x7F || strings.ContainsRune("#%/:<>?@[\\]^|", r)
}

// decodePercent replaces each %xx by its byte and keeps every other "%".
func decodePercent(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]) {
			b = append(b, hexValue(s[i+1])<<4|hexValue(s[i+2]))
			i += 2
			continue
		}
		b = append(b, s[i])
	}
	return string(b)
}

func isHex(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func hexValue(c byte) byte {
	if isDigit(c) {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
