package natsconn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Reads gets messages of a stream, without a consumer. Last and Next ask the leader of the stream. Batch and
// Newest ask any server that has a copy: it may be behind, but has all messages before the last one that it has.
// A Reads may be used concurrently.
type Reads struct {
	nc     *nats.Conn
	stream string
}

// NewReads returns what reads a stream, which has AllowDirect: see [Readable].
func NewReads(nc *nats.Conn, stream string) *Reads { return &Reads{nc, stream} }

// readRequest is what servers take to get messages: see JSApiMsgGetRequest of nats-server.
type readRequest struct {
	From     uint64   `json:"seq,omitempty"`
	LastOf   string   `json:"last_by_subj,omitempty"`
	NextOf   string   `json:"next_by_subj,omitempty"`
	Batch    int      `json:"batch,omitempty"`
	MaxBytes int      `json:"max_bytes,omitempty"`
	NewestOf []string `json:"multi_last,omitempty"`
	UpTo     uint64   `json:"up_to_seq,omitempty"`
}

// Last returns the newest message of a subject; nil: there is none.
func (r *Reads) Last(ctx context.Context, subject string) (*jetstream.RawStreamMsg, error) {
	return r.ofLeader(ctx, &readRequest{LastOf: subject})
}

// Next returns the first message of a subject with a sequence or a later one; nil: there is none.
func (r *Reads) Next(ctx context.Context, subject string, from uint64) (*jetstream.RawStreamMsg, error) {
	return r.ofLeader(ctx, &readRequest{From: max(1, from), NextOf: subject})
}

// ofLeader gets one message from the leader.
func (r *Reads) ofLeader(ctx context.Context, q *readRequest) (*jetstream.RawStreamMsg, error) {
	data, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	m, err := r.nc.RequestWithContext(ctx, "$JS.API.STREAM.MSG.GET."+r.stream, data)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Error   *jetstream.APIError `json:"error"`
		Message *struct {
			Subject  string    `json:"subject"`
			Sequence uint64    `json:"seq"`
			Data     []byte    `json:"data"`
			Time     time.Time `json:"time"`
		} `json:"message"`
	}
	err = json.Unmarshal(m.Data, &answer)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the answer of a NATS server cannot be read: %w", err)
	case answer.Error != nil && answer.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return nil, nil
	case answer.Error != nil:
		return nil, answer.Error
	case answer.Message == nil:
		return nil, errors.New("the answer of a NATS server has no message")
	}
	a := answer.Message
	return &jetstream.RawStreamMsg{Subject: a.Subject, Sequence: a.Sequence, Data: a.Data, Time: a.Time}, nil
}

// The bounds of one batch.
const (
	batchMessages = 256
	batchBytes    = 1 << 20 // it ends with the message that is beyond
)

// Batch returns messages of a subject, which may have wildcards, from a sequence on, in their order, as many as the
// server has or as fit into one batch. more reports whether the server has others behind them.
func (r *Reads) Batch(ctx context.Context, subject string, from uint64) (
	all []*jetstream.RawStreamMsg, more bool, err error) {
	return r.direct(ctx, &readRequest{From: max(1, from), NextOf: subject, Batch: batchMessages, MaxBytes: batchBytes})
}

// maxNewest bounds the subjects of Newest: a server answers with at most 1,024 messages.
const maxNewest = 512

// Newest returns the newest message of each of some subjects up to a sequence (0: of all), in the order of their
// sequences, as one server had them at one instant. Subjects without one are left out.
func (r *Reads) Newest(ctx context.Context, upTo uint64, subjects ...string) ([]*jetstream.RawStreamMsg, error) {
	if len(subjects) > maxNewest {
		return nil, fmt.Errorf("%d subjects, at most %d can be read at once", len(subjects), maxNewest)
	}
	all, more, err := r.direct(ctx, &readRequest{NewestOf: subjects, UpTo: upTo, MaxBytes: 64 * batchBytes})
	if err == nil && more {
		err = errors.New("the newest messages are too large to be read at once")
	}
	return all, err
}

// Headers of answers. A stored message may have such headers too: those of the server come last.
const (
	statusHeader  = "Status"
	pendingHeader = "Nats-Num-Pending"
)

// The status of an answer without a message.
const (
	statusEnd          = "204"
	statusNone         = "404"
	statusNoResponders = "503"
)

// direct gets several messages from a server with a copy of the stream.
func (r *Reads) direct(ctx context.Context, q *readRequest) (all []*jetstream.RawStreamMsg, more bool, err error) {
	data, err := json.Marshal(q)
	if err != nil {
		return nil, false, err
	}
	inbox, answers := r.nc.NewInbox(), make(chan *nats.Msg, maxNewest+1)
	sub, err := r.nc.ChanSubscribe(inbox, answers)
	if err == nil {
		defer func() { _ = sub.Unsubscribe() }() // the connection may be gone
		err = r.nc.PublishRequest("$JS.API.DIRECT.GET."+r.stream, inbox, data)
	}
	if err != nil {
		return nil, false, err
	}
	lost := r.nc.StatusChanged(nats.RECONNECTING, nats.CLOSED)
	defer r.nc.RemoveStatusListener(lost)
	for last := uint64(0); ; {
		select {
		case <-ctx.Done():
			return nil, false, ctx.Err()
		case <-lost:
			return nil, false, errConnection
		case m := <-answers:
			before := newest(m, jetstream.LastSequenceHeader)
			if before != "" && before != strconv.FormatUint(last, 10) {
				return nil, false, errSkipped
			}
			if newest(m, jetstream.SubjectHeader) == "" {
				more, err = endOf(m)
				return all, more, err
			}
			raw, err := rawOf(m)
			if err != nil {
				return nil, false, err
			}
			all, last = append(all, raw), raw.Sequence
		}
	}
}

// newest returns the value of a header that the server has set.
func newest(m *nats.Msg, header string) string {
	if all := m.Header.Values(header); len(all) > 0 {
		return all[len(all)-1]
	}
	return ""
}

// rawOf returns the stored message of an answer.
func rawOf(m *nats.Msg) (*jetstream.RawStreamMsg, error) {
	sequence, err := strconv.ParseUint(newest(m, jetstream.SequenceHeader), 10, 64)
	at, badTime := time.Parse(time.RFC3339Nano, newest(m, jetstream.TimeStampHeaer))
	if err = errors.Join(err, badTime); err != nil {
		return nil, fmt.Errorf("the answer of a NATS server cannot be read: %w", err)
	}
	return &jetstream.RawStreamMsg{
		Subject: newest(m, jetstream.SubjectHeader), Sequence: sequence, Header: m.Header,
		Data: m.Data, Time: at,
	}, nil
}

// endOf returns what the end of a batch says.
func endOf(m *nats.Msg) (more bool, err error) {
	switch status := m.Header.Get(statusHeader); status {
	case statusEnd:
		left, err := strconv.ParseUint(newest(m, pendingHeader), 10, 64)
		return left > 0, err
	case statusNone:
		return false, nil
	case statusNoResponders:
		return false, fmt.Errorf("no server can be read from now: %w", nats.ErrNoResponders)
	default:
		return false, fmt.Errorf("a NATS server does not give messages: %s %s", status, m.Header.Get("Description"))
	}
}
