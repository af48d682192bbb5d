package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/fetch"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/robots"
)

// robotsReader reads robots.txt files from disk and from the web.
type robotsReader struct {
	settings *settingsFlags
	asked    bool // a request was made: the next one waits politeness.delay
}

// read returns what the robots.txt at from says, a file or a URL. The settings are read for a URL only.
func (r *robotsReader) read(ctx context.Context, from string) (robots.Record, error) {
	if isWebURL(from) {
		record, err := r.fetch(ctx, from)
		return record, asUsage(err)
	}
	body, err := readRobotsFile(from)
	return robots.Record{Class: robots.ClassFound, Copy: robots.ClassFound, Body: body}, asUsage(err)
}

func isWebURL(from string) bool {
	lower := strings.ToLower(from)
	return strings.HasPrefix(lower, "http://") || strings.HasPrefix(lower, "https://")
}

// asUsage gives the error the exit code 2, since 1 is an answer of these commands.
func asUsage(err error) error {
	if err == nil {
		return nil
	}
	return exit(exitUsage, err)
}

// readRobotsFile reads a little more than the crawler would, so that the parser can tell that a file is cut.
func readRobotsFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err == nil {
		defer file.Close()
		var body []byte
		if body, err = io.ReadAll(io.LimitReader(file, robots.MaxBody+1)); err == nil {
			return body, nil
		}
	}
	if pathError := (*fs.PathError)(nil); errors.As(err, &pathError) {
		err = pathError.Err
	}
	return nil, fmt.Errorf("robots.txt %s cannot be read: %w", path, err)
}

// fetch asks for a robots.txt as the crawler would: with its User-Agent, its limits and its pause between two requests, following
// the redirects that RFC 9309 section 2.3.1.2 asks for.
func (r *robotsReader) fetch(ctx context.Context, rawURL string) (robots.Record, error) {
	c, err := r.settings.load()
	if err != nil {
		return robots.Record{}, err
	}
	client, err := fetch.New(c.FetchOptions(programVersion()), time.Now)
	if err != nil {
		return robots.Record{}, err
	}
	defer client.Close()
	options := c.RobotsOptions()
	record, action := robots.Record{}, robots.Action{Kind: robots.ActionRedirect, URL: rawURL}
	for action.Kind == robots.ActionRedirect {
		if r.asked {
			if err := pause(ctx, c.Politeness.Delay); err != nil {
				return record, err
			}
		}
		r.asked = true
		outcome, err := askRobots(ctx, client, action)
		if err != nil {
			return record, fmt.Errorf("robots.txt cannot be asked for: %w", err)
		}
		record, action = options.Next(record, outcome, time.Now())
	}
	return record, nil
}

// askRobots makes one request. Only an answer is an outcome here: a person who asks wants to hear of a host name that does
// not exist, not that it disallows everything.
func askRobots(ctx context.Context, client *fetch.Client, action robots.Action) (robots.Outcome, error) {
	u, err := weburl.Parse(action.URL)
	if err != nil {
		return robots.Outcome{}, err
	}
	resolution, err := client.Resolve(ctx, u.Host())
	if err != nil {
		return robots.Outcome{}, withHint(err)
	}
	response, err := client.Do(ctx, fetch.Request{URL: u, Address: resolution.Addrs[0], MaxBody: robots.MaxBody + 1, AnyType: true})
	if err != nil {
		return robots.Outcome{}, withHint(err)
	}
	defer response.Close()
	body, err := response.Body.Load(nil, robots.MaxBody+1)
	if err != nil {
		return robots.Outcome{}, err
	}
	header := response.Header
	return robots.Outcome{
		URL:       u.String(),
		Redirects: action.Redirects,
		Status:    response.Status,
		Header: robots.Header{
			ContentType:  header.Get("Content-Type"),
			Location:     header.Get("Location"),
			RetryAfter:   header.Get("Retry-After"),
			CacheControl: header.Get("Cache-Control"),
			Expires:      header.Get("Expires"),
			Date:         header.Get("Date"),
			Age:          header.Get("Age"),
			ETag:         header.Get("ETag"),
			LastModified: header.Get("Last-Modified"),
		},
		Body:      bytes.Clone(body),
		Truncated: response.Truncated,
	}, nil
}

// withHint says what to do about an address that may not be reached.
func withHint(err error) error {
	var failed *fetch.Error
	if errors.As(err, &failed) && failed.Kind == fetch.KindBlockedAddress && !errors.Is(err, fetch.ErrPort) {
		return fmt.Errorf("%w; to reach private addresses use --set fetch.allow_private=true", err)
	}
	return err
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// standing says what an answer that was no robots.txt means, or "".
func standing(record robots.Record) string {
	switch record.Class {
	case robots.ClassUnavailable:
		return fmt.Sprintf("%s: no robots.txt (status %d): everything is allowed", record.FinalURL, record.Status)
	case robots.ClassNotRobots:
		return fmt.Sprintf("%s: what came is no robots.txt: everything is allowed", record.FinalURL)
	case robots.ClassForbidden:
		return fmt.Sprintf("%s: forbidden (status %d): everything is disallowed", record.FinalURL, record.Status)
	case robots.ClassUnreachable:
		return fmt.Sprintf("robots.txt is unreachable (status %d): everything is disallowed for now (RFC 9309 section 2.3.1.4)", record.Status)
	}
	return ""
}
