package weburl

import (
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
)

func TestNames(t *testing.T) {
	host, domain := Names{Name: "a.test"}, Names{Name: "a.test", Below: true}
	for _, c := range []struct {
		name         string
		host, domain bool
	}{
		{"a.test", true, true}, {"www.a.test", false, true}, {"x.y.a.test", false, true}, {"aa.test", false, false},
		{"a.test.example", false, false}, {"test", false, false}, {"", false, false},
	} {
		assert.True(t, host.Has(c.name) == c.host && domain.Has(c.name) == c.domain, "%q: %v, with names below %v",
			c.name, host.Has(c.name), domain.Has(c.name))
	}
	assert.True(t, !(Names{}).Has("") && !(Names{}).In([]byte("a.test")) && domain.HasURL("http://WWW.a.test./x") &&
		!domain.HasURL("a.test"), "the empty set, or a URL")
}

func TestNamesIn(t *testing.T) {
	host, domain := Names{Name: "a.test"}, Names{Name: "a.test", Below: true}
	for _, c := range []struct {
		text         string
		host, domain int
	}{
		{"http://a.test/", 1, 1}, {"a.test a.test", 2, 2}, {"A.TEST", 1, 1}, {"a.test.", 1, 1},
		{"see a.test. Then", 1, 1},
		{"http://www.a.test/", 0, 1}, {"http://aa.test/", 0, 0}, {"a.test.example", 0, 0}, {"a.tests", 0, 0},
		{"-a.test", 0, 0}, {"x\x00a.test\x01", 1, 1}, {"?u=http%3A%2F%2Fa.test", 1, 1}, {"..a.test", 1, 1},
		{"éa.test", 0, 0},
	} {
		h, d := host.Count([]byte(c.text)), domain.Count([]byte(c.text))
		assert.True(t, h == c.host && d == c.domain, "%q: %d, with names below %d", c.text, h, d)
	}
	bücher := Names{Name: "xn--bcher-kva.example"}
	assert.True(t, bücher.In([]byte("Sitemap: http://BÜCHER.example/s.xml")) &&
		bücher.In([]byte("XN--bcher-KVA.example")), "a name in one of its forms is not found")
}
