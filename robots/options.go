package robots

import (
	"errors"
	"fmt"
	"time"
)

// Options say how responses to requests for robots.txt are judged. They are read-only and may be shared by goroutines.
type Options struct {
	// ForbiddenDenies makes 401 and 403 a complete disallow. RFC 9309 section 2.3.1.3 lets them count as "no file".
	ForbiddenDenies bool

	// MaxRedirects is the number of redirects followed one after another. After more, the file
	// counts as unavailable. At least 5 (RFC 9309 section 2.3.1.2).
	MaxRedirects int

	// MinLifetime and MaxLifetime bound the lifetime from Cache-Control and Expires. MaxLifetime is
	// at most 24 h (RFC 9309 section 2.4).
	MinLifetime, MaxLifetime time.Duration
	NoCacheLifetime          time.Duration // of a response that must not be cached, or is stale when it arrives

	// NotRobotsLifetime is the lifetime of a response that is no robots.txt, such as an HTML page.
	NotRobotsLifetime time.Duration

	// MinRetry and MaxRetry bound the wait before the next request for an unreachable file. It
	// starts at MinRetry and doubles up to MaxRetry, plus a random part of up to a quarter.
	MinRetry, MaxRetry time.Duration

	// MaxRetryAfter bounds the wait from a Retry-After header.
	MaxRetryAfter time.Duration

	// DisallowFor is how long an unreachable file means complete disallow, from the time when its
	// last good copy is older than MaxLifetime. After that the copy counts again.
	DisallowFor time.Duration

	// UndefinedAfter is the "reasonably long period" of RFC 9309 section 2.3.1.4, 30 days. After it, an unreachable
	// file counts as unavailable if it has no copy and the host responds to other requests.
	UndefinedAfter time.Duration

	// ForgetCopy ends the use of a copy after UndefinedAfter: the file then counts as unavailable.
	// Otherwise the copy still counts; RFC 9309 permits both.
	ForgetCopy bool
}

// DefaultOptions returns the options recommended for a polite crawler.
func DefaultOptions() Options {
	return Options{
		MaxRedirects:      5,
		MinLifetime:       time.Minute,
		MaxLifetime:       24 * time.Hour,
		NoCacheLifetime:   10 * time.Minute,
		NotRobotsLifetime: time.Hour,
		MinRetry:          time.Minute,
		MaxRetry:          time.Hour,
		MaxRetryAfter:     24 * time.Hour,
		DisallowFor:       12 * time.Hour,
		UndefinedAfter:    30 * 24 * time.Hour,
	}
}

// ErrOptions is wrapped by every error of Validate.
var ErrOptions = errors.New("robots options")

// Validate returns an error that names the first invalid option, or nil.
func (o Options) Validate() error {
	checks := []struct {
		ok   bool
		text string
	}{
		{o.MaxRedirects >= 5, "MaxRedirects must be at least 5"},
		{o.MinLifetime > 0, "MinLifetime must be more than 0"},
		{o.MaxLifetime >= o.MinLifetime, "MaxLifetime must not be less than MinLifetime"},
		{o.MaxLifetime <= 24*time.Hour, "MaxLifetime must be at most 24h"},
		{o.NoCacheLifetime > 0 && o.NoCacheLifetime <= o.MaxLifetime, "NoCacheLifetime must be in (0, MaxLifetime]"},
		{o.NotRobotsLifetime > 0 && o.NotRobotsLifetime <= o.MaxLifetime, "NotRobotsLifetime must be more than 0 and " +
			"at most MaxLifetime"},
		{o.MinRetry > 0, "MinRetry must be more than 0"},
		{o.MaxRetry >= o.MinRetry, "MaxRetry must not be less than MinRetry"},
		{o.MaxRetryAfter >= o.MaxRetry, "MaxRetryAfter must not be less than MaxRetry"},
		{o.DisallowFor >= 0, "DisallowFor must not be negative"},
		{o.UndefinedAfter >= o.DisallowFor, "UndefinedAfter must not be less than DisallowFor"},
	}
	for _, c := range checks {
		if !c.ok {
			return fmt.Errorf("%w: %s", ErrOptions, c.text)
		}
	}
	return nil
}
