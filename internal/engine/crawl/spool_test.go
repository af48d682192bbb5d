package crawl

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/internal/web/extract"
	"github.com/amble-crawler/amble/internal/web/spool"
	"github.com/amble-crawler/amble/storage"
)

// largePage is an HTML page of about size bytes whose links stand at both ends.
func largePage(size int, first, last string) []byte {
	return fmt.Appendf(nil, "<!DOCTYPE html><title>large</title><a href=%q>a</a><p>%s</p><a href=%q>b</a>", first,
		strings.Repeat("many words ", size/11), last)
}

// Pages that are in files are read for links, and have the digest that they have in memory. Nothing
// is left of them.
func TestPagesInFiles(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		page := largePage(300<<10, "/first", "/last")
		huge := largePage(extract.MaxDocument, "/before", "/behind")
		web := serve(site("large.test", "", []string{"/page", "/huge", "/first", "/last", "/before"}, testweb.Routes{
			"/page": testweb.Content("text/html", page),
			"/huge": testweb.Content("text/html", huge),
			"/data": testweb.Content("application/octet-stream", make([]byte, 1<<20)),
		}))
		o := testOptions(t, web)
		o.Spool = spool.Options{Above: 64 << 10, Budget: 1 << 20}
		left := filepath.Join(o.DataDir, "spool", "content-left.tmp")
		must.Do(t, os.MkdirAll(filepath.Dir(left), 0o700))
		must.Do(t, os.WriteFile(left, []byte("of an earlier process"), 0o600))
		crawl(t, o, web.URL("large.test", "/"), web.URL("large.test", "/data"))
		checkStates(t, o, map[string]storage.State{
			"large.test/": storage.Fetched, "large.test/page": storage.Fetched, "large.test/first": storage.Fetched,
			"large.test/last": storage.Fetched,
			"large.test/huge": storage.Fetched, "large.test/before": storage.Fetched,
			"large.test/data": storage.Fetched,
		})
		sum := sha256.Sum256(page)
		got := stored(t, o.DataDir)[web.URL("large.test", "/page")]
		assert.True(t, got.Digest == binary.BigEndian.Uint64(sum[:]) && got.Bytes == uint64(len(page)), "%+v", got)
		files, err := os.ReadDir(filepath.Join(o.DataDir, "spool"))
		assert.True(t, err == nil && len(files) <= 0, "%v, %v", files, err)
	})
}
