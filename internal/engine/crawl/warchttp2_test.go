package crawl

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/modules/warc/warcfiles"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// secureServer is a server of a test web with TLS.
type secureServer struct{ *http.Server }

func (s secureServer) Serve(l net.Listener) error { return s.ServeTLS(l, "", "") }

// TestArchiveOfHTTP2: with WARC on, a site that speaks HTTP/2 alone is crawled and stored: each exchange in the form of
// HTTP/1.1, with the protocol that it came over.
func TestArchiveOfHTTP2(t *testing.T) {
	t.Parallel()
	certFile, keyFile := testkit.Certify(t, t.TempDir())
	certificate := must.Get(tls.LoadX509KeyPair(certFile, keyFile))(t)
	s := site("a.test", "User-agent: *\nAllow: /\n", []string{"/page", "/moved", "/missing"}, testweb.Routes{
		"/page":    testweb.Page("a page"),
		"/moved":   testweb.Redirect(301, "/page"),
		"/missing": testweb.Status(404),
	})
	web := must.Get(testweb.NewWith(testweb.Config{Sites: []testweb.Site{s}, CountOnly: true},
		func(s *http.Server) testweb.Server {
			s.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate}}
			s.Protocols = new(http.Protocols)
			s.Protocols.SetHTTP2(true)
			return secureServer{s}
		}))(t)
	defer web.Close()
	o := testOptions(t, web)
	o.Archive.Formats, o.Fetch.TLSConfig = allFormats, &tls.Config{InsecureSkipVerify: true}
	o.GiveUpAfter = patience
	home := strings.Replace(web.URL("a.test", "/"), "http:", "https:", 1)
	started := time.Now()
	sum := crawl(t, o, home)
	n := sum.Status.URLs["fetched"]
	assert.True(t, n == 2, "%d pages after %v: %v", n, time.Since(started), sum.Status.URLs)
	checkOutput(t, o)
	checkArchive(t, o)
	head, body, _ := page(t, o.Archive.Dir, home+"page")
	assert.True(t, strings.HasPrefix(head, "HTTP/1.1 200 OK\r\nContent-Length: ") && strings.Contains(body, "a page"),
		"stored as %q %q", head, body)
	const exchanges = 5 // robots.txt, the start and three pages
	assert.Equal(t, bytes.Count(unpacked(t, o.Archive.Dir), []byte("\r\nWARC-Protocol: h2\r\n")), 2*exchanges,
		"records say their protocol", exchanges, "exchanges")
}

// unpacked returns the WARC files of a directory, one behind the other, decompressed.
func unpacked(t *testing.T, dir string) (all []byte) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.warc.gz"))
	must.True(t, err == nil && len(names) != 0, "%v of %s: %v", names, warcfiles.Name, err)
	for _, name := range names {
		f := must.Get(os.Open(name))(t)
		z := must.Get(gzip.NewReader(f))(t)
		b := must.Get(io.ReadAll(z))(t)
		all = append(all, b...)
		_ = f.Close()
	}
	return all
}
