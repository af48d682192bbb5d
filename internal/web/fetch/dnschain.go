package fetch

import (
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// A name server answers for a name, and for the names that its CNAME records lead to (RFC 1034, section
// 4.3.2). Records of other names in an answer say nothing about the host: net.Resolver would take their
// addresses all the same.

// maxChain bounds the names of a chain of CNAME records, as many name servers do.
const maxChain = 16

// dnsAnswers are the records of the answer section of a message that matter.
type dnsAnswers struct {
	aliases   map[string]dnsAlias // by owner; the first of each counts
	addresses []dnsAddress
}

type dnsAlias struct {
	target  string
	seconds uint32
}

type dnsAddress struct {
	owner   string
	address netip.Addr
	seconds uint32
}

// readAnswers reads the answer section, up to what cannot be read.
func readAnswers(p *dnsmessage.Parser) dnsAnswers {
	a := dnsAnswers{aliases: make(map[string]dnsAlias)}
	for {
		r, err := p.AnswerHeader()
		if err != nil {
			return a
		}
		owner, address := nameText(r.Name), netip.Addr{}
		switch r.Type {
		case dnsmessage.TypeA:
			var body dnsmessage.AResource
			body, err = p.AResource()
			address = netip.AddrFrom4(body.A)
		case dnsmessage.TypeAAAA:
			var body dnsmessage.AAAAResource
			body, err = p.AAAAResource()
			address = netip.AddrFrom16(body.AAAA)
		case dnsmessage.TypeCNAME:
			var body dnsmessage.CNAMEResource
			body, err = p.CNAMEResource()
			if _, has := a.aliases[owner]; err == nil && !has {
				a.aliases[owner] = dnsAlias{nameText(body.CNAME), r.TTL}
			}
		default:
			err = p.SkipAnswer()
		}
		if err != nil {
			return a
		}
		if address.IsValid() {
			a.addresses = append(a.addresses, dnsAddress{owner, address, r.TTL})
		}
	}
}

// chain returns the names that the CNAME records lead to from a name on, that one first, and the least
// time to live of these records.
func (a *dnsAnswers) chain(name string) (names []string, seconds uint32) {
	names, seconds = []string{name}, 1<<32-1
	for len(names) <= maxChain {
		alias, is := a.aliases[names[len(names)-1]]
		if !is || slices.Contains(names, alias.target) {
			break
		}
		names, seconds = append(names, alias.target), min(seconds, alias.seconds)
	}
	return names, seconds
}

// nameText is a name in lower case, without the dot at its end.
func nameText(n dnsmessage.Name) string { return strings.ToLower(strings.TrimSuffix(n.String(), ".")) }
