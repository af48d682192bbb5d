package testweb

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Request is one request as the server saw it. The package comment says what its times mean.
type Request struct {
	Start           time.Time `json:"start"`
	End             time.Time `json:"end"`               // if unfinished: the last write, else the time of the snapshot
	Host            string    `json:"host"`              // as requested, lower case, without port
	Address         string    `json:"address"`           // the server's IP address
	Conn            int64     `json:"conn"`              // number of the connection, from 1
	Method          string    `json:"method"`            //
	Path            string    `json:"path"`              // with the query, as sent; at most 4 KiB
	UserAgent       string    `json:"user_agent"`        // at most 1 KiB, as all fields
	From            string    `json:"from,omitempty"`    //
	Node            string    `json:"node,omitempty"`    // NodeField: which of several crawlers made it
	IfNoneMatch     string    `json:"if_none_match"`     //
	IfModifiedSince string    `json:"if_modified_since"` //
	Status          int       `json:"status"`            // as written to the wire; 0: nothing was written
	Bytes           int64     `json:"bytes"`             // of the response, headers included, taken by the kernel
	Done            bool      `json:"done"`              // the server has finished it
	Aborted         bool      `json:"aborted"`           // the client went away before the response was complete
}

// NodeField is the field of requests with the name of the crawler, where several have one User-Agent.
const NodeField = "Demo-Node"

const maxRecordedPath, maxRecordedField = 4 << 10, 1 << 10

// recorder keeps the requests of a web. Times are nanoseconds since base, by the monotonic clock.
type recorder struct {
	base    time.Time
	max     int
	conns   atomic.Int64 // accepted so far
	open    atomic.Int64 // accepted and not closed
	dropped atomic.Int64

	mu      sync.Mutex // guards what follows
	entries []*entry
	names   map[string]string // one copy of each repeated string
}

// requestInfo is the content of a request.
type requestInfo struct {
	method, host, path, agent, from, node, noneMatch, modifiedSince string
}

// entry is a request in the record. The plain fields are written once, before it is in the record;
// the connection writes the atomic fields at any time.
type entry struct {
	requestInfo
	address string

	conn   int64
	start  time.Duration
	end    atomic.Int64 // before the last write so far; 0: none
	gone   atomic.Int64 // when the server noticed that the client had left; 0: it has not
	status atomic.Int32
	bytes  atomic.Int64
	done   atomic.Bool
}

func newRecorder(max int) *recorder {
	return &recorder{base: time.Now(), max: max, names: make(map[string]string)}
}

func (r *recorder) now() int64 { return int64(time.Since(r.base)) }

// begin makes the entry of a request that was read on c.
func (r *recorder) begin(c *conn, q requestInfo) *entry {
	e := &entry{conn: c.number, start: time.Duration(c.takeFirstByte())}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.entries) >= r.max {
		r.dropped.Add(1)
		return e
	}
	// No kept string may share memory with the buffers of the request.
	e.path = strings.Clone(q.path[:min(len(q.path), maxRecordedPath)])
	e.method, e.host, e.agent = r.share(q.method), r.share(q.host), r.share(q.agent)
	e.node, e.from = r.share(q.node), r.share(q.from)
	e.noneMatch, e.modifiedSince = strings.Clone(clip(q.noneMatch)), strings.Clone(clip(q.modifiedSince))
	e.address = c.address
	r.entries = append(r.entries, e)
	return e
}

// maxShared bounds the table of repeated strings. Further strings are copied.
const maxShared = 10_000

// share returns one copy of s for all requests. The caller holds mu.
func (r *recorder) share(s string) string {
	s = clip(s)
	if known, ok := r.names[s]; ok {
		return known
	}
	s = strings.Clone(s)
	if len(r.names) < maxShared {
		r.names[s] = s
	}
	return s
}

func clip(field string) string { return field[:min(len(field), maxRecordedField)] }

func (r *recorder) snapshot() Log {
	now := r.now()
	r.mu.Lock()
	entries := slices.Clone(r.entries)
	r.mu.Unlock()
	log := make(Log, len(entries))
	for i, e := range entries {
		log[i] = e.request(r.base, now)
	}
	log.sort()
	return log
}

// noteStatus reads the status from the first bytes of a response.
func (e *entry) noteStatus(b []byte) {
	if e.status.Load() != 0 || len(b) < len("HTTP/1.1 200") || string(b[:5]) != "HTTP/" {
		return
	}
	code := 0
	for _, d := range b[9:12] {
		code = code*10 + int(d-'0')
	}
	e.status.Store(int32(code))
}

func (e *entry) finish(now int64) {
	e.end.CompareAndSwap(0, now)
	e.done.Store(true)
}

// request returns the entry as of now, in wall-clock time.
func (e *entry) request(base time.Time, now int64) Request {
	base = base.Round(0) // so the difference of two times is that of their offsets
	q := Request{
		Start: base.Add(e.start), Host: e.host, Address: e.address, Conn: e.conn,
		Method: e.method, Path: e.path, UserAgent: e.agent, From: e.from, Node: e.node,
		IfNoneMatch: e.noneMatch, IfModifiedSince: e.modifiedSince,
		Done: e.done.Load(), Status: int(e.status.Load()), Bytes: e.bytes.Load(),
	}
	end, gone := e.end.Load(), e.gone.Load()
	if end == 0 {
		end = now
	}
	if gone != 0 && gone < end {
		end, q.Aborted = gone, true
	}
	q.End = base.Add(time.Duration(end))
	return q
}
