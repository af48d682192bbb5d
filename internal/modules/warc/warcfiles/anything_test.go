package warcfiles

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestAnyJournal: whatever a response contains, the line of its record in the journal, and the
// entry in it, can be read.
func TestAnyJournal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h warc.Header
		h.Add(warc.FieldType, rapid.SampledFrom([]string{warc.TypeResponse, warc.TypeRevisit}).Draw(t, "type"))
		h.Add(warc.FieldDate, warc.FormatDate(time.Unix(rapid.Int64Range(0, 1<<37).Draw(t, "date"), 0)))
		h.Add(warc.FieldTargetURI, "http://a.test/"+rapid.String().Draw(t, "url"))
		h.Add(warc.FieldPayloadDigest, rapid.String().Draw(t, "digest"))
		head := "HTTP/1.1 " + rapid.StringMatching(`[0-9 ]{0,9}`).Draw(t,
			"status") + "\r\nContent-Type: " + rapid.String().Draw(t, "media type") + "\r\n\r\n"
		e, ok := warc.EntryOf(h, []byte(head))
		must.True(t, ok, "no entry of %q", h)
		e.Length = rapid.Int64Range(0, 1<<62).Draw(t, "length of member")
		offset, length := rapid.Int64Range(0, 1<<62).Draw(t, "offset"), rapid.Int64Range(1, 1<<62).Draw(t, "length")
		line := appendJournal(nil, offset, length, "a-20261120121415-000001-b.warc.gz", e.AppendStart(nil))
		j, ok := parseJournal(line)
		must.True(t, ok && j.offset == offset && j.length == length, "%q was read as %+v", line, j)
		got, err := warc.ParseEntry(j.entry)
		must.True(t, err == nil && got.Key == e.Key && got.Time.Equal(e.Time) && got.Status == e.Status &&
			got.Length == e.Length, "%q was read as %+v (%v)", line, got, err)
	})
}
