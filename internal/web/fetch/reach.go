package fetch

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"code.dny.dev/ssrf"
)

// errBlocked is wrapped by every refusal to dial.
var errBlocked = errors.New("blocked by the reach rules")

// ErrPort is wrapped by every refusal to dial because of the port, rather than the address.
var ErrPort = fmt.Errorf("%w of ports", errBlocked)

// reach decides which addresses and ports may be dialled. It is immutable.
type reach struct {
	guard        *ssrf.Guardian
	allowPrivate bool
	deny         []netip.Prefix
	ports        []uint16 // empty: all but bad
	bad          []uint16 // in ascending order
}

func newReach(o Options) *reach {
	var v4, v6 []netip.Prefix
	for _, p := range o.AllowRanges {
		if p.Addr().Is4() {
			v4 = append(v4, p)
		} else {
			v6 = append(v6, p)
		}
	}
	return &reach{
		guard: ssrf.New(ssrf.WithAnyPort(), ssrf.WithAnyNetwork(),
			ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...),
			ssrf.WithDeniedV4Prefixes(cloudMetadata()...)),
		allowPrivate: o.AllowPrivate,
		deny:         slices.Clone(o.DenyRanges),
		ports:        slices.Clone(o.Ports),
		bad:          badPorts(),
	}
}

// ParseRange reads a range of addresses, such as 10.0.0.0/8, or a single one.
func ParseRange(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q is neither an address nor a range such as 10.0.0.0/8", text)
	}
	return p.Masked(), nil
}

// cloudMetadata lists the metadata services that live in otherwise public
// address space: Azure's. All others are link-local, private or shared space.
func cloudMetadata() []netip.Prefix {
	return []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{168, 63, 129, 16}), 32)}
}

// checkAddr returns an error that wraps errBlocked if a may not be dialled.
func (r *reach) checkAddr(a netip.Addr) error {
	a = a.Unmap()
	switch {
	case !a.IsValid():
		return fmt.Errorf("no address: %w", errBlocked)
	case a.Zone() != "":
		return fmt.Errorf("address %s with a zone: %w", a, errBlocked)
	case a.IsUnspecified() || a.IsMulticast():
		return fmt.Errorf("address %s is no host: %w", a, errBlocked)
	}
	for _, p := range r.deny {
		if p.Contains(a) {
			return fmt.Errorf("address %s in denied range %s: %w", a, p, errBlocked)
		}
	}
	if r.allowPrivate {
		return nil
	}
	if err := r.guard.SafeAddr(a); err != nil {
		return fmt.Errorf("%w: %w", errBlocked, err)
	}
	return nil
}

// checkPort returns an error that wraps errBlocked if no connection may be made
// to that port.
func (r *reach) checkPort(port uint16) error {
	if port == 0 || (len(r.ports) > 0 && !slices.Contains(r.ports, port)) {
		return fmt.Errorf("port %d is not among the allowed ports: %w", port, ErrPort)
	}
	if _, bad := slices.BinarySearch(r.bad, port); bad && len(r.ports) == 0 {
		return fmt.Errorf("port %d is not for HTTP, and no browser would connect to it; fetch.ports may name it: %w",
			port, ErrPort)
	}
	return nil
}

// check is checkAddr and checkPort.
func (r *reach) check(ap netip.AddrPort) error {
	if err := r.checkPort(ap.Port()); err != nil {
		return err
	}
	return r.checkAddr(ap.Addr())
}

// badPorts are the ports that no browser connects to, in ascending order: other protocols than HTTP
// are spoken there, and a link must not be a way to talk to them. They are those of the Fetch
// standard, section "Port blocking" (https://fetch.spec.whatwg.org/#port-blocking), as of 2026-11.
func badPorts() []uint16 {
	return []uint16{
		1,     // tcpmux
		7,     // echo
		9,     // discard
		11,    // systat
		13,    // daytime
		15,    // netstat
		17,    // qotd
		19,    // chargen
		20,    // ftp-data
		21,    // ftp
		22,    // ssh
		23,    // telnet
		25,    // smtp
		37,    // time
		42,    // name
		43,    // nicname
		53,    // domain
		69,    // tftp
		77,    // a private RJE service
		79,    // finger
		87,    // a private terminal link
		95,    // supdup
		101,   // hostname
		102,   // iso-tsap
		103,   // gppitnp
		104,   // acr-nema
		109,   // pop2
		110,   // pop3
		111,   // sunrpc
		113,   // auth
		115,   // sftp
		117,   // uucp-path
		119,   // nntp
		123,   // ntp
		135,   // epmap
		137,   // netbios-ns
		139,   // netbios-ssn
		143,   // imap
		161,   // snmp
		179,   // bgp
		389,   // ldap
		427,   // svrloc
		465,   // submissions
		512,   // exec
		513,   // login
		514,   // shell
		515,   // printer
		526,   // tempo
		530,   // courier
		531,   // chat
		532,   // netnews
		540,   // uucp
		548,   // afp
		554,   // rtsp
		556,   // remotefs
		563,   // nntps
		587,   // submission
		601,   // syslog-conn
		636,   // ldaps
		989,   // ftps-data
		990,   // ftps
		993,   // imaps
		995,   // pop3s
		1719,  // h323gatestat
		1720,  // h323hostcall
		1723,  // pptp
		2049,  // nfs
		3659,  // apple-sasl
		4045,  // npp
		4190,  // sieve
		5060,  // sip
		5061,  // sips
		6000,  // x11
		6566,  // sane-port
		6665,  // ircu
		6666,  // ircu
		6667,  // ircu
		6668,  // ircu
		6669,  // ircu
		6679,  // osaut
		6697,  // ircs-u
		10080, // amanda
	}
}
