package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

func TestURLs(t *testing.T) {
	s := fill(t)
	via := found(t, s, "http://ready.test/4", "http://done.test/4")
	for i := range via {
		via[i].ViaHost, via[i].ViaOrdinal, via[i].Depth, via[i].Priority = 1, 0, 2, 5
	}
	commit(t, s, storage.Batch{Found: via})
	v := New(s, testOptions())
	for _, c := range []struct {
		host, state, reason string
		limit               int
		want                string
	}{
		{want: "http://ready.test/1 http://ready.test/2 http://ready.test/3 http://ready.test/4 http://done.test/ " +
			"http://done.test/4 " +
			"http://slow.test/ https://slow.test/private http://sick.test/ http://closed.test/"},
		{host: "done.test", want: "http://done.test/ http://done.test/4"},
		{host: "closed.test", want: "http://closed.test/"},
		{state: "failed", want: "http://ready.test/2"},
		{reason: "tls", want: "http://ready.test/2"},
		{reason: "robots", want: "http://ready.test/3"},
		{host: "ready.test", state: "queued", limit: 1, want: "http://ready.test/1"},
		{host: "done.test", state: "retrying"},
	} {
		q := URLQuery{Host: c.host, Limit: c.limit}
		must.Do(t, q.Filter(c.state, c.reason))
		var got []string
		_, err := v.URLs(context.Background(), q, func(u *URL) error {
			got = append(got, u.URL)
			assert.True(t, (u.Via == "http://ready.test/1") == (u.Depth == 2) && (u.Priority == 5) == (u.Depth == 2),
				"%+v", u)
			return nil
		})
		text := strings.Join(got, " ")
		assert.True(t, err == nil && text == c.want, "%+v: %s, %v", c, text, err)
	}
	assert.Fails(v.URLs(context.Background(), URLQuery{Host: "nobody.test"}, nil))(t, ErrUnknown, "the error")
	q := URLQuery{}
	assert.True(t, q.Filter("asleep", "") != nil && q.Filter("", "bad luck") != nil,
		"names that do not exist are taken")
}

// Pages of any size give each URL once.
func TestPages(t *testing.T) {
	s := testkit.OpenStore(t)
	var texts []string
	for i := range 1200 {
		texts = append(texts, fmt.Sprintf("http://h%d.test/%d", i%3, i))
	}
	commit(t, s, storage.Batch{Found: found(t, s, texts...)})
	v := New(s, testOptions())
	for _, limit := range []int{1, 7, 400, 500, 1200, 5000} {
		seen, pages := map[string]bool{}, 0
		for from := new(storage.Position); from != nil; {
			pages++
			n := 0
			next, err := v.URLs(context.Background(), URLQuery{From: *from, Limit: limit}, func(u *URL) error {
				assert.True(t, !seen[u.URL], "%s is there twice", u.URL)
				seen[u.URL] = true
				n++
				return nil
			})
			must.True(t, err == nil && n <= limit, "%d URLs, %v", n, err)
			from = next
		}
		assert.True(t, len(seen) == len(texts) && pages == (len(texts)+limit-1)/limit, "limit %d: %d URLs in %d pages",
			limit, len(seen), pages)
	}
}

func TestURLStory(t *testing.T) {
	v := New(fill(t), testOptions())
	u := must.Get(v.URL(context.Background(), testkit.Parse(t, "http://done.test/")))(t)
	assert.True(t, u.State == "fetched" && u.Status == 200 && u.Digest == "sha256:2cf24dba5fb0a30e" &&
		u.ETag == `"x"` && u.LastModified == "yesterday" && u.LastFetched.Equal(now) && u.Judged.IsZero() &&
		!u.Robots.Allowed && u.Robots.Record.Class == "never fetched" && u.Host.State == HostEmpty, "%+v", u)
	for path, allowed := range map[string]bool{"https://slow.test/private": false, "http://slow.test/": true} {
		u, err := v.URL(context.Background(), testkit.Parse(t, path))
		assert.True(t, err == nil && u.Robots.Allowed == allowed &&
			(u.Robots.Line == 2 && u.Robots.Rule == "Disallow: /private") != allowed, "%s: %+v, %v", path, u.Robots,
			err)
	}
	denied, err := v.URL(context.Background(), testkit.Parse(t, "http://ready.test/3"))
	assert.True(t, err == nil && denied.Judged.Equal(now) && denied.LastFetched.IsZero() && denied.RobotsLine == 9 &&
		denied.Reason == "robots", "%+v, %v", denied, err)
}

// A URL that is not known has a story too: what would become of it.
func TestStoryOfAnUnknownURL(t *testing.T) {
	o := testOptions()
	o.Scope = func(u weburl.URL, _ *storage.Entry) (bool, string) { return u.Host() != "nobody.test", "because" }
	v := New(fill(t), o)
	for text, want := range map[string]struct{ host, allowed, in string }{
		"http://done.test/other":         {HostEmpty, "false", "true"}, // its robots.txt was never fetched
		"https://slow.test/private/more": {HostWaiting, "false", "true"},
		"https://slow.test/public":       {HostWaiting, "true", "true"},
		"http://nobody.test/":            {StateUnknown, "false", "false"},
	} {
		u, err := v.URL(context.Background(), testkit.Parse(t, text))
		assert.True(t, err == nil && !u.Known && u.State == StateUnknown && u.URL.URL == text &&
			u.Host.State == want.host && fmt.Sprint(u.Robots.Allowed) == want.allowed &&
			fmt.Sprint(u.Scope.In) == want.in && u.Scope.Reason == "because", "%s: %+v, %+v, %v", text, u, u.Scope, err)
	}
}

// The way to a URL is told back to the seed, and a way that has no end is cut.
func TestChain(t *testing.T) {
	s := testkit.OpenStore(t)
	one := found(t, s, "http://a.test/0")
	one[0].Seed = true
	commit(t, s, storage.Batch{Found: one})
	h := must.Get(s.HostByName("a.test"))(t)
	for i := range 100 {
		next := found(t, s, fmt.Sprintf("http://a.test/%d", i+1))
		next[0].ViaHost, next[0].ViaOrdinal, next[0].Depth = h.ID, uint32(i), uint16(i+1)
		commit(t, s, storage.Batch{Found: next})
	}
	v := New(s, testOptions())
	for n, steps := range map[int]int{0: 0, 1: 1, 3: 3, 100: maxSteps} {
		u, err := v.URL(context.Background(), testkit.Parse(t, fmt.Sprintf("http://a.test/%d", n)))
		must.True(t, err == nil && len(u.Chain) == steps, "%d: %d steps, %v", n, len(u.Chain), err)
		for i, step := range u.Chain {
			assert.True(t, step.URL == fmt.Sprintf("http://a.test/%d", n-1-i) && step.Depth == n-1-i &&
				step.Seed == (step.Depth == 0) && step.State == "queued", "%d: step %d is %+v", n, i, step)
		}
	}
}

func TestRobotsTextAndCheck(t *testing.T) {
	v := New(fill(t), testOptions())
	text, err := v.RobotsText(testkit.Parse(t, "https://slow.test/").Origin())
	assert.True(t, err == nil && strings.Contains(text.Text, "Disallow: /private") && text.Robots.Rules != 0 &&
		text.Origin == "https://slow.test", "%+v, %v", text, err)
	text, err = v.RobotsText(testkit.Parse(t, "http://nobody.test/").Origin())
	assert.True(t, err == nil && text.Text == "" && text.Robots.Class == "never fetched", "%+v, %v", text, err)
	list, err := v.CheckRobots(
		[]weburl.URL{testkit.Parse(t, "https://slow.test/private"), testkit.Parse(t, "https://slow.test/"),
			testkit.Parse(t, "http://nobody.test/")})
	assert.True(t, err == nil && len(list) == 3 && !list[0].Allowed && list[0].Rule == "Disallow: /private" &&
		list[1].Allowed && !list[2].Allowed, "%+v, %v", list, err)
}

func TestReasonsHaveOneNameEach(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range ReasonNames() {
		r, err := ParseReason(name)
		assert.True(t, err == nil && ReasonName(r) == name && !seen[name], "%s is reason %d, whose name is %s; %v",
			name, r, ReasonName(r), err)
		seen[name] = true
	}
	if len(seen) < 25 {
		t.Errorf("only %d reasons: %v", len(seen), ReasonNames())
	}
	assert.Fails(ParseReason(""))(t, nil, "the empty name is a reason")
	assert.Equal(t, ReasonName(40), "reason_40")
}

// TestURLUsage: the preferences that the store keeps come with their sources; what cannot be read is left out.
func TestURLUsage(t *testing.T) {
	for kept, want := range map[string]map[string]Usage{
		"":         nil,
		"\x48\x00": nil,
		"\x48\x03": {"train-ai": {"n", "robots.txt line 3"}},
		"\x33\x1c": {"search": {"y", "meta"}, "tdm": {"n", "tdmrep.json"}},
	} {
		got := newURL("http://a.test/", &storage.Head{Last: storage.Outcome{Usage: kept}}).Usage
		assert.Deep(t, got, want, kept)
	}
}

// TestFirstSeenOfUnknown: of a URL that nobody has found nothing says when it was found.
func TestFirstSeenOfUnknown(t *testing.T) {
	s := fill(t)
	v := New(s, testOptions())
	for text, known := range map[string]bool{"http://ready.test/1": true, "http://ready.test/nobody": false} {
		u := must.Get(weburl.Parse(text))(t)
		story, err := v.URL(context.Background(), u)
		must.True(t, err == nil && story.Known == known, "%s: %+v, %v", text, story, err)
		if encoded, err := json.Marshal(story); err != nil || strings.Contains(string(encoded), "first_seen") != known {
			t.Errorf("%s: %s, %v", text, encoded, err)
		}
	}
}

// TestURLsOfSeeds lists the pages of a seed, and those of seeds with a tag: also those that a link led to out of its
// scope. What belongs to a seed by its URL does so however it was found.
func TestURLsOfSeeds(t *testing.T) {
	s := fill(t)
	slow := seeds.Seed{URL: testkit.Parse(t, "http://slow.test/")}
	ready := seeds.Seed{URL: testkit.Parse(t, "http://ready.test/1")}
	slow.Tags, slow.Hops = []string{"news", "slow"}, 1
	ready.Tags = []string{"news"}
	far := found(t, s, "http://far.test/")
	far[0].From = storage.SeedRef{ID: seeds.IDOf(slow.URL), Outside: 1}
	commit(t, s, storage.Batch{Found: far})
	o := testOptions()
	set := seeds.NewSet(seeds.ModeHost).With([]seeds.Seed{slow, ready})
	o.Seeds = func() *seeds.Set { return set }
	v := New(s, o)
	const ofSlow = "http://slow.test/ https://slow.test/private"
	const ofReady = "http://ready.test/1 http://ready.test/2 http://ready.test/3 "
	for query, want := range map[[2]string]string{
		{"http://slow.test/", ""}:           ofSlow + " http://far.test/",
		{"", "slow"}:                        ofSlow + " http://far.test/",
		{"http://slow.test/", "slow"}:       ofSlow + " http://far.test/",
		{"http://ready.test/1", "slow"}:     "",
		{"", "nothing"}:                     "",
		{"", "news"}:                        ofReady + ofSlow + " http://far.test/",
		{"http://done.test/", ""}:           "unknown",
		{"https://slow.test/private", "no"}: "unknown",
	} {
		var q URLQuery
		must.Do(t, q.OfSeed(query[0], query[1]))
		var got []string
		_, err := v.URLs(t.Context(), q, func(u *URL) error { got = append(got, u.URL); return nil })
		if errors.Is(err, ErrUnknown) && v.KnowsSeed(q) != nil {
			got, err = []string{"unknown"}, nil
		}
		text := strings.Join(got, " ")
		assert.True(t, err == nil && text == want, "%v: %s, want %s: %v", query, text, want, err)
		n := v.count(q)
		assert.True(t, n < 0, "%v: %d are counted without a look at them", query, n)
	}
	assert.True(t, new(URLQuery).OfSeed("ftp://a.test/", "") != nil, "a seed of ftp is one")
}
