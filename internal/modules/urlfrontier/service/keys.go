//go:build !core

package service

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"connectrpc.com/connect"

	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// A queue is that of a host, and has its name as its key. A client may put URLs with any other key, such as a domain
// or an address: then the key stands for the hosts of these URLs, and whatever is said of it is said of each of them.

// maxKey is the longest key of a queue, in characters.
const maxKey = 255

// hostOfKey returns the host that a key names: the host itself, with or without a port. It returns "" if the
// key names no host.
func hostOfKey(key string) string {
	if key == "" || len(key) > maxKey || strings.ContainsAny(key, "/?#@\\") {
		return ""
	}
	u, err := weburl.Parse("http://" + key + "/")
	if err != nil {
		return ""
	}
	return u.Host()
}

// defaultKey cuts the host out of a URL, as the protocol does it: after "://", up to the first of
// ":", "/", "?" and "&".
func defaultKey(text string) string {
	_, rest, found := strings.Cut(text, "://")
	if !found {
		return ""
	}
	if i := strings.IndexAny(rest, ":/?&"); i >= 0 {
		return rest[:i]
	}
	return rest
}

// queueOf returns the key of the queue that a client puts a URL into. A key that is the host of the URL, its host
// and port, or what the protocol makes of the text of the URL if there is no key, is the host; any other stands
// for the hosts that are put with it. Empty: the client does not say.
func queueOf(key string, u weburl.URL, text string) string {
	switch {
	case key == "":
		return ""
	case key == u.Host() || key == u.HostPort() || key == defaultKey(text):
		return u.Host()
	case strings.ContainsAny(key, "/?#@\\"):
		return key
	}
	k, err := weburl.Parse(u.Scheme() + "://" + key + "/")
	if err == nil && k.Host() == u.Host() && k.Port() == u.Port() {
		return u.Host()
	}
	return key
}

// checkKey returns an error for a key that no queue can have.
func checkKey(key string) error {
	if utf8.RuneCountInString(key) > maxKey {
		return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("a key has %d characters at most", maxKey))
	}
	return nil
}

// hostsPage is how many hosts of a queue are read at a time.
const hostsPage = 500

// eachHost calls do for the hosts of the queue of a key: those that were put with it, in turn behind a host, and the
// one that it names. The error is inspect.ErrUnknown if none of them has URLs, or the first other one of do.
func eachHost(ctx context.Context, c Crawl, key, behind string, do func(host string) error) error {
	if err := checkKey(key); err != nil {
		return err
	}
	own, known := hostOfKey(key), false
	visit := func(host string) error {
		err := do(host)
		if known = known || err == nil; errors.Is(err, inspect.ErrUnknown) {
			err = nil
		}
		return errors.Join(err, ctx.Err())
	}
	err := putHosts(c, key, behind, func(host string) (bool, error) {
		if host == own {
			return true, nil
		}
		return true, visit(host)
	})
	if err == nil && own != "" {
		err = visit(own)
	}
	if err == nil && behind != "" {
		err = putHosts(c, key, "", func(host string) (bool, error) {
			if host > behind || host == own {
				return host <= behind, nil
			}
			return true, visit(host)
		})
	}
	if err == nil && !known {
		return inspect.ErrUnknown
	}
	return err
}

// putHosts calls do for the hosts that were put with a key, those behind a host, as long as it returns true.
func putHosts(c Crawl, key, behind string, do func(host string) (bool, error)) error {
	for more := true; more; {
		hosts, err := c.HostsOfQueue(key, behind, hostsPage)
		if err != nil {
			return err
		}
		more = len(hosts) == hostsPage
		for _, host := range hosts {
			if again, err := do(host); err != nil || !again {
				return err
			}
			behind = host
		}
	}
	return nil
}

// maxTurns bounds the queues whose turns are remembered.
const maxTurns = 10_000

// turns remembers which host of a queue had its turn last, so that each GetURLs begins with another. It is safe for
// concurrent use.
type turns struct {
	mu   sync.Mutex
	last map[string]string // by crawl and key
}

func (t *turns) of(queue string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last[queue]
}

func (t *turns) note(queue, host string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == nil || len(t.last) >= maxTurns {
		t.last = make(map[string]string)
	}
	t.last[queue] = host
}
