package wall

import (
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

var details = flag.Bool("details", false, "log each wall that is seen in a trace")

// trace is what a host answered, with what it is.
type trace struct {
	name    string
	label   string // the words behind "label": "none", or "wall" and its kind, and perhaps "by" and its maker
	answers []response
}

// response is one line of a trace.
type response struct {
	at     time.Time
	answer Answer
	walled bool // by the label
}

// isWall reports whether the label is a wall, its kind, and its maker; "": it says none.
func (t *trace) isWall() (kind, maker string, wall bool) {
	kind, wall = strings.CutPrefix(t.label, "wall ")
	kind, maker, _ = strings.Cut(kind, " by ")
	return kind, maker, wall
}

// bodies are the documents that traces name.
type bodies struct {
	marks *Marks
	texts map[string]string
}

// readBodies reads the documents of some archives. Of two with one name that of the first archive counts.
func readBodies(t testing.TB, archives []string) *bodies {
	t.Helper()
	b := &bodies{marks: NewMarks(), texts: make(map[string]string)}
	for _, name := range slices.Backward(archives) {
		for _, f := range must.Get(txtar.ParseFile("testdata/" + name + ".txtar"))(t).Files {
			b.texts[f.Name] = string(f.Data)
		}
	}
	return b
}

// fill returns the document of a name as a host sends it in response to the n-th request.
func (b *bodies) fill(t testing.TB, name, target string, n int) []byte {
	t.Helper()
	seed := hash(target)
	switch name {
	case "page":
		return []byte("<html><body><h1>" + target + "</h1>" + strings.Repeat(words(seed, 40)+"<p>", 60))
	case "small":
		return []byte("<html><body><h1>" + target + "</h1>" + words(seed, 30))
	}
	text, ok := b.texts[name]
	must.True(t, ok, "there is no body %q", name)
	nonce := strconv.FormatUint(hash(fmt.Sprint(target, n))|1<<60, 36)
	return []byte(strings.NewReplacer("{nonce}", nonce, "{target}", target, "{words}", words(seed, 40)).Replace(text))
}

// words returns text that a seed decides.
func words(seed uint64, n int) string {
	r := rand.New(rand.NewPCG(seed, 1))
	var text strings.Builder
	for range n {
		for range 2 + r.IntN(7) {
			text.WriteByte(byte('a' + r.IntN(26)))
		}
		text.WriteByte(' ')
	}
	return text.String()
}

func hash(text string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(text))
	return h.Sum64()
}

// answer makes an Answer as a worker does.
func (b *bodies) answer(t testing.TB, status int, target, name string, header map[string][]string, n int) Answer {
	body := b.fill(t, name, target, n)
	a := Answer{
		Status: status, HTML: name != "data", Length: int64(len(body)), URL: hash(target), Digest: hash(string(body)),
		Mark: b.marks.Find(header, body),
	}
	a.Section, a.Top = Sections(target)
	a.Place, a.From = place(status, target, header), place(200, target, nil)
	if a.HasShape(body) {
		a.Shape = Shape(body, "www.example.com"+target)
	}
	return a
}

// place returns what a worker notes of the place of a response.
func place(status int, target string, header map[string][]string) uint64 {
	if to := header["Location"]; status/100 == 3 && to == nil {
		return 0
	} else if status/100 == 3 {
		target = to[0]
	}
	if strings.HasPrefix(target, "/") {
		target = "http://www.example.com" + target
	}
	return PlaceOf(target)
}

// readTraces reads traces in the form that testdata/dev.txt explains.
func readTraces(t testing.TB, file string, b *bodies) (traces []*trace) {
	t.Helper()
	text := must.Get(os.ReadFile(file))(t)
	var w *writer
	for number, line := range strings.Split(string(text), "\n") {
		if err := func() error {
			switch {
			case line == "" || line[0] == '#':
				return nil
			case strings.HasPrefix(line, "trace "):
				name, label, ok := strings.Cut(line[len("trace "):], ": ")
				if !ok {
					return fmt.Errorf("no label")
				}
				w = &writer{trace: &trace{name: name, label: label}, bodies: b, at: time.Unix(1_760_000_000, 0)}
				traces = append(traces, w.trace)
				return nil
			}
			return w.line(t, strings.TrimSpace(line))
		}(); err != nil {
			t.Fatalf("%s:%d: %v", file, number+1, err)
		}
	}
	return traces
}

// writer makes a trace of its lines.
type writer struct {
	*trace
	*bodies
	at     time.Time
	n      int
	walled bool
}

func (w *writer) line(t testing.TB, line string) error {
	switch line {
	case "wall":
		w.walled = true
		return nil
	case "end":
		w.walled = false
		return nil
	}
	count, rest, _ := strings.Cut(line, " ")
	times, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	turns := strings.Split(rest, " | ")
	for i := range times {
		if err := w.turn(t, turns[i%len(turns)]); err != nil {
			return err
		}
	}
	return nil
}

// turn writes a response: "STATUS TARGET [BODY] [every=D] [retry=D] [took=D] [head=NAME:VALUE]".
func (w *writer) turn(t testing.TB, text string) error {
	words := strings.Fields(text)
	status, err := strconv.Atoi(words[0])
	if err != nil {
		return err
	}
	w.n++
	target := strings.ReplaceAll(words[1], "{n}", strconv.Itoa(w.n))
	name, header := "page", map[string][]string{}
	every, retry, took := time.Second, time.Duration(0), 100*time.Millisecond
	for _, word := range words[2:] {
		key, value, found := strings.Cut(word, "=")
		switch {
		case !found:
			name = word
		case key == "head":
			field, value, _ := strings.Cut(value, ":")
			header[field] = append(header[field], strings.ReplaceAll(value, "{n}", strconv.Itoa(w.n)))
		default:
			d, err := time.ParseDuration(value)
			if err != nil {
				return err
			}
			*map[string]*time.Duration{"every": &every, "retry": &retry, "took": &took}[key] = d
		}
	}
	w.at = w.at.Add(every)
	a := w.answer(t, status, target, name, header, w.n)
	a.Took, a.RetryAfter = took, retry
	w.answers = append(w.answers, response{at: w.at, answer: a, walled: w.walled})
	return nil
}

// score is how well walls are seen in traces.
type score struct {
	chooses     bool // the next request, by what Exhausted says; else all come in their order
	traces      int
	walls, seen int
	wrong       int // walls where there is none
	within      int // walls that are seen within 15 responses
	makers      int // of walls whose label names one
	named       int // of them, those of walls that were seen by their names
	sum         int // responses into the walls before they were seen
	slowest     int // the most of them, into a wall that let no page through before
	leaking     int // the most of them, into a wall that did
}

func (s *score) String() string {
	part := func(n, of int) float64 { return float64(n) / float64(max(of, 1)) }
	return fmt.Sprintf("%d traces, %d walls: precision %.3f, recall %.3f, %.3f (%d) within 15 responses, "+
		"%d of %d makers named; seen after %.1f responses, %d at most, %d where pages came through", s.traces, s.walls,
		part(s.seen, s.seen+s.wrong), part(s.seen, s.walls), part(s.within, s.walls), s.within, s.named, s.makers,
		part(s.sum, s.seen), s.slowest, s.leaking)
}

// add judges a trace.
func (s *score) add(t testing.TB, tr *trace, marks *Marks) {
	t.Helper()
	kind, maker, wall := tr.isWall()
	s.traces++
	if wall {
		s.walls++
	}
	if maker != "" {
		s.makers++
	}
	var state State
	into, leaks, seen := 0, 0, false
	var pages []response // that answered, and were not fetched again
	left := slices.Clone(tr.answers)
	for i := 0; len(left) > 0; i++ {
		r, rest := left[0], left[1:]
		if s.chooses {
			r, rest = choose(left, &state, &pages)
		}
		left = rest
		if r.walled {
			into++
		}
		if r.walled && r.answer.Sign() == SignPage {
			leaks++
		}
		v := state.Observe(r.at, r.answer)
		if r.answer.Sign() == SignPage && r.answer.Status == 200 && v.Stand == Open {
			pages = append(pages, r)
		}
		if v.Stand != Begins {
			continue
		}
		if testing.Verbose() && *details {
			t.Logf("%s: response %d, %d into the wall: %s: %s", tr.name, i+1, into, v.Kind, v.Evidence(marks))
		}
		if !r.walled {
			s.wrong++
			t.Errorf("%s: response %d of a host that is labelled %s makes a wall", tr.name, i+1, tr.label)
			continue
		}
		if v.Kind.String() != kind {
			t.Errorf("%s: kind %s instead of %s", tr.name, v.Kind, kind)
		}
		if seen {
			continue // again, after a page that came through
		}
		seen = true
		s.sum += into
		if into <= 15 {
			s.within++
		}
		if name := marks.Name(v.Wall); maker != "" && name == maker {
			s.named++
		} else if maker != "" {
			t.Logf("%s: maker %q instead of %s", tr.name, name, maker)
		}
		if leaks > 0 {
			s.leaking = max(s.leaking, into)
		} else {
			s.slowest = max(s.slowest, into)
		}
	}
	if seen {
		s.seen++
	} else if wall {
		t.Logf("%s: missed", tr.name)
	}
}

// choose takes the next response that says something, of the 12 that the frontier has in memory. If
// there is none, a page that answered before is fetched again: behind a wall it is refused like the
// others.
func choose(left []response, s *State, pages *[]response) (r response, rest []response) {
	tells := func(r response) bool {
		return !s.Exhausted(r.answer.Section, r.answer.Top) && r.walled == left[0].walled
	}
	i := slices.IndexFunc(left[:min(len(left), 12)], tells)
	if n := len(*pages); i < 0 && n > 0 && s.Verdict().Stand == Suspected {
		page := (*pages)[n-1]
		*pages = (*pages)[:n-1]
		r = left[0]
		if !r.walled {
			r.answer = page.answer
		}
		r.answer.Section, r.answer.Top, r.answer.URL = page.answer.Section, page.answer.Top, page.answer.URL
		return r, left
	}
	i = max(i, 0)
	r, at := left[i], left[0].at
	copy(left[1:i+1], left[:i])
	r.at = at
	return r, left[1:]
}

// sets are the traces by what they are for. See docs/WALLTRACES.md.
var sets = []struct {
	name    string
	bodies  []string
	slowest int // responses into a wall that lets no page through
	within  int // walls that are seen within 15 responses
}{
	{"dev", []string{"bodies"}, 11, 22},
	{"held", []string{"held", "bodies"}, 10, 38},
	{"fresh", []string{"held", "bodies"}, 10, 36},
	{"labelled", []string{"labelled", "bodies"}, 12, 14},
	{"apart", []string{"apart", "bodies", "labelled"}, 9, 12},
	{"later", []string{"later", "apart", "labelled", "bodies"}, 9, 13},
	{"unseen", []string{"unseen", "bodies"}, 12, 27},
	{"last", []string{"last", "bodies"}, 12, 13},
}

// TestTraces holds, of each set, that no host without a wall is taken for one with a wall, that as many walls as
// before, and at least 0.92 of them, are seen within 15 responses, and that nine tenths of the makers are named. If all
// requests come in the order of the queue, some walls are seen later.
func TestTraces(t *testing.T) {
	for _, set := range sets {
		t.Run(set.name, func(t *testing.T) {
			b := readBodies(t, set.bodies)
			var traces []*trace
			if files, _ := filepath.Glob("testdata/" + set.name + "/*.txt"); len(files) > 0 {
				for _, file := range files {
					traces = append(traces, readLines(t, file, b))
				}
			} else {
				traces = readTraces(t, "testdata/"+set.name+".txt", b)
			}
			s, passive := score{chooses: true}, score{}
			for _, tr := range traces {
				s.add(t, tr, b.marks)
				passive.add(t, tr, b.marks)
			}
			t.Logf("%v\nin the order of the queue: %v", &s, &passive)
			assert.True(t, s.wrong == 0 && s.within >= set.within && s.slowest <= set.slowest, "%v", &s)
			assert.True(t, 100*set.within >= 92*s.walls, "%d of %d walls", set.within, s.walls)
			assert.True(t, 10*s.named >= 9*s.makers, "%d of %d makers named", s.named, s.makers)
			assert.True(t, passive.wrong == 0 && 10*passive.seen >= 9*passive.walls, "%v", &passive)
		})
	}
}

// readLines reads a trace of the form: "# NAME: LABEL", and lines of "!" (behind the wall) or " ",
// seconds, status, milliseconds from start to end, target, body, and retry=D and head=NAME:VALUE.
func readLines(t testing.TB, file string, b *bodies) *trace {
	t.Helper()
	text := must.Get(os.ReadFile(file))(t)
	return parseLines(t, file, string(text), b)
}

func parseLines(t testing.TB, file, text string, b *bodies) *trace {
	t.Helper()
	var err error
	first, rest, _ := strings.Cut(text, "\n")
	tr := new(trace)
	tr.name, tr.label, _ = strings.Cut(strings.TrimPrefix(first, "# "), ": ")
	start := time.Unix(1_770_000_000, 0)
	for n, line := range strings.Split(strings.TrimSuffix(rest, "\n"), "\n") {
		var seconds float64
		var status, took int
		var target, name string
		if _, err := fmt.Sscan(line[1:], &seconds, &status, &took, &target, &name); err != nil {
			t.Fatalf("%s:%d: %v", file, n+2, err)
		}
		header, retry := map[string][]string{}, time.Duration(0)
		for _, word := range strings.Fields(line[1:])[5:] {
			key, value, _ := strings.Cut(word, "=")
			if key == "head" {
				field, value, _ := strings.Cut(value, ":")
				header[field] = []string{value}
			} else if retry, err = time.ParseDuration(value); err != nil {
				t.Fatalf("%s:%d: %v", file, n+2, err)
			}
		}
		a := b.answer(t, status, target, name, header, n)
		a.Took, a.RetryAfter = time.Duration(took)*time.Millisecond, retry
		at := start.Add(time.Duration(seconds * float64(time.Second)))
		tr.answers = append(tr.answers, response{at: at, answer: a, walled: line[0] == '!'})
	}
	return tr
}
