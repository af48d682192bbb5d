//go:build linux

package warcfiles

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/records/digest"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/spool"
)

// BenchmarkRecords makes the records of real pages, of HTML files below /usr/share/doc, and of pages
// that repeat themselves, with each compression in turn. It reports the bytes and the least processor
// time of a page. AMBLE_DICTIONARY names a dictionary.
func BenchmarkRecords(b *testing.B) {
	for name, pages := range map[string][]string{"documentation": documentation(b, 100),
		"repetitive": repetitive(100, 8<<10)} {
		if len(pages) > 0 {
			b.Run(name, func(b *testing.B) { benchCompressions(b, pages) })
		}
	}
}

// recordsBench measures one compression.
type recordsBench struct {
	name    string
	encoder *archive.Encoder
	bytes   int64
	cpu     time.Duration // the least of all rounds
}

func benchCompressions(b *testing.B, pages []string) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all []*recordsBench
	add := func(name string, c archive.Compression) {
		o := options(b)
		o.Formats, o.Records = []string{Name}, c
		all = append(all, &recordsBench{name: name, encoder: newEncoder(b, o)})
	}
	for _, format := range []string{warc.FormatGzip, warc.FormatZstd} {
		for level := range warc.MaxLevel(format) {
			add(fmt.Sprintf("%s-%d", format, level+1), archive.Compression{Format: format, Level: level + 1})
		}
	}
	if path := os.Getenv("AMBLE_DICTIONARY"); path != "" {
		dictionary := must.Get(os.ReadFile(path))(b)
		for level := range 2 {
			add(fmt.Sprintf("dictionary-%d", level+1),
				archive.Compression{Format: warc.FormatZstd, Level: level + 1, Dictionary: dictionary})
		}
	}
	visits := visitsOf(pages)
	for b.Loop() {
		for _, r := range all {
			r.round(b, visits)
		}
	}
	for _, r := range all {
		n := float64(len(pages))
		b.ReportMetric(float64(r.bytes)/n, r.name+"-B/page")
		b.ReportMetric(float64(r.cpu.Nanoseconds())/1000/n, r.name+"-cpu-µs/page")
	}
}

// visitsOf returns a visit of each page. The digests are known, as those of pages without a content
// encoding are.
func visitsOf(pages []string) (visits []*archive.Visit) {
	for i, body := range pages {
		x := benchExchange(100)
		x.Payload = digest.Of([]byte(body))
		x.Response = spool.Of(
			fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: Fri, 20 Nov 2026 12:14:15 GMT\r\n"+
				"Content-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\nETag: \"6740b1c0-%x\"\r\n\r\n%s",
				len(body), i, body))
		visits = append(visits, &archive.Visit{Exchange: x})
	}
	return visits
}

// round makes the records of all visits once.
func (r *recordsBench) round(b *testing.B, visits []*archive.Visit) {
	start := threadTime(b)
	r.bytes = 0
	for _, v := range visits {
		r.bytes += mustEncode(b, r.encoder, v).Size()
	}
	if cpu := threadTime(b) - start; r.cpu == 0 || cpu < r.cpu {
		r.cpu = cpu
	}
}

// threadTime is the processor time of this thread.
func threadTime(b *testing.B) time.Duration {
	var now unix.Timespec
	must.Do(b, unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now))
	return time.Duration(now.Nano())
}

// documentation returns some HTML files of 2 to 400 KB, or nothing where there are none.
func documentation(b *testing.B, n int) (pages []string) {
	var paths []string
	_ = filepath.WalkDir("/usr/share/doc", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.HasSuffix(path, ".html") {
			if info, err := d.Info(); err == nil && info.Size() > 2000 && info.Size() < 400_000 {
				paths = append(paths, path)
			}
		}
		return nil
	})
	for i := 0; i < len(paths); i += max(len(paths)/n, 1) {
		text := must.Get(os.ReadFile(paths[i]))(b)
		pages = append(pages, string(text))
	}
	return pages
}

// repetitive returns pages that compress to a tenth.
func repetitive(n, size int) (pages []string) {
	for i := range n {
		var page strings.Builder
		page.WriteString("<!DOCTYPE html>\n<html lang=\"en\">\n<head><title>A page</title></head>\n<body>\n<ul>\n")
		for j := range 20 {
			fmt.Fprintf(&page, "<li><a href=\"/section-%d/page-%d\">archive.Page %d</a></li>\n", (i*31+j*97)%16,
				i*31+j*97, i*31+j*97)
		}
		for page.Len() < size {
			page.WriteString(
				"<p>Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt.</p>\n")
		}
		pages = append(pages, page.String())
	}
	return pages
}
