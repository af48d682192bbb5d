package robots

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestRecordRoundTrip(t *testing.T) {
	now := time.Date(2026, 11, 21, 10, 0, 0, 123e6, time.UTC)
	records := map[string]Record{
		"zero":  {},
		"small": {Class: ClassFound, Copy: ClassFound, Status: 200, Body: []byte("User-agent: *\n"), Fetched: now},
		"full": {
			Class: ClassUnreachable, Copy: ClassFound, Status: 503, Failure: FailureTimeout, Cut: true, Failures: 7, Redirects: 3,
			Body: []byte(strings.Repeat("Disallow: /x\n", 999)), FinalURL: "https://www.example.com/robots.txt",
			Fetched: now, Expires: now.Add(time.Hour), Refresh: now.Add(time.Minute), FirstUnreachable: now.Add(-time.Second),
			ETag: `"abc"`, LastModified: "Sat, 21 Nov 2026 10:00:00 GMT",
		},
	}
	for name, want := range records {
		b, err := want.AppendBinary([]byte("before"))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := DecodeRecord(b[len("before"):])
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v; want %+v", name, got, err, want)
		}
	}
}
