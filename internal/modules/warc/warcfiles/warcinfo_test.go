package warcfiles

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestInfoID: each record names the first record of its file, also one that was made before the file was begun, one of
// another process, and one whose batch was rolled back.
func TestInfoID(t *testing.T) {
	eachCompression(t, func(t *testing.T, compression archive.Compression) {
		o := allOptions(t)
		o.Formats, o.Records = []string{Name}, compression
		var marks []archive.Mark
		tags := []string{"news", "daily"}
		n := 0
		for process := range 3 {
			o.Info = &archive.Info{Tags: func() []string { return tags }}
			w := mustOpen(t, o, marks)
			e := newEncoder(t, o)
			for range 3 {
				var batch []*archive.Item
				for range 4 { // a file takes two or so
					n++
					batch = append(batch, mustEncode(t, e, visitOf(400+n)))
				}
				before := w.Marks()
				marks = mustWrite(t, w, batch...)
				if process == 1 {
					must.Do(t, w.Rollback(before))
					marks = mustWrite(t, w, batch...)
				}
				must.Do(t, w.Committed())
			}
			if process == 2 {
				if m := must.Get(w.Finish())(t); m != nil {
					must.Do(t, w.Committed())
				}
			}
			w.Close()
		}
		files := must.Get(filepath.Glob(filepath.Join(o.Dir, "*.warc.*")))(t)
		v := verify(t, o.Dir)
		must.True(t, v.Records >= 100 && len(files) >= 10, "%+v of %d files", v, len(files))
		for _, name := range files {
			r, info := warc.NewReader(bytes.NewReader(must.Get(os.ReadFile(name))(t))), ""
			for {
				rec, err := r.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				must.Do(t, err)
				if rec.Type() == warc.TypeInfo {
					info = rec.Header.Get(warc.FieldRecordID)
					text := string(must.Get(io.ReadAll(rec.Block))(t))
					assert.True(t, strings.Contains(text, "\r\ntags: news, daily\r\n"), "%s says %q", name, text)
				} else if got := rec.Header.Get(warc.FieldInfoID); got != info || info == "" {
					t.Errorf("%s: a %s record names %q, want %q", name, rec.Type(), got, info)
				}
			}
		}
		_, body := get(t, o.Dir, "http://h.test/436", time.Time{})
		assert.True(t, len(body) == 436, "%d bytes", len(body))
	})
}
