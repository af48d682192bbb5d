package wall

import (
	"fmt"
	"hash/fnv"
	"maps"
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

// trace is what a host answered, with what it is.
type trace struct {
	name    string
	label   string // the words behind "label": "none", or "wall" and its kind
	answers []response
}

// response is one line of a trace.
type response struct {
	at     time.Time
	answer Answer
	walled bool // by the label
}

// isWall reports whether the label is a wall, and its kind.
func (t *trace) isWall() (kind string, wall bool) {
	kind, wall = strings.CutPrefix(t.label, "wall ")
	return kind, wall
}

// bodies are the documents that traces name.
type bodies struct {
	marks *Marks
	texts map[string]string
}

func readBodies(t testing.TB, file string) *bodies {
	t.Helper()
	archive := must.Get(txtar.ParseFile(file))(t)
	b := &bodies{marks: NewMarks(), texts: make(map[string]string)}
	for _, f := range archive.Files {
		b.texts[f.Name] = string(f.Data)
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
	a.Place = place(status, target, header)
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
	chooses            bool // the next request, by what Exhausted says; else all come in their order
	walls, seen, wrong int
	sum                int // responses into the walls before they were seen
	slowest            int // the most of them, into a wall that let no page through before
	leaking            int // the most of them, into a wall that did
}

func (s *score) String() string {
	return fmt.Sprintf("precision %.3f, recall %.3f (%d of %d walls, %d false), seen after %.1f responses, "+
		"%d at most, %d where pages came through",
		float64(s.seen)/float64(max(s.seen+s.wrong, 1)), float64(s.seen)/float64(max(s.walls, 1)), s.seen, s.walls,
		s.wrong, float64(s.sum)/float64(max(s.seen, 1)), s.slowest, s.leaking)
}

// add judges a trace.
func (s *score) add(t testing.TB, tr *trace, marks *Marks) {
	t.Helper()
	kind, wall := tr.isWall()
	if wall {
		s.walls++
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
		t.Logf("%s: response %d, %d into the wall: %s: %s", tr.name, i+1, into, v.Kind, v.Evidence(marks))
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

// TestDevelopmentTraces holds the traces that the detector was made with.
func TestDevelopmentTraces(t *testing.T) {
	b := readBodies(t, "testdata/bodies.txtar")
	s := score{chooses: true}
	for _, tr := range readTraces(t, "testdata/dev.txt", b) {
		s.add(t, tr, b.marks)
	}
	t.Log(&s)
	assert.True(t, s.wrong <= 0 && s.seen >= s.walls && s.slowest <= 13, "%v", &s)
}

// TestHeldOutTraces holds two sets of traces that the detector was not made with: testdata/held, by
// hand, and testdata/fresh, by chance, made after the last change that a set had led to.
func TestHeldOutTraces(t *testing.T) {
	for _, dir := range []string{"held", "fresh"} {
		t.Run(dir, func(t *testing.T) {
			b := readBodies(t, "testdata/held.txtar")
			maps.Copy(b.texts, readBodies(t, "testdata/bodies.txtar").texts)
			files, err := filepath.Glob("testdata/" + dir + "/*.txt")
			must.True(t, err == nil && len(files) >= 60, "%d traces, %v", len(files), err)
			s, passive := score{chooses: true}, score{}
			kinds := make(map[string]bool)
			for _, file := range files {
				tr := readLines(t, file, b)
				if kind, wall := tr.isWall(); wall {
					kinds[kind] = true
				}
				s.add(t, tr, b.marks)
				passive.add(t, tr, b.marks)
			}
			t.Logf("%d traces, %d kinds of walls: %v", len(files), len(kinds), &s)
			t.Logf("if no request is chosen: %v", &passive)
			assert.True(t, s.wrong+passive.wrong <= 0 && 10*s.seen >= 9*s.walls && s.slowest <= 10, "%v", &s)
		})
	}
}

// TestLabelledTraces holds testdata/labelled.txt, which stands apart from the traces that the detector
// was made with: redirects, empty pages, status 428 and makers, and sites that only look like these.
func TestLabelledTraces(t *testing.T) {
	b := readBodies(t, "testdata/labelled.txtar")
	maps.Copy(b.texts, readBodies(t, "testdata/bodies.txtar").texts)
	for _, chooses := range []bool{true, false} {
		holdWithin15(t, readTraces(t, "testdata/labelled.txt", b), b.marks, chooses)
	}
}

// holdWithin15 holds that no host without a wall is taken for one with a wall, and that at least 0.92 of the walls are
// seen within 15 responses.
func holdWithin15(t *testing.T, traces []*trace, marks *Marks, chooses bool) {
	t.Helper()
	s, within := score{chooses: chooses}, 0
	for _, tr := range traces {
		one := score{chooses: chooses}
		one.add(t, tr, marks)
		if one.seen == 1 && max(one.slowest, one.leaking) <= 15 {
			within++
		}
		s.merge(&one)
	}
	t.Logf("%v; %d within 15 responses", &s, within)
	assert.True(t, s.wrong <= 0 && 100*within >= 92*s.walls, "%v; %d within 15 responses", &s, within)
}

// merge adds the traces of another score.
func (s *score) merge(o *score) {
	s.walls, s.seen, s.wrong, s.sum = s.walls+o.walls, s.seen+o.seen, s.wrong+o.wrong, s.sum+o.sum
	s.slowest, s.leaking = max(s.slowest, o.slowest), max(s.leaking, o.leaking)
}

// TestTracesApart holds testdata/apart.txt and testdata/later.txt, traces that were each written after a change of the
// detector and led to none.
func TestTracesApart(t *testing.T) {
	b := readBodies(t, "testdata/apart.txtar")
	maps.Copy(b.texts, readBodies(t, "testdata/bodies.txtar").texts)
	maps.Copy(b.texts, readBodies(t, "testdata/labelled.txtar").texts)
	holdWithin15(t, readTraces(t, "testdata/apart.txt", b), b.marks, true)
	maps.Copy(b.texts, readBodies(t, "testdata/later.txtar").texts)
	holdWithin15(t, readTraces(t, "testdata/later.txt", b), b.marks, true)
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
