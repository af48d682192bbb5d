package shards

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/modules/warc/warcfiles"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/natstest"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

// TestHeavyRequisites: what pages are made of is fetched by the owner of its host, whoever has the page: each once,
// under the rules of its host, and each is in one archive. The servers judge it.
func TestHeavyRequisites(t *testing.T) {
	t.Parallel()
	const pages = 12
	apart := inShards(2)
	content := func(contentType, text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			_, port, _ := strings.Cut(q.Host, ":")
			far := "http://" + apart[1] + ":" + port
			testweb.Content(contentType, []byte(strings.ReplaceAll(text, "FAR", far))).ServeHTTP(w, q)
		})
	}
	site := testweb.Routes{}
	far := testweb.Routes{
		"/robots.txt": testweb.Robots("User-agent: *\nDisallow: /no/\n"),
		"/s.css":      content("text/css", "@import 'import.css'; a { background: url(sheet.png) }"),
		"/import.css": content("text/css", "a { color: red }"), "/sheet.png": content("image/png", "sheet"),
		"/no/1.png": content("image/png", "no"),
	}
	want := []string{apart[0] + "/", apart[1] + "/s.css", apart[1] + "/import.css", apart[1] + "/sheet.png"}
	for i := range pages {
		path, image := fmt.Sprintf("/%d", i), fmt.Sprintf("/%d.png", i)
		site[path] = content("text/html", fmt.Sprintf(`<link rel=stylesheet href="FAR/s.css"><img src="FAR%s">`+
			`<img src=%s><img src="FAR/no/1.png"><a href=/%d>next</a>`, image, image, (i+1)%pages))
		site[image], far[image] = content("image/png", "near"), content("image/png", "far "+path)
		want = append(want, apart[0]+path, apart[0]+image, apart[1]+image)
	}
	site["/"] = content("text/html", "<a href=/0>first</a>")
	slices.Sort(want)
	web := serve(t, []testweb.Site{{Host: apart[0], Handler: site}, {Host: apart[1], Handler: far}})
	const delay = 20 * time.Millisecond
	w := newWorldOf(t, web, nil, natstest.Start(t, names, 1, nil), delay, longTTL)
	w.alter = func(o *Options) {
		o.Crawl.Requisites.Fetch, o.Crawl.Archive.Formats = true, []string{warcfiles.Name}
	}
	w.seeds = append(w.seeds, seed(t, web, apart[0]))
	dirs := []string{t.TempDir(), t.TempDir()}
	nodes := []*process{w.start("first", dirs[0]), w.start("second", dirs[1])}
	w.eventually("all that the pages are made of is stored", func() error {
		n := 0
		for _, p := range nodes {
			for _, s := range p.node.Statuses() {
				n += s.URLs[storage.Fetched.String()]
			}
		}
		if n < len(want) {
			return fmt.Errorf("%d of %d URLs", n, len(want))
		}
		return nil
	})
	for _, p := range nodes {
		p.leave()
	}
	w.checkRepeats(want)
	stored := map[string]int{}
	for _, dir := range dirs {
		for _, output := range must.Get(filepath.Glob(filepath.Join(dir, "shards", "*", "output")))(t) {
			c := must.Get(warcfiles.OpenCollection(output, []archive.Format{warcfiles.Format()}))(t)
			must.Get(c.Verify(context.Background(), func(p warcfiles.Problem) { t.Error(p) }))(t)
			must.Do(t, c.Captures(context.Background(), "", func(e *warc.Entry) error {
				stored[e.URL]++
				return nil
			}))
		}
	}
	requests := web.Requests().CountByPath()
	for _, key := range want {
		host, path, _ := strings.Cut(key, "/")
		if n := stored[web.URL(host, "/"+path)]; n == 0 || n > requests[key] {
			t.Errorf("after %d requests the archives have %s %d times", requests[key], key, n)
		}
	}
}
