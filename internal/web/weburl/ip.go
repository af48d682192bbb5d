package weburl

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// endsInNumber reports whether a host counts as an IPv4 address: its last label is a number,
// decimal or hexadecimal (WHATWG URL Standard, section 3.5, "ends in a number").
func endsInNumber(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	if hexadecimal, found := strings.CutPrefix(last, "0x"); found {
		return strings.Trim(hexadecimal, "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}

// canonicalIPv4 reads one to four numbers. The last number fills the remaining bytes, as in inet_aton.
func canonicalIPv4(host string) (string, error) {
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return "", errIPv4(host)
	}
	var address uint64
	for i, part := range parts {
		n, ok := parseIPv4Number(part)
		bits := 8
		if i == len(parts)-1 {
			bits = 8 * (4 - i)
		}
		if !ok || n >= 1<<bits {
			return "", errIPv4(host)
		}
		address = address<<bits | n
	}
	return netip.AddrFrom4([4]byte{byte(address >> 24), byte(address >> 16), byte(address >> 8),
		byte(address)}).String(), nil
}

func errIPv4(host string) error {
	return fmt.Errorf("%w: the host %q ends in a number but is no IPv4 address", ErrSyntax, host)
}

// parseIPv4Number reads a decimal, an octal ("0" in front) or a hexadecimal number ("0x" in front; alone it is 0).
func parseIPv4Number(s string) (uint64, bool) {
	base := 10
	if hexadecimal, found := strings.CutPrefix(s, "0x"); found {
		if hexadecimal == "" {
			return 0, true
		}
		base, s = 16, hexadecimal
	} else if len(s) > 1 && s[0] == '0' {
		base, s = 8, s[1:]
	}
	n, err := strconv.ParseUint(s, base, 64)
	return n, err == nil
}

// canonicalIPv6 reads an address between brackets and returns its shortest form (RFC 5952, but
// never with an IPv4 address inside: WHATWG URL Standard, section 3.5, "IPv6 serializer").
func canonicalIPv6(raw string) (string, error) {
	inner := strings.TrimSuffix(raw[1:], "]")
	address, err := netip.ParseAddr(inner)
	if err != nil || len(inner) != len(raw)-2 || !address.Is6() || address.Zone() != "" {
		return "", fmt.Errorf("%w: the host %q is no IPv6 address", ErrSyntax, raw)
	}
	return "[" + formatIPv6(address.As16()) + "]", nil
}

func formatIPv6(b [16]byte) string {
	if address := netip.AddrFrom16(b); !address.Is4In6() {
		return address.String()
	}
	// An IPv4-mapped address is five zero groups, ffff, and the two groups that netip would write as IPv4.
	return fmt.Sprintf("::ffff:%x:%x", uint16(b[12])<<8|uint16(b[13]), uint16(b[14])<<8|uint16(b[15]))
}

// isIPv4 reports whether host is an IPv4 address in the form of canonicalIPv4: four decimal numbers
// up to 255 without leading zeros.
func isIPv4(host string) bool {
	dots, value, digits := 0, 0, 0
	for i := 0; i < len(host); i++ {
		c := host[i]
		switch {
		case c == '.' && digits > 0:
			dots, value, digits = dots+1, 0, 0
		case isDigit(c) && (digits == 0 || value > 0):
			value, digits = value*10+int(c-'0'), digits+1
			if value > 255 {
				return false
			}
		default:
			return false
		}
	}
	return dots == 3 && digits > 0
}
