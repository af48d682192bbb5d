package fetch

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

func TestOptionsValidate(t *testing.T) {
	must.Do(t, quick().Validate())
	for want, change := range map[string]func(*Options){
		"UserAgent is empty": func(o *Options) { o.UserAgent = " " },
		`UserAgent "a\nb"`:   func(o *Options) { o.UserAgent = "a\nb" },
		`From "ü@x"`:         func(o *Options) { o.From = "ü@x" },
		"Timeout 0s":         func(o *Options) { o.Timeout = 0 },
		"TLSTimeout -1s":     func(o *Options) { o.TLSTimeout = -time.Second },
		"MaxHeader 10":       func(o *Options) { o.MaxHeader = 10 },
		"MaxBody 0":          func(o *Options) { o.MaxBody = 0 },
		"MaxIdleConns -1":    func(o *Options) { o.MaxIdleConns = -1 },
		`Resolver "9.9.9.9"`: func(o *Options) { o.Resolver = "9.9.9.9" },
		`Resolver ":53"`:     func(o *Options) { o.Resolver = ":53" },
		`Resolver "a:b"`:     func(o *Options) { o.Resolver = "a:b" },
	} {
		_, err := New(quick(change), time.Now)
		assert.True(t, err != nil && strings.Contains(err.Error(), want), "error %v, want one about %s", err, want)
	}
}

func TestKinds(t *testing.T) {
	names := map[string]bool{}
	for k := range Kind(kindCount) {
		name := k.String()
		assert.True(t, name != "" && !names[name], "kind %d is called %q", k, name)
		names[name] = true
	}
	assert.Equal(t, Kind(200).String(), "kind_200", "a kind of the future")
	// Stored numbers: a change here breaks every database.
	for number, kind := range map[uint8]Kind{2: KindDNSNotFound, 6: KindRefused, 14: KindLostOnReuse, 22: KindLocal} {
		assert.Equal(t, uint8(kind), number, kind, "is", kind)
	}
	assert.True(t, !KindCertificate.Temporary() && KindHeaderTimeout.Temporary(), "temporary kinds are confused")
}

func TestErrorText(t *testing.T) {
	err := fmt.Errorf("wrapped: %w", &Error{Kind: KindClosed, Op: "header", URL: "http://a.test/", Err: io.EOF})
	assert.Equal(t, err.Error(), "wrapped: fetch http://a.test/: header: closed: EOF")
	assert.Is(t, err, io.EOF, "the cause is lost")
}
