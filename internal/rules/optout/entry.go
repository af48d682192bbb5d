package optout

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/web/weburl"
)

// Scope is what an entry is about. The names are stored.
type Scope string

const (
	ScopeHost   Scope = "host"   // one host name or address, on all ports
	ScopeDomain Scope = "domain" // a name and all names below it
	ScopeRange  Scope = "range"  // addresses, such as 192.0.2.0/24
	ScopePrefix Scope = "prefix" // URLs that start with a text
)

// Entry is one wish.
type Entry struct {
	Scope  Scope     `json:"scope"`
	Value  string    `json:"value"`            // in canonical form, as New makes it
	Reason string    `json:"reason,omitempty"` // who wished it and how, for people
	By     string    `json:"by,omitempty"`     // who recorded it
	At     time.Time `json:"at"`               // when it was recorded
	Until  time.Time `json:"until,omitzero"`   // when it ends; zero: never
}

// Bounds of an entry's texts, in bytes.
const maxReason, maxBy = 1024, 256

// ErrEntry is wrapped by the errors of New.
var ErrEntry = errors.New("opt-out")

// New returns an entry with its value in canonical form, or an error that says what is wrong with it
// and how it should look.
func New(e Entry) (Entry, error) {
	value, err := canonical(e.Scope, strings.TrimSpace(e.Value))
	if err != nil {
		return Entry{}, fmt.Errorf("%w of %s %q: %w", ErrEntry, e.Scope, e.Value, err)
	}
	if len(e.Reason) > maxReason || len(e.By) > maxBy {
		return Entry{}, fmt.Errorf("%w of %s %q: a reason has at most %d bytes, the name of who recorded it %d",
			ErrEntry, e.Scope, e.Value, maxReason, maxBy)
	}
	if !e.Until.IsZero() && !e.Until.After(e.At) {
		return Entry{}, fmt.Errorf("%w of %s %q: it would end before it begins", ErrEntry, e.Scope, e.Value)
	}
	e.Value = value
	e.At, e.Until = e.At.UTC(), e.Until.UTC()
	return e, nil
}

func canonical(scope Scope, value string) (string, error) {
	switch scope {
	case ScopeHost, ScopeDomain:
		return canonicalHost(value, scope == ScopeDomain)
	case ScopeRange:
		return canonicalRange(value)
	case ScopePrefix:
		u, err := weburl.Parse(value)
		if err != nil {
			return "", fmt.Errorf("%w: should look like https://example.org/private/", err)
		}
		return u.String(), nil
	}
	return "", fmt.Errorf("unknown scope: should be %s, %s, %s or %s", ScopeHost, ScopeDomain, ScopeRange, ScopePrefix)
}

func canonicalHost(value string, domain bool) (string, error) {
	if domain {
		value = strings.TrimPrefix(value, "*.")
	}
	if a, err := netip.ParseAddr(value); err == nil && a.Is6() {
		value = "[" + value + "]"
	}
	rest := value
	if strings.HasPrefix(value, "[") {
		rest = strings.TrimSuffix(value[1:], "]")
		_, rest, _ = strings.Cut(rest, "]")
	}
	u, err := weburl.Parse("http://" + value + "/")
	if err != nil || strings.ContainsAny(rest, `:/\@?#`) {
		return "", errors.New("should be a name without scheme, port and path, such as www.example.org")
	}
	host := u.Host()
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); domain && err == nil {
		return "", errors.New("an address has no names below it: the scope is host or range")
	}
	return host, nil
}

func canonicalRange(value string) (string, error) {
	if a, err := netip.ParseAddr(value); err == nil {
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()).String(), nil
	}
	p, err := netip.ParsePrefix(value)
	if err != nil || p.Addr().Is4In6() || p.Addr().Zone() != "" {
		return "", errors.New("should look like 192.0.2.0/24 or 2001:db8::/32")
	}
	return p.Masked().String(), nil
}

// InForce reports whether the entry counts at an instant.
func (e Entry) InForce(now time.Time) bool { return e.Until.IsZero() || now.Before(e.Until) }

// String returns the entry for people, such as
// "domain example.org since 2026-11-20: mail of 2026-11-20".
func (e Entry) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", e.Scope, e.Value)
	if !e.At.IsZero() {
		fmt.Fprintf(&b, " since %s", e.At.Format(time.DateOnly))
	}
	if !e.Until.IsZero() {
		fmt.Fprintf(&b, " until %s", e.Until.Format("2006-01-02 15:04 UTC"))
	}
	if e.By != "" {
		fmt.Fprintf(&b, " by %s", e.By)
	}
	if e.Reason != "" {
		fmt.Fprintf(&b, ": %s", e.Reason)
	}
	return b.String()
}
