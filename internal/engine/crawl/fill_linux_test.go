package crawl

import (
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// fillMesh makes a store that knows all pages of a mesh.
func fillMesh(b *testing.B, o Options, web *testweb.Web, m testweb.Mesh) {
	s := must.Get(storage.Open(o.DataDir, storage.Options{}))(b)
	var batch storage.Batch
	var size storage.BatchSizer
	for h := range m.Hosts {
		root := must.Get(weburl.Parse(web.URL(m.Host(h), "/")))(b)
		for i := range m.Pages {
			u := root.Origin().URL(m.Path(i))
			batch.Found = append(batch.Found, storage.Found{URL: u, Fingerprint: s.Fingerprint(u), At: time.Now()})
		}
		if len(batch.Found) < size.Items() && h+1 < m.Hosts {
			continue
		}
		result := must.Get(s.Commit(&batch))(b)
		size.Committed(len(batch.Found), result.Changed, time.Second/100)
		batch.Found = batch.Found[:0]
	}
	must.Do(b, s.Close())
}
