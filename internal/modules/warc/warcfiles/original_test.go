package warcfiles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/records/digest"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// writeRevisits writes n files, one a minute, and behind them a file with a revisit record for each body.
func writeRevisits(t testing.TB, n int) (dir string) {
	o := allOptions(t)
	o.Formats, o.MaxFileBytes = []string{Name}, 1
	w, e := mustOpen(t, o, nil), newEncoder(t, o)
	write := func(x *archive.Exchange) {
		must.Do(t, w.Append(mustEncode(t, e, &archive.Visit{Exchange: x}), x.At.Add(3*time.Second)))
		mustSync(t, w)
	}
	for i := range n {
		write(exchangeOf(fmt.Sprintf("http://h.test/%d", i), fmt.Sprint("body of ", i), 60*i))
	}
	for i := range n {
		x := exchangeOf(fmt.Sprintf("http://h.test/%d", i), fmt.Sprint("body of ", i), 60*(n+1))
		x.Original = &archive.Original{URL: x.URL, At: startOfTime.Add(time.Duration(60*i) * time.Second),
			Payload: digest.Of([]byte(fmt.Sprint("body of ", i)))}
		write(x)
	}
	finish(t, w)
	return o.Dir
}

// revisits returns the captures whose content is stored with an earlier one.
func revisits(t testing.TB, c *Collection) (all []warc.Entry) {
	must.Do(t, c.Captures(context.Background(), "", func(e *warc.Entry) error {
		if e.Mime == warc.MimeRevisit {
			all = append(all, *e)
		}
		return nil
	}))
	return all
}

// TestOriginalNear: the original of a revisit record is found in the files that were written at its time, without those
// of other times: one damaged index costs what it is of. Whatever the names say, it is found.
func TestOriginalNear(t *testing.T) {
	dir := writeRevisits(t, 5)
	c := must.Get(OpenCollection(dir, known()))(t)
	read := func(e warc.Entry) (string, error) {
		s, err := c.Open(context.Background(), e)
		if err != nil {
			return "", err
		}
		defer s.Close()
		return string(must.Get(io.ReadAll(s.Body))(t)), nil
	}
	all := revisits(t, c)
	for _, damaged := range []bool{false, true} {
		if damaged {
			path := must.Get(filepath.Glob(filepath.Join(dir, "*-000001-*.cdxj")))(t)[0]
			must.Do(t, os.WriteFile(path, []byte("com,example)/ "+strings.Repeat("x", 2*maxLine)+"\n"), 0o644))
		}
		for i, e := range all {
			body, err := read(e)
			switch {
			case damaged && i == 0 && !errors.Is(err, warc.ErrEntry):
				t.Errorf("the original of %s is behind a damaged index: %v", e.URL, err)
			case (!damaged || i > 0) && (err != nil || body != fmt.Sprint("body of ", i)):
				t.Errorf("%s has %q: %v", e.URL, body, err)
			}
		}
	}
	other := writeRevisits(t, 5)
	for _, path := range must.Get(filepath.Glob(filepath.Join(other, "*-00000[1-5]-*")))(t) { // later than all
		base := filepath.Base(path)
		must.Do(t, os.Rename(path, filepath.Join(other, "amble-2031"+strings.TrimPrefix(base, "amble-2026"))))
	}
	c = must.Get(OpenCollection(other, known()))(t)
	for i, e := range revisits(t, c) {
		at := startOfTime.Add(time.Duration(60*i) * time.Second)
		found, err := c.captureAt(context.Background(), e.URL, at, e.Digest)
		assert.True(t, err == nil && found.URL == e.URL, "the original of %s in a file of another time: %+v, %v",
			e.URL, found, err)
	}
}

// BenchmarkOriginal finds the original of a revisit record in an archive of many files: at its time, and for comparison
// as any capture of its URL, in all of them.
func BenchmarkOriginal(b *testing.B) {
	for _, n := range []int{50, 500} {
		c := must.Get(OpenCollection(writeRevisits(b, n), known()))(b)
		all := revisits(b, c)
		at := func(i int) time.Time { return startOfTime.Add(time.Duration(60*i) * time.Second) }
		b.Run(fmt.Sprintf("files=%d", 2*n), func(b *testing.B) {
			for i := 0; b.Loop(); i = (i + 1) % n {
				must.Get(c.captureAt(context.Background(), all[i].URL, at(i), all[i].Digest))(b)
			}
		})
		b.Run(fmt.Sprintf("files=%d/in all of them", 2*n), func(b *testing.B) {
			for i := 0; b.Loop(); i = (i + 1) % n {
				must.Get(c.Find(context.Background(), all[i].URL, at(i)))(b)
			}
		})
	}
}
