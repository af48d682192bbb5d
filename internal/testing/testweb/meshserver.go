package testweb

import (
	"bufio"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// meshServer serves a mesh with as few system calls as possible, because it shares the machine with
// the crawler that is measured.
type meshServer struct {
	mesh    Mesh
	web     *Web
	numbers map[string]int // host name: number
	text    []byte
	rooms   sync.Pool // of *meshRoom

	connServer
}

func newMeshServer(m Mesh, w *Web) *meshServer {
	s := &meshServer{
		mesh: m, web: w, text: m.filler(),
		numbers: make(map[string]int, m.Hosts),
	}
	for h := range m.Hosts {
		s.numbers[m.Host(h)] = h
	}
	return s
}

// Serve handles connections to l until Close.
func (s *meshServer) Serve(l net.Listener) error { return s.serve(l, s.serveConn) }

// meshRoom is memory for an answer. An idle connection has none.
type meshRoom struct{ body, response []byte }

// write sends the response to q.
func (s *meshServer) write(c net.Conn, q meshRequest) error {
	room, ok := s.rooms.Get().(*meshRoom)
	if !ok {
		room = &meshRoom{}
	}
	defer s.rooms.Put(room)
	if s.mesh.Wait > 0 {
		time.Sleep(s.mesh.Wait)
	}
	answer := s.answer(room.body[:0], q)
	room.body = answer.body
	room.response = answer.append(room.response[:0])
	_, err := c.Write(room.response)
	return err
}

func (s *meshServer) serveConn(c net.Conn) {
	recorded, _ := c.(*conn)
	reader := bufio.NewReaderSize(c, meshReader)
	for {
		q, ok := readMeshRequest(reader)
		if !ok {
			return
		}
		if recorded != nil {
			recorded.begin(s.web.recorder.begin(recorded, q.requestInfo))
		}
		if s.write(c, q) != nil {
			return
		}
		if recorded != nil {
			recorded.finish()
		}
		if q.last {
			return
		}
	}
}

// meshRequest is the part of a request that a mesh needs.
type meshRequest struct {
	requestInfo
	port string // of the Host header, with its colon
	last bool   // the client wants the connection closed
}

// Bounds of a request: the bytes of a line, and the number of header fields.
const (
	meshReader     = 1 << 10
	maxMeshHeaders = 100
)

// readMeshRequest reads a request. It returns false at the end of the connection, and if a line is
// longer than the buffer or not HTTP.
func readMeshRequest(r *bufio.Reader) (q meshRequest, ok bool) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return q, false
	}
	method, rest, _ := strings.Cut(string(line), " ")
	path, _, ok := strings.Cut(rest, " ")
	if !ok {
		return q, false
	}
	q.method, q.path = method, path
	for range maxMeshHeaders {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return q, false
		}
		header := strings.TrimRight(string(line), "\r\n")
		if header == "" {
			return q, true
		}
		name, value, _ := strings.Cut(header, ":")
		q.note(name, strings.TrimSpace(value))
	}
	return q, false
}

func (q *meshRequest) note(name, value string) {
	switch {
	case strings.EqualFold(name, "Host"):
		q.host = hostOf(value)
		_, q.port = splitPort(value)
	case strings.EqualFold(name, "User-Agent"):
		q.agent = value
	case strings.EqualFold(name, "Connection"):
		q.last = strings.EqualFold(value, "close")
	}
}

// meshAnswer is a response. Its body is body followed by text.
type meshAnswer struct {
	status      int
	contentType string
	body, text  []byte
}

// answer returns the response to q. room is memory for the body.
func (s *meshServer) answer(room []byte, q meshRequest) meshAnswer {
	s.web.served.Add(1)
	a := meshAnswer{status: http.StatusOK, contentType: "text/html; charset=utf-8", body: room}
	h, known := s.numbers[q.host]
	if !known {
		a.status = http.StatusMisdirectedRequest
		return a
	}
	s.web.sites[q.host].served.Add(1)
	i, found := s.mesh.pageNumber(q.path)
	switch {
	case q.method != http.MethodGet:
		a.status = http.StatusMethodNotAllowed
	case q.path == "/robots.txt":
		a.contentType, a.body = "text/plain; charset=utf-8", append(room, meshRobots...)
	case !found:
		a.status = http.StatusNotFound
	default:
		a.body, a.text = s.mesh.appendPage(room, h, i, q.port), s.text
	}
	return a
}

// append appends the response in the form of the wire.
func (a meshAnswer) append(b []byte) []byte {
	b = append(b, "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(a.status), 10)
	b = append(b, ' ')
	b = append(b, http.StatusText(a.status)...)
	b = append(b, "\r\nContent-Type: "...)
	b = append(b, a.contentType...)
	b = append(b, "\r\nContent-Length: "...)
	b = strconv.AppendInt(b, int64(len(a.body)+len(a.text)), 10)
	b = append(b, "\r\n\r\n"...)
	b = append(b, a.body...)
	return append(b, a.text...)
}
