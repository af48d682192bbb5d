package completeness

import (
	"slices"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/modules/warc/warcfiles"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/spool"
)

// capture is a response in an archive, with a field of its metadata record.
type capture struct{ url, head, requisite string }

// start is when the first response of an archive is received; each other one is a second later than the one before.
func start() time.Time { return time.Unix(1_800_000_000, 0) }

// archived returns an archive that is being written.
func archived(t *testing.T, captures []capture) *warcfiles.Collection {
	o := archive.DefaultOptions()
	o.Known, o.Dir, o.Formats = []archive.Format{warcfiles.Format()}, t.TempDir(), []string{warcfiles.Name}
	w := must.Get(archive.Open(o, nil))(t)
	t.Cleanup(w.Close)
	encoder := must.Get(archive.NewEncoder(o, nil))(t)
	for i, c := range captures {
		at := start().Add(time.Duration(i) * time.Second)
		x := &archive.Exchange{URL: c.url, At: at, Request: spool.Of([]byte("GET / HTTP/1.1\r\n\r\n")),
			Response: spool.Of([]byte("HTTP/1.1 " + c.head + "\r\n\r\nbody"))}
		x.Facts.Add("requisite", c.requisite)
		must.Do(t, w.Append(must.Get(encoder.Encode(&archive.Visit{Exchange: x}))(t), at))
	}
	must.Get(w.Sync())(t)
	return must.Get(warcfiles.OpenCollection(o.Dir, o.Known))(t)
}

// TestFind: what an archive says of some URLs: a page names its requisites, and a picture is made of nothing, also one
// that is gone since. Of captures later than asked for and of URLs without one nothing is known.
func TestFind(t *testing.T) {
	c := archived(t, []capture{
		{site, "200 OK\r\nContent-Type: text/html", image},
		{image, "200 OK\r\nContent-Type: image/png", ""},
		{image, "404 Not Found\r\nContent-Type: text/html", ""},
		{sheet, "200 OK\r\nContent-Type: text/css", image},
	})
	var d Docs
	at := start().Add(2 * time.Second) // before the style sheet
	must.Do(t, d.Find(t.Context(), c, []WantedDoc{{site, at}, {image, at}, {sheet, at}, {target, at}}))
	assert.Equal(t, len(d.List), 2, "documents are known")
	of := func(url string) *Doc { return d.doc(int32(slices.Index(d.Texts, url))) }
	page, picture := of(site), of(image)
	must.True(t, page != nil && picture != nil, "known are %q: %+v", d.Texts, d.List)
	assert.True(t, page.Page && !page.Bare && len(page.Parts) == 1 && d.Texts[page.Parts[0]] == image,
		"the page is known as %+v", *page)
	assert.True(t, picture.Bare && !picture.Page && picture.At == start().Unix()+1, "the picture is known as %+v",
		*picture)
}
