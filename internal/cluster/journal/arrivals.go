//go:build !core

package journal

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/amble-crawler/amble/internal/cluster/natsconn"
)

// arrivals tells those who follow subjects of a stream that there are new messages. One consumer, which gets no
// data, serves all followers of the process. It lives as long as there are some. What it tells them is a hint:
// they read the messages themselves, and whenever it has begun again they look for what it may have missed.
type arrivals struct {
	s        *Streams
	nc       *nats.Conn
	stream   jetstream.Stream
	reads    *natsconn.Reads
	subjects string // of all messages that may be followed
	mark     string // the subject of the marks; empty: the stream has none

	joining sync.Mutex // held while the reader starts or ends; taken before mu
	end     func()     // ends the reader and waits for it; guarded by joining

	mu        sync.Mutex                        // guards what follows; nothing blocks under it
	followers map[string]map[*follower]struct{} // by subject
	looks     int                               // how often followers had to look for messages
	newest    uint64                            // the sequence of the newest mark
	delivered uint64                            // the last message that the reader has got
}

// follower follows one subject. It belongs to the goroutine that has joined, except for end.
type follower struct {
	a        *arrivals
	subject  string
	after    uint64 // of the last message that was taken
	marked   uint64 // the last mark that was taken
	take     func(*message) error
	takeMark func(sequence uint64) error // nil: marks are of no interest
	looked   int                         // the looks that are done
	wake     chan struct{}               // holds one
	end      uint64                      // the newest message that is known; guarded by a.mu
}

// due is what a follower has to read.
type due struct {
	end   uint64 // messages up to this one
	mark  uint64 // up to this mark
	looks int    // if there are more of them than are done, there may be other messages
}

// newArrivals returns the arrivals of the subjects of a stream that end so.
func (s *Streams) newArrivals(nc *nats.Conn, stream jetstream.Stream, reads *natsconn.Reads,
	subjects string) *arrivals {
	return &arrivals{s: s, nc: nc, stream: stream, reads: reads, subjects: s.o.Prefix + subjects,
		followers: make(map[string]map[*follower]struct{})}
}

// join makes a follower of a subject, which leave ends.
func (a *arrivals) join(subject string) (f *follower, leave func()) {
	f = &follower{a: a, subject: subject, wake: make(chan struct{}, 1)}
	a.joining.Lock()
	defer a.joining.Unlock()
	a.mu.Lock()
	first := len(a.followers) == 0
	if a.followers[subject] == nil {
		a.followers[subject] = make(map[*follower]struct{})
	}
	a.followers[subject][f] = struct{}{}
	f.looked = a.looks - 1
	a.mu.Unlock()
	if first {
		a.start()
	}
	return f, func() {
		a.joining.Lock()
		defer a.joining.Unlock()
		a.mu.Lock()
		if delete(a.followers[subject], f); len(a.followers[subject]) == 0 {
			delete(a.followers, subject)
		}
		last := len(a.followers) == 0
		a.mu.Unlock()
		if last {
			a.end()
		}
	}
}

// start starts the reader. a.joining is held.
func (a *arrivals) start() {
	ctx, cancel := context.WithCancel(context.Background())
	var reading sync.WaitGroup
	reading.Go(func() { a.run(ctx) })
	a.end = func() {
		cancel()
		reading.Wait()
	}
}

// readAgain is the pause before the heads of messages are read again after a failure.
const readAgain = 250 * time.Millisecond

// run reads the heads of messages until the context ends.
func (a *arrivals) run(ctx context.Context) {
	f := natsconn.Following{Subjects: []string{a.subjects}, Policy: jetstream.DeliverNewPolicy, Heads: true}
	for ctx.Err() == nil {
		one, end := context.WithCancel(ctx)
		var watching sync.WaitGroup
		var once sync.Once
		_ = natsconn.Follow(one, a.nc, a.stream, f, a.arrived, func() {
			once.Do(func() { watching.Go(func() { a.watch(one, end) }) })
		}) // whatever it was, all is looked for again
		end()
		watching.Wait()
		sleep(ctx, readAgain)
	}
}

// watch has all followers look for what has come before the reader. Then it ends the reader when a message is not
// delivered to it: after servers were away, one may go on to say that it has nothing, while it has.
func (a *arrivals) watch(ctx context.Context, end func()) {
	before, err := a.begun(ctx)
	if err != nil {
		end()
		return
	}
	for missing := uint64(0); sleep(ctx, a.s.o.Timeout/2); {
		a.mu.Lock()
		delivered := max(before, a.delivered)
		a.mu.Unlock()
		if missing > delivered {
			end()
			return
		}
		missing, _ = a.s.next(ctx, a.reads, a.subjects, delivered+1) // the followers report what fails
	}
}

// begun has all followers look for what has come before, and returns the last sequence of that.
func (a *arrivals) begun(ctx context.Context) (last uint64, err error) {
	mark := uint64(0)
	ctx, cancel := context.WithTimeout(ctx, a.s.o.Timeout)
	defer cancel()
	info, err := a.stream.Info(ctx)
	if err == nil && a.mark != "" {
		mark, err = a.s.next(ctx, a.reads, a.mark, 1)
	}
	if err != nil {
		return 0, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.newest = max(a.newest, mark)
	a.looks++
	a.ringAll()
	return info.State.LastSeq, nil
}

// arrived tells the followers of a message.
func (a *arrivals) arrived(m message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.delivered = m.Sequence
	if m.Subject == a.mark {
		a.newest = max(a.newest, m.Sequence)
		a.ringAll()
		return
	}
	for f := range a.followers[m.Subject] {
		f.end = max(f.end, m.Sequence)
		f.ring()
	}
}

// ringAll wakes all followers. a.mu is held.
func (a *arrivals) ringAll() {
	for _, all := range a.followers {
		for f := range all {
			f.ring()
		}
	}
}

func (f *follower) ring() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// due returns what a follower has to read.
func (a *arrivals) due(f *follower) due {
	a.mu.Lock()
	defer a.mu.Unlock()
	return due{f.end, a.newest, a.looks}
}
