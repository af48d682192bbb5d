package natsconn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// repeats is for how long the stream knows the ids of messages.
const repeats = 10 * time.Minute

// StreamConfig returns the stream with the registers and the logs of all shards, in so many copies.
// Nothing leaves it by age or size: the owners purge what they need no longer.
func (n Names) StreamConfig(replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        n.Stream(),
		Description: "amble: registers and logs of cluster " + n.Cluster,
		Subjects: []string{n.Subject("settings"), n.Subject("desired"), n.Subject("scope"), n.Subject("pages"),
			n.Subject("recrawls"), n.Subject("member", "*"), n.Subject("epoch", "*"), n.Subject("log", "*")},
		Storage: jetstream.FileStorage, Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardNew,
		Duplicates: repeats, MaxMsgs: -1, MaxBytes: -1, MaxMsgsPerSubject: -1, MaxMsgSize: -1,
		Replicas: replicas, AllowRollup: true, AllowAtomicPublish: true, DenyDelete: true,
		AllowDirect: true, MaxConsumers: MaxConsumers,
	}
}

// MaxConsumers is how many consumers a stream of a cluster may have: a few for each node, and those of nodes that
// were killed until the servers forget them. Without it nats-server takes 1,000.
const MaxConsumers = 10_000

// codeMaxConsumers is the code of JetStream for more consumers than an account may have.
const codeMaxConsumers = 10026

// Limited makes or changes a stream by f. If the account may not have MaxConsumers, the stream gets what it may
// have.
func Limited(c jetstream.StreamConfig, f func(jetstream.StreamConfig) (jetstream.Stream, error)) (jetstream.Stream,
	error) {
	s, err := f(c)
	var refusal *jetstream.APIError
	if errors.As(err, &refusal) && refusal.ErrorCode == codeMaxConsumers {
		c.MaxConsumers = -1
		s, err = f(c)
	}
	return s, err
}

// Readable returns a stream that [Reads] can read and that takes MaxConsumers. One that an earlier version has made
// is changed.
func Readable(ctx context.Context, js jetstream.JetStream, s jetstream.Stream) (jetstream.Stream, error) {
	c := s.CachedInfo().Config
	if c.AllowDirect {
		return s, nil
	}
	c.AllowDirect, c.MaxConsumers = true, MaxConsumers
	return Limited(c, func(c jetstream.StreamConfig) (jetstream.Stream, error) { return js.UpdateStream(ctx, c) })
}

// OpenStream returns the stream with the registers and the logs. It creates the stream if there is
// none. If there is one that the cluster cannot work with, the error names each difference, and the
// stream is returned too. While the servers have no leader the error is ErrDown.
func OpenStream(ctx context.Context, js jetstream.JetStream, n Names, replicas int) (jetstream.Stream, error) {
	want := n.StreamConfig(replicas)
	s, err := js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		s, err = Limited(want,
			func(c jetstream.StreamConfig) (jetstream.Stream, error) { return js.CreateStream(ctx, c) })
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another node was faster
			s, err = js.Stream(ctx, want.Name)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open stream %s: %w", want.Name, Down(noJetStream(js, err)))
	}
	if d := differences(want, s.CachedInfo().Config); len(d) > 0 {
		return s, fmt.Errorf("stream %s cannot hold this cluster: %s; change the setting, or give the cluster "+
			"another name (cluster.name)", want.Name, strings.Join(d, "; "))
	}
	if s, err = Readable(ctx, js, s); err != nil {
		return nil, fmt.Errorf("change stream %s: %w", want.Name, Down(err))
	}
	return s, nil
}

// differences says in which settings a stream is not as the cluster needs it.
func differences(want, have jetstream.StreamConfig) (d []string) {
	compare := func(what string, want, have any) {
		if want != have {
			d = append(d, fmt.Sprintf("%s is %v, not %v", what, have, want))
		}
	}
	slices.Sort(want.Subjects)
	slices.Sort(have.Subjects)
	compare("subjects", strings.Join(want.Subjects, " "), strings.Join(have.Subjects, " "))
	compare("the number of copies (cluster.replicas)", want.Replicas, have.Replicas)
	compare("storage", want.Storage, have.Storage)
	compare("retention", want.Retention, have.Retention)
	compare("discard", want.Discard, have.Discard)
	compare("allow_rollup_hdrs", want.AllowRollup, have.AllowRollup)
	compare("allow_atomic", want.AllowAtomicPublish, have.AllowAtomicPublish)
	compare("max_age", want.MaxAge, have.MaxAge)
	compare("max_msgs", want.MaxMsgs, have.MaxMsgs)
	compare("max_bytes", want.MaxBytes, have.MaxBytes)
	compare("max_msgs_per_subject", want.MaxMsgsPerSubject, have.MaxMsgsPerSubject)
	compare("max_msg_size", want.MaxMsgSize, have.MaxMsgSize)
	compare("persist_mode", want.PersistMode, have.PersistMode)
	compare("mirror", want.Mirror != nil, have.Mirror != nil)
	return d
}
