package consent

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestParseUsage has the examples of draft-ietf-aipref-vocab, section 6, and of
// draft-ietf-aipref-attach, section 2.
func TestParseUsage(t *testing.T) {
	for _, test := range []struct {
		lines []string
		want  string
	}{
		{[]string{"train-ai=y, search=n"}, "train-ai=y, search=n"},
		{[]string{"train-ai=n"}, "train-ai=n"},
		{[]string{"train-ai=n", "search=y"}, "train-ai=n, search=y"},
		{[]string{`train-ai=y, train-ai, search=n, search="n"`}, ""},
		{[]string{"train-ai;allow=n, train-ai=y"}, "train-ai=y"},
		{[]string{`train-ai;has;parameters="?"`}, ""},
		{[]string{"train-ai=n;why=because"}, "train-ai=n"},
		{[]string{"train-ai=(n)"}, ""},
		{[]string{"train-ai=?0"}, ""},
		{[]string{"train-ai=maybe"}, ""},
		{[]string{"Train-AI=n"}, ""},           // keys are case-sensitive: the dictionary fails
		{[]string{"search=n, Train-AI=n"}, ""}, // all of it
		{[]string{"search=n, other=n"}, "search=n"},
		{[]string{"search=n,"}, ""},
		{[]string{""}, ""},
		{nil, ""},
		{[]string{"search=n", strings.Repeat("a=1, ", maxValue) + "b=1"}, ""},
	} {
		assert.Equal(t, ParseUsage(test.lines...).String(), test.want, test.lines)
	}
}

func TestParseSignal(t *testing.T) {
	for value, want := range map[string]string{
		"search=yes, ai-train=no":               "train-ai=n, search=y",
		"ai-train=no, search=yes, ai-input=yes": "train-ai=n, ai-input=y, search=y",
		" AI-Train = NO ":                       "train-ai=n",
		"ai-train=yes,ai-train=no":              "train-ai=n",
		"ai-train=no,ai-train=yes":              "train-ai=n",
		"ai_train=no, search":                   "",
		"":                                      "",
	} {
		assert.Equal(t, ParseSignal(value).String(), want, value)
	}
}

func TestKnownDirectives(t *testing.T) {
	d := must.Get(parseDirectives(directivesTable))(t)
	for name, want := range map[string]string{"noai": "train-ai=n", "noimageai": "train-ai-images=n",
		"noml": "train-ai=n"} {
		assert.Equal(t, d[name].String(), want, name)
	}
	for name := range d {
		assert.Equal(t, name, strings.ToLower(name), "is not in lower case: it is never found")
	}
	for _, bad := range []string{"a\tsearch\tn\thttps://x/\n", "a\tsearch\tno\tx\tx\n", "a\tfind\tn\tx\tx\n"} {
		assert.Fails(parseDirectives(bad))(t, nil, bad, "is read")
	}
}

// TestTDMFile has the example of the TDM Reservation Protocol.
func TestTDMFile(t *testing.T) {
	f, err := ParseTDMFile([]byte(`[
		{"location": "/directory-a/", "tdm-reservation": 1},
		{"location": "/directory-b/html/", "tdm-reservation": 1, "tdm-policy": "https://provider.com/policies/policy.json"},
		{"location": "/directory-b/images/*.jpg", "tdm-reservation": 0},
		{"location": "/no-reservation"}, {"tdm-reservation": 1}, 7, {"location": 7, "tdm-reservation": 1},
		{"location": "/text$", "tdm-reservation": "1"},
		{"location": "/text", "tdm-reservation": 2},
		{"location": "/directory-b/", "tdm-reservation": "0"}]`))
	must.Do(t, err)
	for uri, want := range map[string]string{
		"/directory-a/x.pdf": "tdmrep.json rule 1: tdm-reservation: 1",
		"/directory-b/html/a?b": "tdmrep.json rule 2: tdm-reservation: 1, tdm-policy: " +
			"https://provider.com/policies/policy.json",
		"/directory-b/images/1.jpg": "tdmrep.json rule 3: tdm-reservation: 0",
		"/directory-b/other":        "tdmrep.json rule 10: tdm-reservation: 0",
		"/text":                     "tdmrep.json rule 8: tdm-reservation: 1",
		"/text2":                    "",
		"/":                         "",
	} {
		s, ok := f.Statement(uri)
		assert.True(t, ok == (want != "") && (!ok || s.String() == want), "%s: %v %q, want %q", uri, ok, s, want)
	}
	for _, bad := range []string{"", "<html>", `{"location": "/", "tdm-reservation": 1}`, strings.Repeat("[", 10_000),
		"[" + strings.Repeat(" ", MaxTDMFile) + "]"} {
		assert.Fails(ParseTDMFile([]byte(bad)))(t, nil, bad, "is a TDM file")
	}
	many := "[" + strings.Repeat(`{"location":"/*a","tdm-reservation":1},`, 2*maxTDMRules) +
		`{"location":"/","tdm-reservation":1}]`
	f, err = ParseTDMFile([]byte(many))
	assert.True(t, err == nil && len(f.rules) == maxTDMRules, "%d rules, %v", len(f.rules), err)
}

func statement(source Source, preferences string) Statement {
	p := ParseUsage(preferences)
	for pair := range strings.SplitSeq(preferences, ", ") {
		if name, value, _ := strings.Cut(pair, "="); name != "" {
			c, _ := ParseCategory(name)
			p[c] = map[string]Preference{"y": Allowed, "n": Disallowed}[value]
		}
	}
	return Statement{Source: source, Preferences: p, Text: preferences}
}

func TestCombine(t *testing.T) {
	for _, test := range []struct {
		list []Statement
		want string
		by   map[Category]int
	}{
		{nil, "", nil},
		{[]Statement{statement(SourceRobots, "train-ai=y"), statement(SourceHeader, "train-ai=n")},
			"train-ai=n, train-ai-images=n", map[Category]int{TrainAI: 1, TrainImages: 1}},
		{[]Statement{statement(SourceRobots, "train-ai=n"), statement(SourceHeader, "train-ai=y, search=y")},
			"train-ai=n, train-ai-images=n, search=y", map[Category]int{TrainAI: 0, Search: 1}},
		{[]Statement{statement(SourceTDMFile, "tdm=n")}, "train-ai=n, train-ai-images=n, tdm=n",
			map[Category]int{TrainAI: 0}},
		{[]Statement{statement(SourceTDMFile, "tdm=y")}, "tdm=y", nil},
		{[]Statement{statement(SourceTDMFile, "tdm=n"), statement(SourceHeader, "tdm=y")}, "tdm=y",
			map[Category]int{Mining: 1}},
		{[]Statement{statement(SourceHeader, "tdm=y"), statement(SourceMeta, "tdm=n")},
			"train-ai=n, train-ai-images=n, tdm=n", nil},
		{[]Statement{statement(SourceMeta, "tdm=n"), statement(SourceTDMFile, "tdm=y")},
			"train-ai=n, train-ai-images=n, tdm=n", nil},
		{[]Statement{statement(SourceMeta, "train-ai-images=n")}, "train-ai-images=n", nil},
	} {
		e := Combine(test.list)
		assert.Equal(t, e.Preferences.String(), test.want, test.list, e.Preferences)
		for c, i := range test.by {
			assert.Equal(t, e.By[c], i, test.list, "statement decides", c)
		}
	}
}

// TestCombineInAnySequence: the sequence of statements decides nothing, and more of them never
// allow more.
func TestCombineInAnySequence(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		list := make([]Statement, r.IntN(6))
		for i := range list {
			list[i].Source = Source(r.IntN(int(SourceMeta) + 1))
			for c := range list[i].Preferences {
				list[i].Preferences[c] = Preference(r.IntN(3))
			}
		}
		e := Combine(list)
		shuffled := slices.Clone(list)
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		got := Combine(shuffled).Preferences
		must.True(t, got == e.Preferences, "%v: %q, in another order %q", list, e.Preferences, got)
		for c, p := range e.Preferences {
			if p == Unknown != (e.By[c] < 0) || p != Unknown && !reflect.ValueOf(list[e.By[c]].Preferences).IsValid() {
				t.Fatalf("%v: %v is %q by statement %d", list, Category(c), p, e.By[c])
			}
			for _, s := range list {
				must.True(t, Category(c) == Mining || s.Preferences[c] != Disallowed || p == Disallowed, "%v: %v is %q",
					list, Category(c), p)
			}
		}
	}
}

func TestPolicy(t *testing.T) {
	p, err := NewPolicy(map[string]string{"train-ai": "skip-storing", "search": "skip-fetching", "tdm": "record"})
	must.Do(t, err)
	for preferences, want := range map[string]Action{
		"":                     Record,
		"train-ai=y, search=y": Record,
		"train-ai=n":           SkipStoring,
		"tdm=n":                SkipStoring, // mining includes training
		"ai-input=n":           Record,
		"search=n, train-ai=n": SkipFetching,
	} {
		got, _ := p.Action(Combine([]Statement{statement(SourceRobots, preferences)}))
		assert.True(t, got == want, "%q: %v, want %v", preferences, got, want)
	}
	assert.True(t, !p.Fetches() && (Policy{}).Fetches(),
		"a policy that skips fetching fetches everything, or one that does nothing does not")
	for _, bad := range []map[string]string{{"train": "record"}, {"search": "skip"}} {
		assert.Fails(NewPolicy(bad))(t, nil, bad, "is a policy")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("train-ai=n, search=y")
	f.Add(`[{"location": "/*a$", "tdm-reservation": 1}]`)
	f.Add(`<rsl><content url="http://a.test/*b$"><license><permits type="usage">search</permits></license></content>` +
		"</rsl>")
	f.Fuzz(func(t *testing.T, text string) {
		for c, p := range ParseUsage(text, text) {
			assert.True(t, p <= Disallowed && (p == Unknown || Category(c) == TrainAI || Category(c) == Search),
				"%v is %d", Category(c), p)
		}
		_ = ParseSignal(text)
		if terms, err := ParseTerms([]byte(text)); err == nil {
			again, err := ParseTerms(terms.Encode())
			if len(terms.Encode()) > MaxTerms {
				return
			}
			for _, uri := range []string{"/", "/a/b", "/" + text} {
				one, ok := terms.Statement(SourceMeta, "x", "a.test", uri)
				other, same := again.Statement(SourceMeta, "x", "a.test", uri)
				assert.True(t, err == nil && ok == same && one == other, "%q: %v is encoded as %v, %v", uri, one, other,
					err)
			}
		}
		if file, err := ParseTDMFile([]byte(text)); err == nil {
			s, ok := file.Statement("/" + text)
			assert.True(t, !ok || s.Preferences[Mining] != Unknown, "%v states nothing", s)
		}
	})
}
