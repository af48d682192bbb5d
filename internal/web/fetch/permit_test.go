package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestPermit: whichever write of a request the permit refuses, on a new connection or a reused one,
// the server never sees the request, and the request says that it was not sent.
func TestPermit(t *testing.T) {
	errNotNow := errors.New("not now")
	for _, proto := range []string{"http", "https", "h2"} {
		for _, reused := range []bool{false, true} {
			t.Run(fmt.Sprint(proto, reused), func(t *testing.T) {
				var seen sync.Map // by path
				handler := http.HandlerFunc(
					func(_ http.ResponseWriter, r *http.Request) { seen.Store(r.URL.Path, true) })
				trust, scheme := func(*Options) {}, "http"
				var s *httptest.Server
				if proto == "http" {
					s = httptest.NewServer(handler)
				} else {
					s, trust = secure(t, proto == "h2", handler)
					scheme = "https"
				}
				defer s.Close()
				var unsent []string
				for refused := int32(1); ; refused++ {
					path := fmt.Sprint("/", refused)
					r := Request{URL: parseURL(t,
						fmt.Sprintf("%s://example.com:%d%s", scheme, securePort(s.Listener), path)),
						Address: loopback}
					c := newClient(t, quick(trust))
					if reused {
						first := r
						first.URL = parseURL(t, fmt.Sprintf("%s://example.com:%d/", scheme, securePort(s.Listener)))
						must.Get(c.Do(context.Background(), first))(t)
					}
					var calls atomic.Int32
					r.Permit = func() error {
						if calls.Add(1) >= refused {
							return errNotNow
						}
						return nil
					}
					if _, err := c.Do(context.Background(), r); err == nil { // all writes were permitted
						break
					} else if e := wantKind(t, err, KindCanceled); !errors.Is(err, errNotNow) {
						t.Errorf("refused at call %d: %v", refused, err)
					} else if !e.Sent {
						unsent = append(unsent, path)
					} else if proto != "h2" { // there, frames follow the request
						t.Errorf("refused at call %d, and something was sent", refused)
					}
				}
				s.Close()
				for _, path := range unsent {
					_, found := seen.Load(path)
					assert.True(t, !found, "the server saw %s", path)
				}
				if len(unsent) < 2 { // before it connects, and before the request
					t.Errorf("only %d calls before the request", len(unsent))
				}
			})
		}
	}
}
