package weburl

import (
	"errors"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

func TestOrigin(t *testing.T) {
	tests := []struct {
		raw  string
		want Origin
		text string
	}{
		{"http://example.com/a?b", Origin{"http", "example.com", 80}, "http://example.com"},
		{"https://example.com:443", Origin{"https", "example.com", 443}, "https://example.com"},
		{"http://example.com:443/", Origin{"http", "example.com", 443}, "http://example.com:443"},
		{"https://[::1]:80/", Origin{"https", "[::1]", 80}, "https://[::1]:80"},
		{"https://EXAMPLE.com.:8443/", Origin{"https", "example.com", 8443}, "https://example.com:8443"},
	}
	for _, test := range tests {
		u := must.Get(Parse(test.raw))(t)
		origin := u.Origin()
		assert.True(t, origin == test.want && origin.String() == test.text, "%q has origin %+v, %q; want %+v, %q",
			test.raw, origin, origin, test.want, test.text)
		robots, err := u.Resolve("/robots.txt")
		assert.True(t, err == nil && origin.URL("/robots.txt") == robots, "%+v.URL gives %+v, want %+v, error %v",
			origin, origin.URL("/robots.txt"), robots, err)
	}
}

func TestZeroOrigin(t *testing.T) {
	var o Origin
	assert.True(t, o.String() == "" && o.URL("/robots.txt") == (URL{}), "the zero origin gives %q and %+v", o,
		o.URL("/robots.txt"))
}

func TestParseOrigin(t *testing.T) {
	tests := []struct {
		s    string
		want Origin
		err  error
	}{
		{"http://example.com", Origin{"http", "example.com", 80}, nil},
		{"http://example.com/", Origin{"http", "example.com", 80}, nil},
		{"HTTPS://Example.com:8443", Origin{"https", "example.com", 8443}, nil},
		{"http://example.com/a", Origin{}, ErrSyntax},
		{"http://example.com/?", Origin{}, ErrSyntax},
		{"http://example.com//", Origin{}, ErrSyntax},
		{"example.com", Origin{}, ErrScheme},
		{"", Origin{}, ErrScheme},
		{"ftp://example.com", Origin{}, ErrScheme},
		{"http://", Origin{}, ErrNoHost},
	}
	for _, test := range tests {
		if got, err := ParseOrigin(test.s); got != test.want || !errors.Is(err, test.err) {
			t.Errorf("ParseOrigin(%q) = %+v, error %v; want %+v, error %v", test.s, got, err, test.want, test.err)
		}
	}
}
