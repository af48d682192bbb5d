//go:build !core

package warcfiles

import (
	"bytes"
	"context"
	"crypto/sha1" // what other archives identify contents by
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/web/httpfield"
)

// Bounds of a look into the index of another collection.
const (
	lookTimeout  = 10 * time.Second // of a server
	lookPatience = 2 * time.Second  // until a server may be asked
	maxLook      = 4 << 20          // bytes of a response
	maxCaptures  = 1000             // of a URL
	maxPause     = 5 * time.Minute  // after failures in a row
)

// elsewhere finds contents in another collection by its index. A failure costs nothing but the room of a content that
// might have been there. It is safe for concurrent use.
type elsewhere struct {
	source string
	info   *archive.Info
	agent  string
	server *url.URL // nil: source is a file
	client *http.Client
	turn   chan struct{} // who has it sends the server a request: one at a time
	delay  time.Duration // from the end of a request to the start of the next

	mu       sync.Mutex
	failures int       // in a row; guarded by mu
	until    time.Time // nothing is looked up before; guarded by mu
}

// indexLine is how an index begins: with a key and a time, or with a word on its format.
var indexLine = regexp.MustCompile(`^( CDX |!|\S+ \d{14} )`)

// newElsewhere returns the index that the options name; nil: they name none.
func newElsewhere(o *archive.Options) (*elsewhere, error) {
	if o.Dedupe == "" {
		return nil, nil
	}
	e := &elsewhere{source: o.Dedupe, info: o.Info, agent: o.Crawler.UserAgent}
	if strings.HasPrefix(o.Dedupe, "http://") || strings.HasPrefix(o.Dedupe, "https://") {
		u, err := url.Parse(o.Dedupe)
		if err != nil || u.Host == "" {
			return nil, fmt.Errorf("dedupe is %q, want a file or the URL of a CDX server", o.Dedupe)
		}
		e.server, e.source = u, u.Redacted()
		e.turn, e.delay = make(chan struct{}, 1), o.DedupeDelay
		e.turn <- struct{}{}
		e.client = &http.Client{Timeout: lookTimeout, Transport: &http.Transport{MaxIdleConns: 1},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		return e, nil
	}
	first := make([]byte, 1<<10)
	f, err := os.Open(o.Dedupe)
	if err != nil {
		return nil, fmt.Errorf("dedupe: %w", err)
	}
	defer f.Close()
	n, err := io.ReadFull(f, first)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("dedupe: %w", err)
	}
	if n > 0 && !indexLine.Match(first[:n]) {
		return nil, fmt.Errorf("dedupe: %s is no index in the format CDXJ; unpack it, if it is compressed", o.Dedupe)
	}
	return e, nil
}

// find returns the response that has the body of an answer; nil: none is known.
func (e *elsewhere) find(a *answer) *archive.Original {
	e.mu.Lock()
	pauses := a.x.At.Before(e.until)
	e.mu.Unlock()
	if pauses {
		return nil
	}
	var found *archive.Original
	var sum1 string
	n := 0
	each := func(line []byte) (bool, error) {
		n++
		c, ok := parseCapture(line)
		if ok && c.url == a.x.URL && c.at.Before(a.x.At) {
			same := c.digest == a.payload.String()
			if digest, is := isSHA1(c.digest); is {
				if sum1 == "" {
					sum1 = sha1Of(a)
				}
				same = digest == sum1
			}
			if same {
				found = &archive.Original{URL: c.url, At: c.at, Payload: a.payload}
			}
		}
		return n < maxCaptures, nil
	}
	err := e.look(a.x.URL, each)
	e.took(a.x.At, err)
	return found
}

// look calls each for the lines of a URL.
func (e *elsewhere) look(u string, each func([]byte) (bool, error)) error {
	if e.server != nil {
		return e.request(u, each)
	}
	f, err := os.Open(e.source)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	key := []byte(warc.IndexKey(u) + " ")
	at, err := seekLine(f, info.Size(), key)
	if err != nil {
		return err
	}
	return eachLine(io.NewSectionReader(f, at, info.Size()-at), func(line []byte) (bool, error) {
		if !bytes.HasPrefix(line, key) {
			return false, nil
		}
		return each(line)
	})
}

// busyError says how long a server wants to be left alone.
type busyError struct {
	status string
	after  time.Duration
}

func (b *busyError) Error() string { return "it answers " + b.status }

// request looks into the index of a server: one with the API of the Wayback Machine's or of pywb's.
func (e *elsewhere) request(u string, each func([]byte) (bool, error)) error {
	select {
	case <-e.turn:
	case <-time.After(lookPatience):
		return nil // the crawl is faster
	}
	defer time.AfterFunc(e.delay, func() { e.turn <- struct{}{} })
	ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
	defer cancel()
	at := *e.server
	query := at.Query()
	query.Set("url", u)
	query.Set("limit", strconv.Itoa(maxCaptures))
	at.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return err
	}
	request.Header.Set("User-Agent", e.agent)
	response, err := e.client.Do(request)
	if urlError := (*url.Error)(nil); errors.As(err, &urlError) {
		return urlError.Err // without the URL, which may have a password
	}
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusNotFound { // that of pywb, if it has nothing
		return nil
	}
	if response.StatusCode != http.StatusOK {
		busy := &busyError{status: response.Status}
		date, _ := http.ParseTime(response.Header.Get("Date"))
		busy.after, _ = httpfield.RetryAfter(response.Header.Get("Retry-After"), date)
		return busy
	}
	return eachLine(io.LimitReader(response.Body, maxLook), each)
}

// took takes note of how a look ended. After failures nothing is looked up for a while.
func (e *elsewhere) took(now time.Time, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err == nil {
		e.failures = 0
		return
	}
	pause := min(time.Second<<min(e.failures, 20), maxPause)
	if busy := (*busyError)(nil); errors.As(err, &busy) {
		pause = max(pause, min(busy.after, 24*time.Hour))
	}
	e.failures++
	e.until = now.Add(pause)
	if e.info != nil && e.info.Warn != nil {
		e.info.Warn(fmt.Errorf("archive.dedupe: %s: %w; pages are stored whole for %s", e.source, err, pause))
	}
}

// otherCapture is what a line of an index says of a response.
type otherCapture struct {
	url, digest string
	at          time.Time
}

// parseCapture reads a line in the format CDXJ, or one of fields with spaces between them: key, time, URL, type, status
// and digest. Only responses with the status 200 are taken.
func parseCapture(line []byte) (c otherCapture, ok bool) {
	if e, err := warc.ParseEntry(line); err == nil {
		return otherCapture{e.URL, e.Digest, e.Time}, e.Status == http.StatusOK && e.Mime != warc.MimeRevisit
	}
	f := strings.Fields(string(line))
	if len(f) < 6 || f[4] != "200" || f[3] == warc.MimeRevisit {
		return c, false
	}
	at, err := time.Parse(stampLayout, f[1])
	return otherCapture{f[2], f[5], at}, err == nil
}

// isSHA1 returns the digest as base 32, if it is a SHA-1.
func isSHA1(digest string) (text string, is bool) {
	digest = strings.TrimPrefix(digest, "sha1:")
	return strings.ToUpper(digest), len(digest) == 32
}

// sha1Of returns the SHA-1 of the body that is stored, in base 32; empty: it cannot be read.
func sha1Of(a *answer) string {
	h := sha1.New()
	if _, err := io.Copy(h, a.bodyReader()); err != nil {
		return ""
	}
	return base32.StdEncoding.EncodeToString(h.Sum(nil))
}
