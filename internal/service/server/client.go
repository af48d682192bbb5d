//go:build !core

package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// maxPage is how many hosts the API has on one page.
const maxPage = 1000

// Client sends requests to the crawl that works on a data directory. Its methods may be called
// concurrently.
type Client struct {
	running   Running
	token     string
	transport *http.Transport
}

// Dial finds the running crawl of a data directory. It returns ErrNotRunning if none answers, and
// ErrToken if it does not accept the token.
func Dial(ctx context.Context, dataDir, token string) (*Client, error) {
	_, running, err := FetchStatus(ctx, dataDir, token)
	if err != nil {
		return nil, err
	}
	return &Client{running: running, token: token, transport: running.transport()}, nil
}

// Running returns which crawl it is.
func (c *Client) Running() Running { return c.running }

// Close closes idle connections.
func (c *Client) Close() error {
	c.transport.CloseIdleConnections()
	return nil
}

// Hosts is [inspect.View.Hosts] of the running crawl. If the crawl did not count the hosts,
// matching says only whether there are more. If a part of a cluster has not answered, each is called for the
// hosts of the others, and then the error is an *Incomplete.
func (c *Client) Hosts(ctx context.Context, q inspect.HostQuery, each func(*inspect.Host) error) (matching int,
	err error) {
	if q.Sort == inspect.SortFound {
		return c.hostsFound(ctx, q, each)
	}
	var lacking *Incomplete
	for taken := 0; taken < q.Limit; {
		page, err := c.hostPage(ctx, q, min(q.Limit-taken, maxPage))
		if err != nil {
			return matching, err
		}
		for i := range page.Hosts {
			if err := each(&page.Hosts[i]); err != nil {
				return matching, err
			}
		}
		taken += len(page.Hosts)
		lacking = lacking.And(page.Incomplete)
		q.After, matching = page.Next, page.Matching
		if matching < 0 {
			matching = taken + min(len(page.Next), 1)
		}
		if page.Next == "" {
			break
		}
	}
	if lacking != nil {
		return matching, lacking
	}
	return matching, nil
}

func (c *Client) hostPage(ctx context.Context, q inspect.HostQuery, limit int) (page hostsOfAll, err error) {
	v := url.Values{"limit": {strconv.Itoa(limit)}}
	set(v, "state", q.State)
	set(v, "sort", q.Sort)
	set(v, "under", q.Under)
	set(v, "contains", q.Contains)
	set(v, "after", q.After)
	return page, c.Object(ctx, "/api/v1/hosts", v, &page)
}

// HostNames is [inspect.View.HostNames] of the running crawl.
func (c *Client) HostNames(ctx context.Context, begin string, most int) (names []string, err error) {
	var page inspect.HostPage
	v := url.Values{"limit": {strconv.Itoa(min(most, maxPage))}, "sort": {"name"}}
	set(v, "contains", begin)
	err = c.Object(ctx, "/api/v1/hosts", v, &page)
	for i := range page.Hosts {
		if name := page.Hosts[i].Host; strings.HasPrefix(name, begin) {
			names = append(names, name)
		}
	}
	return names, err
}

func (c *Client) hostsFound(ctx context.Context, q inspect.HostQuery, each func(*inspect.Host) error) (matching int,
	err error) {
	v := url.Values{"limit": {strconv.Itoa(q.Limit)}}
	set(v, "state", q.State)
	set(v, "under", q.Under)
	set(v, "contains", q.Contains)
	trailer, err := EachLine(ctx, c, "/api/v1/export/hosts", v, each)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(trailer.Get(trailerMatching))
}

// Host is [inspect.View.Host] of the running crawl.
func (c *Client) Host(ctx context.Context, name string) (story inspect.HostStory, err error) {
	return story, c.Object(ctx, "/api/v1/hosts/"+url.PathEscape(name), nil, &story)
}

// URLs is [inspect.View.URLs] of the running crawl, from a position that an earlier call returned.
func (c *Client) URLs(ctx context.Context, q inspect.URLQuery, from string, each func(*inspect.URL) error) (next string,
	err error) {
	v := url.Values{"limit": {strconv.Itoa(q.Limit)}}
	set(v, "from", from)
	set(v, "host", q.Host)
	set(v, "contains", q.Contains)
	set(v, "seed", q.Seed.String())
	set(v, "tag", q.Tag)
	if q.Status > 0 {
		v.Set("status", strconv.Itoa(q.Status))
	}
	if q.State != nil {
		v.Set("state", q.State.String())
	}
	if q.Reason != nil {
		v.Set("reason", inspect.ReasonName(*q.Reason))
	}
	trailer, err := EachLine(ctx, c, "/api/v1/export", v, each)
	return trailer.Get(trailerNext), err
}

// URL is [inspect.View.URL] of the running crawl.
func (c *Client) URL(ctx context.Context, u weburl.URL) (story inspect.URLStory, err error) {
	return story, c.Object(ctx, "/api/v1/url", url.Values{"url": {u.String()}}, &story)
}

// Backup is [crawl.Engine.Backup] of the running crawl.
func (c *Client) Backup(ctx context.Context, w io.Writer) (int64, error) {
	response, err := c.send(ctx, http.MethodGet, BasePath+"/backup", nil, nil)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	n, err := io.Copy(w, response.Body)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return n, fmt.Errorf("the crawl broke the copy off after %d of %d bytes; its log says why: %w", n,
			response.ContentLength, err)
	}
	if err != nil {
		return n, c.broken(err)
	}
	return n, nil
}

// Command submits a command to the API of the running crawl: path is relative to the API, body is
// sent as JSON unless it is nil. The response is decoded into to, which may be nil. The error wraps an
// *Incomplete if parts of a cluster will carry the command out later.
func (c *Client) Command(ctx context.Context, method, path string, body, to any) error {
	var sent io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(encoded)
	}
	response, err := c.send(ctx, method, BasePath+path, nil, sent)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var done struct{ Incomplete *Incomplete }
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxObject))
	if err == nil && len(answer) > 0 {
		err = json.Unmarshal(answer, &done)
	}
	if err == nil && to != nil {
		err = json.Unmarshal(answer, to)
	}
	if err != nil {
		return c.broken(err)
	}
	return done.Incomplete.later()
}

// ended returns the error of an answer in reports: that of its transport, that of its last report,
// or that there was no last report.
func (c *Client) ended(err error, reported string, done bool) error {
	switch {
	case err != nil:
		return err
	case reported != "":
		return errors.New(reported)
	case !done:
		return c.broken(io.ErrUnexpectedEOF)
	}
	return nil
}

// eachReport sends a body and calls each for every report of the response.
func eachReport[T any](ctx context.Context, c *Client, path string, v url.Values, body io.Reader,
	each func(*T) error) error {
	response, err := c.send(ctx, http.MethodPost, path, v, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	for reports := json.NewDecoder(response.Body); ; {
		var report T
		switch err := reports.Decode(&report); {
		case err == io.EOF:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return c.broken(err)
		}
		if err := each(&report); err != nil {
			return err
		}
	}
}

func set(v url.Values, name, value string) {
	if value != "" {
		v.Set(name, value)
	}
}

// EachLine reads a response of JSON lines and returns its trailer. path is that of the API, from its root.
func EachLine[T any](ctx context.Context, c *Client, path string, v url.Values, each func(*T) error) (http.Header,
	error) {
	response, err := c.send(ctx, http.MethodGet, path, v, nil)
	if err != nil {
		return nil, err
	}
	return Lines(response, each, c.broken)
}

// Lines is EachLine of a response. broken makes the error of one that ends too early.
func Lines[T any](response *http.Response, each func(*T) error, broken func(error) error) (http.Header, error) {
	defer response.Body.Close()
	lines := json.NewDecoder(response.Body)
	for {
		var line T
		switch err := lines.Decode(&line); {
		case err == io.EOF:
			return response.Trailer, nil
		case err != nil:
			return nil, broken(err)
		}
		if err := each(&line); err != nil {
			return nil, err
		}
	}
}

// Object reads an object of the API. path is that of the API, from its root.
func (c *Client) Object(ctx context.Context, path string, v url.Values, to any) error {
	response, err := c.send(ctx, http.MethodGet, path, v, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if err := json.NewDecoder(io.LimitReader(response.Body, maxObject)).Decode(to); err != nil {
		return c.broken(err)
	}
	return nil
}

// broken is the error of a response that ends too early.
func (c *Client) broken(err error) error {
	return fmt.Errorf("the running crawl, process %d, broke off its response, probably because it ended: %w",
		c.running.Process, err)
}

// send sends a request, and returns an error for an error response.
func (c *Client) send(ctx context.Context, method, path string, v url.Values, body io.Reader) (*http.Response, error) {
	target := c.running.url(path)
	if len(v) > 0 {
		target += "?" + v.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		return nil, err
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.transport.RoundTrip(request)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotRunning, err)
	}
	if response.Header.Get(instanceHeader) == c.running.Instance && response.StatusCode == http.StatusOK {
		return response, nil
	}
	defer response.Body.Close()
	return nil, refusal(response)
}

// refusal returns the error that a response describes.
func refusal(response *http.Response) error {
	var p huma.ErrorModel
	if json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&p) != nil || p.Detail == "" {
		p.Detail = response.Status
	}
	for _, e := range p.Errors {
		place := strings.TrimPrefix(strings.TrimPrefix(e.Location, "body"), ".")
		p.Detail += "; " + strings.TrimPrefix(place+": "+e.Message, ": ")
	}
	switch response.StatusCode {
	case http.StatusNotFound:
		return &serverError{p.Detail, inspect.ErrUnknown}
	case http.StatusServiceUnavailable:
		return &serverError{p.Detail, crawl.ErrNotRunning}
	}
	return errors.New(p.Detail)
}

// serverError is an error in the words of the server.
type serverError struct {
	text string
	is   error
}

// Error returns the server's text.
func (t *serverError) Error() string { return t.text }

// Unwrap returns the error that the text describes.
func (t *serverError) Unwrap() error { return t.is }
