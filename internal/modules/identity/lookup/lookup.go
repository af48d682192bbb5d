// Package lookup answers the operators of sites: what a crawler requested of their host, and why. Whoever proves that a
// host is theirs slows the crawler down there, stops it, or asks for erasure.
package lookup

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"html/template"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/service/listen"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// Options are the options of a look-up.
type Options struct {
	Product string // name of the crawler
	Path    string // of the look-up below the public listener
	Dir     string // for the file of wishes
	Days    int    // how far back requests are shown
	// Dial connects to the running crawl; an error means that there is none now.
	Dial        func(context.Context) (Crawl, error)
	Names       Names
	BehindProxy bool // X-Forwarded-For names clients
	Log         *slog.Logger
	Now         func() time.Time
}

// Lookup is a http.Handler. Any goroutine may use it.
type Lookup struct {
	o       Options
	page    *template.Template
	proofs  *proofs
	wishes  *journal
	visits  *visits
	changes *listen.Limiters
}

//go:embed lookup.html
var pageText string

// Bounds of changes by one client.
const (
	changeBurst    = 20
	changesPerHour = 20
	maxForm        = 4 << 10 // bytes of a request's body
	answerTime     = 20 * time.Second
	readTime       = 5 * time.Minute // for who has proven himself: a long request log is read
	maxDelay       = 24 * time.Hour
)

// New returns a look-up.
func New(o Options) (*Lookup, error) {
	page, err := template.New("lookup").Funcs(template.FuncMap{"time": clock, "seconds": seconds}).Parse(pageText)
	if err != nil {
		return nil, err
	}
	wishes, err := openJournal(filepath.Join(o.Dir, FileName))
	if err != nil {
		return nil, err
	}
	return &Lookup{
		o: o, page: page, wishes: wishes, proofs: newProofs(o.Names, o.Now), visits: newVisits(o.Now),
		changes: listen.NewLimiters(changeBurst, rate.Every(time.Hour/changesPerHour), o.Now),
	}, nil
}

// refusal is an error for the visitor.
type refusal struct {
	status int
	text   string
}

// Error implements error.
func (r *refusal) Error() string { return r.text }

// ServeHTTP shows a host (GET), or does what its operator asks for (POST).
func (l *Lookup) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; "+
		"base-uri 'none'; frame-ancestors 'none'")
	ctx, cancel := context.WithTimeout(r.Context(), readTime)
	defer cancel()
	var v *view
	var err error
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		q := r.URL.Query()
		if v, err = l.show(ctx, w, q); v == nil && err == nil {
			return
		}
	case http.MethodPost:
		v, err = l.post(ctx, w, r)
	default:
		h.Set("Allow", "GET, HEAD, POST")
		err = &refusal{http.StatusMethodNotAllowed, "This page takes GET and POST."}
	}
	l.write(w, v, err)
}

// write writes the page of a view, or of an error.
func (l *Lookup) write(w http.ResponseWriter, v *view, err error) {
	status := http.StatusOK
	if err != nil {
		var no *refusal
		if !errors.As(err, &no) {
			l.o.Log.Warn("a look-up failed", "error", err)
			no = &refusal{http.StatusServiceUnavailable, "The crawler does not answer. Try again in some minutes."}
		}
		status = no.status
		v = &view{Problem: no.text}
	}
	v.Product, v.Path, v.Days = l.o.Product, l.o.Path, l.o.Days
	var b bytes.Buffer
	if err := l.page.Execute(&b, v); err != nil {
		l.o.Log.Error("the page of a look-up could not be made", "error", err)
		status = http.StatusInternalServerError
		b.Reset()
	}
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "60")
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // a client that leaves gets no more
}

// visitor is who asks about a host.
type visitor struct {
	host  string // in canonical form
	key   string // empty: it has none
	token string
	find  string // in the URLs that are shown; empty: all
	proof string // by what it has proven that the host is its own; empty: it has not
	crawl Crawl
	story inspect.HostStory
	known bool // the crawl knows the host
}

// enter finds out what a visitor may see. The caller closes its crawl.
func (l *Lookup) enter(ctx context.Context, w http.ResponseWriter, name, key string) (*visitor, error) {
	const mistake = "Write the name of a host, such as www.example.org, without a path."
	u, err := weburl.Parse("https://" + name + "/")
	if err != nil || len(name) > 253 || strings.ContainsAny(name, `@\`) || u.String() != "https://"+u.Host()+"/" {
		return nil, &refusal{http.StatusUnprocessableEntity, mistake}
	}
	if key != "" && !isKey(key) {
		return nil, &refusal{http.StatusUnprocessableEntity, "This address has a key that was cut off or changed."}
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	v := &visitor{host: u.Host(), key: key}
	if v.crawl, err = l.o.Dial(ctx); err != nil {
		return nil, &refusal{http.StatusServiceUnavailable, "The crawler does not run now. Try again later."}
	}
	if err := l.meet(ctx, v); err != nil {
		return nil, errors.Join(err, v.crawl.Close())
	}
	if v.proof != "" {
		_ = http.NewResponseController(w).SetWriteDeadline(l.o.Now().Add(readTime)) // without it: that of the listener
	}
	return v, nil
}

// meet reads what is known of the host, and checks the proof.
func (l *Lookup) meet(ctx context.Context, v *visitor) (err error) {
	v.story, err = v.crawl.Host(ctx, v.host)
	if errors.Is(err, inspect.ErrUnknown) {
		return nil // nobody has to prove anything, and nobody is asked about names that visitors make up
	}
	if err != nil {
		return err
	}
	v.known = true
	if v.key == "" {
		return nil
	}
	v.token = tokenOf(v.host, v.key)
	if l.proofs.byDNS(ctx, v.host, v.key) {
		v.proof = "DNS"
		return nil
	}
	byFile, err := l.proofs.byFile(ctx, v.crawl, v.origins(), v.token)
	if byFile {
		v.proof = "file"
	}
	return err
}

// origins returns the origins of the host whose files prove that it is theirs: those at the usual ports, if there are
// any. Anybody with an account on a machine can serve another port.
func (v *visitor) origins() []string {
	var all, usual []string
	for _, o := range v.story.Origins {
		all = append(all, o.Origin)
		if _, host, _ := strings.Cut(o.Origin, "://"); host == v.host {
			usual = append(usual, o.Origin)
		}
	}
	if usual != nil {
		return usual
	}
	return all
}

// show returns the view of a host. It is nil if the response has been written.
func (l *Lookup) show(ctx context.Context, w http.ResponseWriter, q url.Values) (*view, error) {
	if q.Get("host") == "" {
		return &view{}, nil
	}
	v, err := l.enter(ctx, w, q.Get("host"), q.Get("key"))
	if err != nil {
		return nil, err
	}
	defer v.crawl.Close()
	if q.Get("as") == "lines" {
		return nil, l.writeLines(ctx, w, v)
	}
	v.find = q.Get("find")
	return l.describe(ctx, v, "")
}

// writeLines writes all requests to a host, one JSON object a line. They are read into a file first: a client that
// takes them slowly keeps nobody else waiting.
func (l *Lookup) writeLines(ctx context.Context, w http.ResponseWriter, v *visitor) error {
	if v.proof == "" {
		return &refusal{http.StatusForbidden, "Prove first that this host is yours."}
	}
	f, err := os.CreateTemp("", "amble-lookup-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	out := bufio.NewWriter(f)
	lines := json.NewEncoder(out)
	err = l.visits.each(ctx, v.crawl, v.host, l.since(), func(q *Visit) error { return lines.Encode(q) })
	if err == nil {
		err = out.Flush()
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/jsonl")
	w.Header().Set("Content-Disposition", `attachment; filename="requests.jsonl"`)
	_, _ = io.Copy(w, f) // a client that leaves gets no more
	return nil
}

// post does what a form asks for.
func (l *Lookup) post(ctx context.Context, w http.ResponseWriter, r *http.Request) (*view, error) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return nil, &refusal{http.StatusBadRequest, "The form could not be read."}
	}
	client := listen.ClientOf(r, l.o.BehindProxy)
	if !l.changes.Allow(client) {
		return nil, &refusal{http.StatusTooManyRequests, "You have asked for much within a short time. Wait an hour."}
	}
	v, err := l.enter(ctx, w, r.PostForm.Get("host"), r.PostForm.Get("key"))
	if err != nil {
		return nil, err
	}
	defer v.crawl.Close()
	switch action := r.PostForm.Get("action"); {
	case action == "check" && v.known && v.key != "":
		return l.fetchFile(ctx, v)
	case v.proof == "":
		return nil, &refusal{http.StatusForbidden, "Prove first that this host is yours."}
	default:
		done, err := l.do(ctx, v, action, r.PostForm.Get("seconds"), client)
		if err != nil {
			return nil, err
		}
		if v.story, err = v.crawl.Host(ctx, v.host); err != nil {
			return nil, err
		}
		return l.describe(ctx, v, done)
	}
}

// fetchFile has the crawl fetch the file of a token, as it fetches everything else of the host.
func (l *Lookup) fetchFile(ctx context.Context, v *visitor) (*view, error) {
	if v.proof != "" {
		return l.describe(ctx, v, "")
	}
	origins := v.origins()
	if len(origins) == 0 || !l.proofs.mayFetch(v.host) {
		return l.describe(ctx, v, "A file was fetched from this host within the last ten minutes. Check again later.")
	}
	u, err := fileOf(origins[0], v.token)
	if err == nil {
		err = v.crawl.Fetch(ctx, u)
	}
	if err != nil {
		return nil, err
	}
	return l.describe(ctx, v, "The file is fetched when the host's turn comes. Load this page again then.")
}

// seconds is a time for people, to the millisecond.
func seconds(s float64) string {
	return strconv.FormatFloat(math.Round(1000*s)/1000, 'f', -1, 64) + " s"
}

// clock is an instant for people.
func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }
