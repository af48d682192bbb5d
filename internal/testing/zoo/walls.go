package zoo

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Wall is a host that puts up a wall: it answers for a while, then its wall refuses every page, and
// after a time it answers again.
type Wall struct {
	Kind  string        // one of WallKinds; empty: it never refuses
	Pages int           // besides the first page, in directories of ten
	Open  int           // pages that it answers before the wall stands
	Lasts time.Duration // from the first refusal on; 0: for ever

	Sections  int  // directories that the pages are in; 0: one for each ten
	FirstPage bool // is answered always

	// Robots is its robots.txt. After RobotsOpen pages a challenge with the status RobotsWall stands in
	// its place, for as long as Lasts; 0: none does. Then the file is to be fetched every ten minutes.
	Robots     string
	RobotsWall int
	RobotsOpen int
}

// WallKinds returns the kinds of walls.
func WallKinds() []string {
	return []string{
		"refusal", "price", "rate-limit", "legal", "challenge-header", "challenge-503", "challenge-page", "soft-block",
		"same-document", "redirect", "empty", "precondition", "gate",
	}
}

// Visit is a request for a page of a Wall.
type Visit struct {
	At      time.Time
	Target  string
	Refused bool
}

// wallServer is a Wall that runs.
type wallServer struct {
	Wall
	now func() time.Time

	mu          sync.Mutex // guards what follows
	visits      []Visit
	since       time.Time // of the first refusal
	robotsSince time.Time // of the first challenge in place of the robots.txt
}

// AddWall starts a host that puts up a wall, at an address of its own, and returns a function that
// lists its visits so far. Call it before the first visit.
func (z *Zoo) AddWall(name string, w Wall) (visits func() []Visit, err error) {
	s := &wallServer{Wall: w, now: z.clock.Now}
	a := server{name: name, path: "/", fromStart: true, serve: s.serve}
	if err := z.start(a, loopback); err != nil {
		return nil, err
	}
	return func() []Visit {
		s.mu.Lock()
		defer s.mu.Unlock()
		return append([]Visit(nil), s.visits...)
	}, nil
}

func (s *wallServer) serve(g *client) {
	switch target := g.request(); target {
	case "":
	case "/robots.txt":
		g.send(s.robots())
	default:
		if admitted, link := s.admits(target); admitted {
			g.send(closing("200 OK", "", html, s.page(target)))
		} else {
			g.send(refusal(s.Kind, target, link))
		}
	}
}

// robots returns the response to a request for the robots.txt.
func (s *wallServer) robots() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	walled := s.RobotsWall != 0 && len(s.visits) >= s.RobotsOpen
	if walled && s.robotsSince.IsZero() {
		s.robotsSince = s.now()
	}
	switch {
	case s.RobotsWall == 0:
		return closing("200 OK", "", "text/plain", s.Robots)
	case !walled || s.Lasts > 0 && s.now().Sub(s.robotsSince) >= s.Lasts:
		return closing("200 OK", "Cache-Control: max-age=600\r\n", "text/plain", s.Robots)
	}
	return closing(fmt.Sprintf("%d %s", s.RobotsWall, http.StatusText(s.RobotsWall)), "", html, anubis("/robots.txt"))
}

// admits notes a visit and reports whether it is answered, and with which link if it is refused. A
// crawler that follows one has taken a refusal for a page. One that knows of the wall has never
// seen the second link before.
func (s *wallServer) admits(target string) (admitted bool, link string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	refused := s.Kind != "" && len(s.visits) >= s.Open && !(s.FirstPage && target == "/")
	if refused && s.since.IsZero() {
		s.since = now
	}
	if refused && s.Lasts > 0 && now.Sub(s.since) >= s.Lasts {
		refused = false
	}
	s.visits = append(s.visits, Visit{At: now, Target: target, Refused: refused})
	if refused && now.Sub(s.since) > time.Minute {
		return false, `<a href="/behind-the-wall">x</a>`
	}
	return !refused, `<a href="/of-the-wall">x</a>`
}

// page returns a page. The first one links to all others.
func (s *wallServer) page(target string) string {
	text := "<title>" + target + "</title><p>This is the page " + target + " and no other."
	if target != "/" {
		return text
	}
	for i := range s.Pages {
		section := i / 10
		if s.Sections > 0 {
			section = i % s.Sections
		}
		text += fmt.Sprintf(`<a href="/%c/%d">%d</a>`, 'a'+section, i, i)
	}
	return text
}

// refusal returns the response of a wall of a kind, with a link. The document of one kind is always
// the same.
func refusal(kind, target, link string) string {
	switch kind {
	case "price":
		return closing("402 Payment Required", "crawler-price: USD 0.01\r\n", html, link)
	case "rate-limit":
		return closing("429 Too Many Requests", "Retry-After: 40\r\n", html, link)
	case "legal":
		return closing("451 Unavailable For Legal Reasons", "Link: <https://authority.test/>; rel=\"blocked-by\"\r\n",
			html, link)
	case "challenge-header":
		return closing("403 Forbidden", "cf-mitigated: challenge\r\n", html, link)
	case "challenge-503":
		return closing("503 Service Unavailable", "", html, "<h1>Checking your browser before accessing</h1>"+link)
	case "challenge-page":
		return closing("200 OK", "", html, anubis(target)+link)
	case "soft-block":
		return closing("200 OK", "", html, "<title>Access Denied</title><p>You have no permission."+link)
	case "redirect":
		return closing("302 Found", "Location: http://consent.test/?next="+target+"\r\n", html, link)
	case "empty":
		return closing("200 OK", "", html, "")
	case "precondition":
		return closing("428 Precondition Required", "", html, link)
	case "gate":
		return closing("200 OK", "", html, fmt.Sprintf(`<h1>Members only</h1><form><input type="password" name="p">`+
			`<input type="hidden" name="token" value="%d"></form><a href="/of-the-wall">x</a>`,
			numbersOf(target).Uint64()))
	case "same-document":
		return closing("200 OK", "", html, `<p>Welcome, visitor.<a href="/of-the-wall">x</a>`)
	}
	return closing("403 Forbidden", "", html, link)
}

// anubis is a challenge that is another document for each target.
func anubis(target string) string {
	return "<title>Making sure you're not a bot!</title>" +
		`<script id="anubis_challenge" type="application/json">{"key":"` + strings.Repeat("k", len(target)) +
		`"}</script>`
}

// closing is a response after which the connection is closed. The fields end in CR and LF.
func closing(status, fields, contentType, body string) string {
	return fmt.Sprintf("HTTP/1.1 %s\r\n%sContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		status, fields, contentType, len(body), body)
}
