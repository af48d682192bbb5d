//go:build !core

package warcfiles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/output/archive"
)

// original finds the capture that a revisit record refers to: that of the URL and time that the
// record names, else the newest one of its own URL before it.
func (c *Collection) original(ctx context.Context, h warc.Header) (best warc.Entry, err error) {
	url := h.Get(warc.FieldRefersToTargetURI)
	at, dateErr := warc.ParseDate(h.Get(warc.FieldRefersToDate))
	if url != "" && dateErr == nil {
		best, err = c.captureAt(ctx, url, at, h.Get(warc.FieldPayloadDigest))
	} else {
		url = h.Get(warc.FieldTargetURI)
		if at, err = warc.ParseDate(h.Get(warc.FieldDate)); err != nil {
			return best, fmt.Errorf("archive: a revisit record without a date: %w", err)
		}
		err = c.capturesOf(ctx, url, func(e *warc.Entry) {
			if e.Mime != warc.MimeRevisit && !e.Time.After(at) && (best.URL == "" || !e.Time.Before(best.Time)) {
				best = *e
			}
		})
	}
	if err == nil && best.URL == "" && h.Get(warc.FieldRefersToIndex) != "" {
		return best, fmt.Errorf("%w: that of %s of %s is in another collection, with the index %s", ErrElsewhere, url,
			warc.FormatDate(at), h.Get(warc.FieldRefersToIndex))
	}
	if err == nil && best.URL == "" {
		err = fmt.Errorf("%w: the one of %s of %s, which has the content", ErrNoCapture, url, warc.FormatDate(at))
	}
	return best, err
}

// captureAt finds the capture of a URL, a time and a payload; the result has no URL if there is none. It begins with
// the files that were begun near that time, so that it mostly reads one index of thousands.
func (c *Collection) captureAt(ctx context.Context, url string, at time.Time, payload string) (warc.Entry, error) {
	at = at.UTC().Truncate(time.Second)
	key := warc.IndexKey(url) + " " + at.Format(stampLayout) + " "
	var before []File
	var damaged error
	for _, again := range []bool{false, true} {
		files, err := c.byTime(again)
		if err != nil || again && slices.EqualFunc(files, before, sameFile) {
			return warc.Entry{}, cmp.Or(err, damaged)
		}
		before, damaged = files, nil
		for _, f := range nearest(files, at) {
			if err := ctx.Err(); err != nil {
				return warc.Entry{}, err
			}
			var found warc.Entry
			err := c.searchFile(f, key, func(e *warc.Entry) error {
				if e.URL != url || e.Mime == warc.MimeRevisit || e.Digest != payload {
					return nil
				}
				found = *e
				return errFound
			})
			switch {
			case errors.Is(err, errFound):
				return found, nil
			case err != nil: // it may be in another file
				damaged = fmt.Errorf("archive: index of %s: %w", f.Name, err)
			}
		}
	}
	return warc.Entry{}, damaged
}

// errFound ends a search.
var errFound = errors.New("found")

func sameFile(a, b File) bool { return a.Name == b.Name && a.Open == b.Open }

// stampLayout is the time in the name of a WARC file, and in a line of an index.
const stampLayout = "20060102150405"

// begun returns when a WARC file was begun, as text: the time in its name.
func (f File) begun() string {
	name := f.Name[:max(strings.LastIndex(f.Name, "-"+archive.SerialText(f.serial)+"-"), 0)]
	return name[max(len(name)-len(stampLayout), 0):]
}

// byTime lists the WARC files by the time at which they were begun, again or as they were listed before.
func (c *Collection) byTime(again bool) ([]File, error) {
	if known := c.listed.Load(); known != nil && !again {
		return *known, nil
	}
	files, err := c.warcs()
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(files, func(a, b File) int { return strings.Compare(a.begun(), b.begun()) })
	c.listed.Store(&files)
	return files, nil
}

// nearest yields files that are sorted by time: first the last one that was begun before a time, and then by the
// distance from it. A response is written some time after its request.
func nearest(files []File, at time.Time) func(yield func(int, File) bool) {
	return func(yield func(int, File) bool) {
		stamp := at.Format(stampLayout)
		next, _ := slices.BinarySearchFunc(files, stamp, func(f File, stamp string) int {
			if f.begun() <= stamp {
				return -1
			}
			return 1
		})
		for before := next - 1; before >= 0 || next < len(files); {
			if before >= 0 {
				if !yield(before, files[before]) {
					return
				}
				before--
			}
			if next < len(files) {
				if !yield(next, files[next]) {
					return
				}
				next++
			}
		}
	}
}
