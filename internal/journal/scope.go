package journal

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/internal/wire"
	"github.com/amble-crawler/amble/storage"
)

// Scope seeds are where redirects of seeds have led out of the scope. They are in PREFIX.scope, in the
// stream of the logs: so whoever has read it up to a claim knows all that the shard's owners before knew.

// scopeVersion is the version of the messages with scope seeds.
const scopeVersion = 1

// maxScopeSeeds bounds the URLs in one message.
const maxScopeSeeds = 64

// appendScope appends a message with scope seeds. FORMAT.md describes its bytes.
func appendScope(b []byte, urls []weburl.URL) []byte {
	b = binary.AppendUvarint(append(b, scopeVersion), uint64(len(urls)))
	for _, u := range urls {
		text := u.String()
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	return b
}

// decodeScope is the inverse of appendScope.
func decodeScope(b []byte) (urls []weburl.URL, err error) {
	d := wire.NewDecoder(b)
	switch version := d.Byte(); {
	case !d.OK() || version == 0:
		return nil, fmt.Errorf("%w: it has no version", storage.ErrRecord)
	case version > scopeVersion:
		return nil, fmt.Errorf("a message with scope seeds: %w (its version is %d, this amble reads up to %d): "+
			"use a newer amble on this node", storage.ErrNewer, version, scopeVersion)
	}
	for n := d.UvarintMax(maxScopeSeeds); n > 0 && d.OK(); n-- {
		text := string(d.Long())
		if !d.OK() {
			break
		}
		u, err := weburl.Parse(text)
		if err != nil || u.String() != text {
			return nil, fmt.Errorf("%w: a scope seed is no URL in its canonical form", storage.ErrRecord)
		}
		urls = append(urls, u)
	}
	if !d.OK() || d.Len() > 0 {
		return nil, fmt.Errorf("%w: scope seeds end too early or too late", storage.ErrRecord)
	}
	return urls, nil
}

// PublishScope makes scope seeds known to all nodes. It returns the sequence of the last message, whose
// acknowledgement it has waited for. The same seeds may be published again.
func (s *Streams) PublishScope(ctx context.Context, urls []weburl.URL) (sequence uint64, err error) {
	for len(urls) > 0 {
		n := min(len(urls), maxScopeSeeds)
		if sequence, err = s.publishScope(ctx, urls[:n]); err != nil {
			return 0, fmt.Errorf("publish scope seeds: %w", downError(err))
		}
		urls = urls[n:]
	}
	return sequence, nil
}

func (s *Streams) publishScope(ctx context.Context, urls []weburl.URL) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	ack, err := s.js.Publish(ctx, s.scopeSubject(), appendScope(nil, urls),
		jetstream.WithExpectStream(s.o.Prefix+"_log"))
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}

func (s *Streams) scopeSubject() string { return s.o.Prefix + ".scope" }

// TakeScope takes one message with scope seeds. unreadable says that the message is damaged, or of a newer
// version, and has none.
type TakeScope func(sequence uint64, urls []weburl.URL, unreadable error)

// ScopeSeeds gives take the scope seeds behind a sequence, until the context ends. The error is that of
// the context, or ErrLogDown.
func (s *Streams) ScopeSeeds(ctx context.Context, after uint64, take TakeScope) error {
	return s.follow(ctx, s.logArrivals, s.scopeSubject(), after,
		func(m *message) error { return takeScope(m, take) }, nil)
}

// AllScopeSeeds gives take the scope seeds that there are. The error is ErrLogDown.
func (s *Streams) AllScopeSeeds(ctx context.Context, take TakeScope) error {
	last, err := s.last(ctx, s.scopeSubject())
	if err != nil || last == nil {
		return err
	}
	return s.read(ctx, s.logReads, s.scopeSubject(), span{0, last.Sequence, last.Sequence},
		func(m *message) error { return takeScope(m, take) })
}

// takeScope gives take a message. One that cannot be read, whatever its version says, costs its seeds: all nodes
// read it.
func takeScope(m *message, take TakeScope) error {
	urls, err := decodeScope(m.Data)
	take(m.Sequence, urls, err)
	return nil
}

// ReadScope gives take the scope seeds behind a sequence that were published before this process has
// claimed the shard, however old what a server answers may be. The errors are ErrLost and
// ErrLogDown.
func (s *Shard) ReadScope(after uint64, take TakeScope) error {
	end, err := s.lastBefore(s.scopeSubject())
	if err == nil {
		err = s.read(s.ctx, s.logReads, s.scopeSubject(), span{after, end, end},
			func(m *message) error { return takeScope(m, take) })
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", s.scopeSubject(), err)
	}
	return nil
}
