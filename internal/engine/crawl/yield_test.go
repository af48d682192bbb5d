package crawl

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/engine/marks"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/memnet"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

// TestYield: recrawls that find nothing new are counted, with the bytes that they receive all the same, by host and
// for the plan, over all runs. A page with other validators and the same body has not changed. What pages are made of
// is none.
func TestYield(t *testing.T) {
	t.Parallel()
	virtually(t, memnet.Options{}, func(t *testing.T, network *memnet.Network) {
		var rewritten, validated, changing atomic.Int64
		routes := testweb.Routes{
			"/rewritten": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("ETag", fmt.Sprintf(`"%d"`, rewritten.Add(1)))
				w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
				body(paragraph).ServeHTTP(w, r)
			}),
			"/validated": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("ETag", `"v"`)
				if validated.Add(1) > 1 {
					w.WriteHeader(http.StatusNotModified)
					return
				}
				body(paragraph).ServeHTTP(w, r)
			}),
			"/changing": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				n := changing.Add(1)
				body(fmt.Sprintf("%d other <img src=/i.png> story %d of all %d", n, n*n, n*n*n)).ServeHTTP(w, r)
			}),
			"/i.png": testweb.Content("image/png", []byte("i")),
		}
		web := testweb.Serve(t, testweb.Config{Network: network, Sites: []testweb.Site{
			site("a.test", "", []string{"/rewritten", "/validated", "/changing"}, routes)}})
		o := recrawling(t, web)
		o.SimilarBits, o.Requisites.Fetch = 0, true
		var all recrawl.Yield // of all runs
		for range 2 {
			sum, err := crawlFor(t, o, 8*time.Second, web.URL("a.test", "/rewritten"), web.URL("a.test", "/validated"),
				web.URL("a.test", "/changing"))
			must.Do(t, err)
			all.Add(&sum.Status.Run.Yield)
		}
		length := uint64(len("<html><body><p></p></body></html>") + len(paragraph))
		again := uint64(rewritten.Load() - 1)
		if n := all.UnchangedBytes / length; all.UnchangedBytes%length != 0 || n > again || n+2 < again {
			t.Errorf("%+v, want %d or a little less times %d bytes", all, again, length)
		}
		if most := again + uint64(validated.Load()-1); all.Unchanged > most || all.Unchanged+4 < most {
			t.Errorf("%+v, want %d unchanged or a little less", all, most)
		}
		if changes := all.Recrawls - all.Unchanged; changes < 4 || changes > uint64(changing.Load()) {
			t.Errorf("%+v, and %d requests for a page that changes", all, changing.Load())
		}
		assert.AtLeast(t, len(web.Requests().Filter(func(r testweb.Request) bool { return r.Path == "/i.png" })), 3,
			"the image was requested times: it is not recrawled")
		s := must.Get(storage.Open(o.DataDir, storage.Options{ReadOnly: true}))(t)
		defer s.Close()
		h := must.Get(s.HostByName("a.test"))(t)
		known, err := recrawl.DecodeSite(h.Site)
		got := known.Yield()
		assert.True(t, err == nil && got == all, "the host has %+v (%v), want %+v", got, err, all)
		encoded := must.Get(s.Mark(marks.Plan))(t)
		plan := must.Get(recrawl.New(*o.Recrawl))(t)
		if err := plan.Restore(encoded); err != nil || plan.Yield() != all {
			t.Errorf("the plan has %+v (%v), want %+v", plan.Yield(), err, all)
		}
	})
}
