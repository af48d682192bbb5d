package weburl

import (
	"slices"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
)

func TestRegistrableDomain(t *testing.T) {
	tests := []struct{ host, want string }{
		{"www.example.com", "example.com"},
		{"example.com", "example.com"},
		{"a.b.example.co.uk", "example.co.uk"},
		{"co.uk", "co.uk"},
		{"com", "com"},
		{"localhost", "localhost"},
		{"a.b.unknown-suffix", "b.unknown-suffix"},
		{"someone.github.io", "someone.github.io"},
		{"github.io", "github.io"},
		{"www.xn--bcher-kva.de", "xn--bcher-kva.de"},
		{"192.0.2.1", "192.0.2.1"},
		{"[2001:db8::1]", "[2001:db8::1]"},
		{"2.1.example.com", "example.com"},
		{"", ""},
	}
	for _, test := range tests {
		assert.Equal(t, RegistrableDomain(test.host), test.want, "RegistrableDomain", test.host)
	}
}

func TestReverseHost(t *testing.T) {
	tests := []struct{ host, want string }{
		{"www.example.com", "com.example.www"},
		{"example.com", "com.example"},
		{"localhost", "localhost"},
		{"", ""},
		{".", "."},
		{"a..b", "b..a"},
		{"192.0.2.1", "192.0.2.1"},
		{"[2001:db8::1]", "[2001:db8::1]"},
		{"1.2.3", "3.2.1"},
		{"1.2.3.256", "256.3.2.1"},
		{"01.2.3.4", "4.3.2.01"},
		{"a.3.2.1", "1.2.3.a"},
	}
	for _, test := range tests {
		assert.Equal(t, ReverseHost(test.host), test.want, "ReverseHost", test.host)
	}
}

func TestReversedHostsOfADomainSortTogether(t *testing.T) {
	hosts := []string{"www.example.com", "example.org", "example.com", "a.www.example.com"}
	for i := range hosts {
		hosts[i] = ReverseHost(hosts[i])
	}
	slices.Sort(hosts)
	want := []string{"com.example", "com.example.www", "com.example.www.a", "org.example"}
	assert.Slice(t, hosts, want)
}

func FuzzReverseHost(f *testing.F) {
	for _, test := range hostCases {
		f.Add(test.raw)
	}
	f.Fuzz(func(t *testing.T, host string) {
		assert.Equal(t, ReverseHost(ReverseHost(host)), host, "reversed twice")
	})
}
