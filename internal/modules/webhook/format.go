//go:build !core

// Package webhook posts results and alarms to a receiver over HTTP. docs/WEBHOOK.md describes it for who receives them.
//
// The output format webhook is a queue on disk: files of JSON lines like others, with the exactness of
// [archive.Writer]. After each commit the sink writes how far the files are committed next to them. A [Sender] reads
// the files that far and no further, posts their lines in batches, and keeps a cursor behind what the receiver has
// taken. A line has the id of its place in the queue, so a batch that is posted again has the same ids. Files that
// were taken are removed. Neither waits for the other, until the queue is full.
package webhook

import (
	"regexp"
	"time"

	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/web/spool"
)

// Name is the name of the format in output.format.
const Name = "webhook"

// maxFile is the size of a file of the queue. One is removed when all of it was taken.
const maxFile = 16 << 20

// Format returns the format.
func Format() archive.Format { return format{} }

type format struct{}

// Name implements archive.Format.
func (format) Name() string { return Name }

// Validate implements archive.Format.
func (format) Validate(*archive.Options) error { return nil }

// Needs implements archive.Format.
func (format) Needs(*archive.Options) archive.Needs { return archive.Needs{} }

// NewEncoder implements archive.Format.
func (format) NewEncoder(o *archive.Options, pool *spool.Pool) (
	func(*archive.Item, *archive.Visit) (*archive.Record, error), error) {
	return archive.Lines{Encode: func(v *archive.Visit) ([]byte, error) { return v.Page.Encode() }}.NewEncoder(o, pool)
}

// Naming implements archive.Format.
func (format) Naming() archive.Naming { return naming() }

func naming() archive.Naming {
	return archive.Naming{
		Make:    func(serial int, _ time.Time) string { return "webhook-" + archive.SerialText(serial) + ".jsonl" },
		Pattern: regexp.MustCompile(`^webhook-(\d{6,19})\.jsonl$`),
	}
}

// NewSink implements archive.Format.
func (format) NewSink(o *archive.Options, d archive.Disk) (archive.Sink, error) {
	queue := *o
	queue.MaxFileBytes, queue.MaxFileAge = maxFile, 0
	return &sink{
		Series: archive.NewSeries(&queue, d, archive.SeriesOptions{Naming: naming(), Extension: ".jsonl"}),
		dir:    o.Dir, most: o.Queue,
	}, nil
}
