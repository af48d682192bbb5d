package wall

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

var writeHeld = flag.Bool("held", false, "write the held-out traces of testdata/held")

// sim is a crawl of one host: sections with their pages, a queue in some queue, several requests in
// flight, waits after 429 and 503 as politeness has them.
type sim struct {
	*rand.Rand
	name, label string
	layout      layout
	queue       string // "mixed", "clustered": of the queue
	inFlight    int
	requests    int
	// plain is how the host answers when there is no wall, and walled how it does when there is one.
	plain, walled func(s *sim, target, section string) reply
	from, until   int // requests behind the wall: from <= n < until; 0, 0: no wall
}

// layout returns the target of a page of a section, by a number.
type layout func(section string, n int) string

// reply is a response that a host makes.
type reply struct {
	status int
	body   string
	retry  time.Duration
	header string
	slow   time.Duration
}

type line struct {
	end    time.Duration
	text   string
	walled bool
}

var sectionNames = strings.Fields("news shop wiki forum docs blog team jobs events press archive data")

// run returns the lines of a trace.
func (s *sim) run(sections int) []string {
	names := sectionNames[:sections]
	var lines []line
	now, section, throttled := time.Duration(0), names[0], 0
	for n := 0; n < s.requests; {
		for range s.inFlight {
			if s.queue == "mixed" || s.IntN(12) == 0 {
				section = names[s.IntN(len(names))]
			}
			target := s.layout(section, 1000+n*7)
			behind := s.from <= n && n < s.until
			answer := s.plain
			if behind {
				answer = s.walled
			}
			r := answer(s, target, section)
			took := time.Duration(30+s.IntN(400))*time.Millisecond + r.slow
			text := fmt.Sprintf("%d %d %s %s", r.status, took.Milliseconds(), target, r.body)
			if r.retry > 0 {
				text += fmt.Sprintf(" retry=%s", r.retry)
			}
			if r.header != "" {
				text += " head=" + r.header
			}
			lines = append(lines, line{end: now + took, text: text, walled: behind})
			n++
			if r.status == 429 || r.status == 503 {
				throttled++
				now += max(r.retry, min(time.Minute<<min(throttled, 8), 24*time.Hour)) + took
				break
			}
			throttled = 0
		}
		now += time.Duration(200+s.IntN(1500)) * time.Millisecond
	}
	sort.SliceStable(lines, func(i, j int) bool { return lines[i].end < lines[j].end })
	texts := make([]string, len(lines))
	for i, l := range lines {
		mark := " "
		if l.walled {
			mark = "!"
		}
		texts[i] = fmt.Sprintf("%s %.3f %s", mark, l.end.Seconds(), l.text)
	}
	return texts
}

// Layouts of sites.
func byDirectory(section string, n int) string { return fmt.Sprintf("/%s/item-%d", section, n) }
func byDate(section string, n int) string {
	return fmt.Sprintf("/%s/2026/%02d/story-%d.html", section, n%12+1, n)
}
func byScript(section string, n int) string { return fmt.Sprintf("/%s.php?id=%d", section, n) }
func flat(section string, n int) string     { return fmt.Sprintf("/%s-%d", section, n) }
func byLanguage(section string, n int) string {
	return fmt.Sprintf("/%s/%s/%d", []string{"en", "de"}[n%2], section, n)
}
func oneDirectory(section string, n int) string { return fmt.Sprintf("/wiki/%s_%d", section, n) }

// healthy answers with pages, some of them short, some missing.
func healthy(short, missing float64) func(*sim, string, string) reply {
	return func(s *sim, target, section string) reply {
		switch x := s.Float64(); {
		case x < missing:
			return reply{status: 404, body: "small"}
		case x < missing+short:
			return reply{status: 200, body: "small"}
		}
		return reply{status: 200, body: "page"}
	}
}

// always answers with one reply.
func always(r reply) func(*sim, string, string) reply {
	return func(*sim, string, string) reply { return r }
}

// leaking answers with one reply, and now and then with a page.
func leaking(r reply, leak float64) func(*sim, string, string) reply {
	return func(s *sim, _, _ string) reply {
		if s.Float64() < leak {
			return reply{status: 200, body: "page"}
		}
		return r
	}
}

// instead answers with r in some sections, and else as base does.
func instead(r reply, base func(*sim, string, string) reply, sections ...string) func(*sim, string, string) reply {
	return func(s *sim, target, section string) reply {
		for _, name := range sections {
			if name == section {
				return r
			}
		}
		return base(s, target, section)
	}
}

// sometimes answers with r at a rate, and else as base does.
func sometimes(rate float64, r reply, base func(*sim, string, string) reply) func(*sim, string, string) reply {
	return func(s *sim, target, section string) reply {
		if s.Float64() < rate {
			return r
		}
		return base(s, target, section)
	}
}

// cycle answers with each reply for a number of requests, again and again.
func cycle(every int, replies ...reply) func(*sim, string, string) reply {
	n := 0
	return func(*sim, string, string) reply {
		n++
		return replies[(n-1)/every%len(replies)]
	}
}

var (
	aPage = reply{status: 200, body: "page"}
	ok    = healthy(0.3, 0.05)
	long  = healthy(0, 0.02)
)

func challenge(status int, body, header string) reply {
	return reply{status: status, body: body, header: header}
}

// heldOut returns the crawls of the held-out set.
func heldOut() []sim {
	type f = func(*sim, string, string) reply
	w := func(name, kind string, l layout, queue string, flight, from int, plain, walled f) sim {
		return sim{name: name, label: "wall " + kind, layout: l, queue: queue, inFlight: flight, requests: from + 40,
			plain: plain, walled: walled, from: from, until: from + 40}
	}
	none := func(name string, l layout, queue string, flight, requests int, plain f) sim {
		return sim{name: name, label: "none", layout: l, queue: queue, inFlight: flight, requests: requests,
			plain: plain}
	}
	ended := func(s sim, after int) sim { s.until = s.from + after; return s }
	cf := challenge(403, "cf-german", "Cf-Mitigated:challenge")
	small := func(status int) reply { return reply{status: status, body: "small"} }
	return []sim{
		w("cloudflare-header", "challenge", byDate, "mixed", 3, 70, ok, always(cf)),
		w("cloudflare-no-header", "challenge", byDirectory, "clustered", 1, 33,
			ok, always(challenge(403, "cf-german", ""))),
		w("cloudflare-429", "challenge", byScript, "mixed", 2, 20,
			long, always(challenge(429, "cf-german", "Cf-Mitigated:challenge"))),
		w("cloudflare-block", "refusal", byLanguage, "mixed", 1, 90, ok, always(challenge(403, "cf-block", ""))),
		w("cloudflare-leaks", "challenge", byDirectory, "mixed", 2, 50, ok, leaking(cf, 0.06)),
		w("cloudflare-200", "challenge", byDate, "clustered", 1, 45, ok, always(challenge(200, "cf-german", ""))),
		w("vercel-first", "challenge", flat, "mixed", 2, 0,
			ok, always(challenge(429, "vercel", "X-Vercel-Mitigated:challenge"))),
		w("vercel-midway", "challenge", byLanguage, "clustered", 1, 61, ok, always(challenge(403, "vercel", ""))),
		w("human-midway", "challenge", byDirectory, "mixed", 4, 44, ok, always(challenge(403, "human", ""))),
		w("human-200", "challenge", byScript, "mixed", 1, 30, ok, always(challenge(200, "human", ""))),
		w("sucuri-block", "challenge", oneDirectory, "mixed", 1, 0,
			ok, always(challenge(403, "sucuri-block", "X-Sucuri-Block:BOT01"))),
		w("sucuri-check-200", "challenge", byDirectory, "mixed", 2, 0, ok, always(challenge(200, "sucuri-check", ""))),
		w("ddos-guard", "challenge", byScript, "clustered", 1, 25, long, always(challenge(403, "ddg", ""))),
		w("go-away", "challenge", byDirectory, "mixed", 2, 0, ok, always(challenge(200, "goaway", ""))),
		w("anubis-french", "challenge", byLanguage, "mixed", 1, 0, ok, always(challenge(200, "anubis-fr", ""))),
		w("azure", "challenge", byDate, "mixed", 1, 80, long, always(challenge(403, "azure", ""))),
		w("akamai-crypto-200", "challenge", byDirectory, "clustered", 1, 36, ok,
			always(challenge(200, "akamai-cpt", ""))),
		w("distil-200", "challenge", byDirectory, "mixed", 1, 55, long, always(challenge(200, "distil", ""))),
		w("f5-200", "challenge", byScript, "mixed", 2, 64, ok, always(challenge(200, "f5", ""))),
		w("sorry-429", "challenge", byDirectory, "mixed", 1, 28, ok, always(challenge(429, "sorry", ""))),
		w("sorry-503", "challenge", byDirectory, "mixed", 1, 28, ok, always(challenge(503, "sorry", ""))),
		w("siteground-202", "challenge", byDate, "mixed", 1, 15,
			ok, always(challenge(202, "own-gate", "Sg-Captcha:challenge"))),
		w("apache-403", "refusal", byDirectory, "mixed", 2, 120, ok, always(challenge(403, "apache403", ""))),
		w("apache-403-flat-first", "refusal", flat, "mixed", 1, 0, ok, always(challenge(403, "apache403", ""))),
		w("apache-403-one-directory", "refusal", oneDirectory, "mixed", 1, 37, ok,
			always(challenge(403, "apache403", ""))),
		w("406-midway", "refusal", byLanguage, "clustered", 2, 58, ok, always(small(406))),
		w("401-midway", "refusal", byDate, "mixed", 1, 40, long, always(challenge(401, "iis401", ""))),
		w("price-midway", "price", byDate, "mixed", 3, 48, ok,
			always(challenge(402, "small", "Crawler-Price:USD-0.002"))),
		w("price-first", "price", byDirectory, "clustered", 1, 0, ok, always(small(402))),
		w("legal-first", "legal", byDirectory, "mixed", 1, 0, ok, always(small(451))),
		w("rate-without-end", "rate-limit", byDirectory, "mixed", 2, 66, ok, always(small(429))),
		w("rate-with-waits", "rate-limit", byScript, "mixed", 1, 31,
			long, always(reply{status: 429, body: "small", retry: 2 * time.Minute})),
		w("soft-block-own", "soft-block", byDirectory, "mixed", 1, 52, ok, always(challenge(200, "own-block", ""))),
		w("gate-unmarked", "same-document", byDirectory, "mixed", 2, 75, ok, always(challenge(200, "own-gate", ""))),
		ended(w("ends-403", "refusal", byDirectory, "mixed", 1, 42, long, always(challenge(403, "apache403", ""))), 25),
		ended(w("ends-challenge", "challenge", byDate, "mixed", 2, 30, ok, always(cf)), 20),

		none("forbidden-section", byDirectory, "mixed", 2, 200, instead(small(403), ok, "data", "archive")),
		none("forbidden-section-clustered", byDirectory, "clustered", 1, 250,
			instead(challenge(403, "apache403", ""), ok, "team")),
		none("forbidden-scripts", byScript, "clustered", 1, 200,
			instead(challenge(403, "forum-denied", ""), ok, "forum", "team")),
		none("challenged-section", byDirectory, "clustered", 2, 220, instead(cf, ok, "shop")),
		none("login-401", byDate, "clustered", 1, 200, instead(challenge(401, "iis401", ""), ok, "team", "jobs")),
		none("login-200", byScript, "clustered", 1, 200,
			instead(challenge(200, "forum-denied", ""), ok, "forum", "team")),
		none("login-redirect", byDirectory, "clustered", 1, 200,
			instead(reply{status: 302, body: "small"}, ok, "team")),
		none("paid-section", byDate, "clustered", 1, 200, instead(small(402), ok, "press")),
		none("legal-single", byDate, "mixed", 1, 250, sometimes(0.04, small(451), ok)),
		none("scattered-403", byDirectory, "mixed", 3, 300, sometimes(0.18, challenge(403, "apache403", ""), ok)),
		none("half-403", flat, "mixed", 2, 200, cycle(1, aPage, small(403))),
		none("threes-403", byDirectory, "mixed", 1, 240, cycle(3, aPage, small(403))),
		none("rate-limited", byDirectory, "mixed", 1, 200,
			sometimes(0.05, reply{status: 429, body: "small", retry: 30 * time.Second}, ok)),
		none("rate-limited-tight", byScript, "mixed", 2, 200, cycle(2, aPage, aPage, small(429))),
		none("rate-limited-search", byDirectory, "clustered", 1, 200, instead(small(429), ok, "jobs")),
		none("outage", byDirectory, "mixed", 1, 150,
			cycle(40, aPage, reply{status: 503, body: "small"}, aPage, reply{status: 500, body: "small"})),
		none("soft-404-german", byDirectory, "mixed", 1, 200,
			instead(challenge(200, "gone-de", ""), ok, "archive", "data", "press")),
		none("soft-404-odd", byDirectory, "clustered", 1, 250, instead(challenge(200, "gone-odd", ""), ok, "archive")),
		none("shell", byDirectory, "mixed", 1, 100, always(challenge(200, "shell", ""))),
		none("shell-imperva", byDirectory, "mixed", 1, 100,
			sometimes(0.1, small(404), always(challenge(200, "shell-imperva", "")))),
		w("age-check", "gate", byDirectory, "mixed", 1, 40, ok, always(challenge(200, "age", ""))),
		none("parked", byDirectory, "mixed", 1, 120, cycle(60, aPage, challenge(200, "parked", ""))),
		none("essays", flat, "mixed", 1, 120, always(challenge(200, "essay", ""))),
		none("signup-forms", byDirectory, "mixed", 2, 120, always(challenge(200, "signup", ""))),
		none("thin-pages", byDirectory, "mixed", 1, 150, always(challenge(200, "thin", ""))),
		none("subscribers", byDate, "mixed", 1, 150, cycle(5, aPage, challenge(200, "subscriber", ""))),
		none("gone-for-good", byDirectory, "mixed", 1, 150, cycle(50, aPage, small(404), small(410))),
	}
}

// fresh returns the crawls of the second held-out set, which chance puts together.
func fresh(a, c uint64) (sims []sim) {
	header := func(status int, body, header string) reply { return challenge(status, body, header) }
	walls := []struct {
		kind  string
		reply reply
		later bool // not from the first page on
	}{
		{"challenge", header(403, "cloudflare", "Cf-Mitigated:challenge"), false},
		{"challenge", header(403, "datadome", ""), false},
		{"challenge", header(200, "imperva", ""), false},
		{"challenge", header(202, "aws", "X-Amzn-Waf-Action:challenge"), false},
		{"challenge", header(405, "aws", "X-Amzn-Waf-Action:captcha"), false},
		{"challenge", header(200, "anubis", ""), false},
		{"challenge", header(429, "kasada", ""), false},
		{"challenge", header(403, "akamai-denied", ""), false},
		{"challenge", header(200, "akamai-denied", ""), false},
		{"challenge", header(503, "checking", ""), false},
		{"challenge", header(202, "sgcaptcha", ""), false},
		{"challenge", header(200, "goaway", ""), false},
		{"refusal", header(403, "nginx403", ""), false},
		{"refusal", header(403, "empty", ""), false},
		{"refusal", header(406, "small", ""), false},
		{"price", header(402, "small", "Crawler-Price:USD-1"), false},
		{"legal", header(451, "small", ""), false},
		{"rate-limit", header(429, "small", ""), false},
		{"soft-block", header(200, "blocked", ""), false},
		{"same-document", header(200, "gate", ""), true},
		{"same-document", header(200, "imperva-stub", ""), true},
	}
	layouts := []layout{byDirectory, byDate, byScript, flat, byLanguage, oneDirectory}
	r := rand.New(rand.NewPCG(a, c))
	common := func(name, label string) sim {
		queue := []string{"mixed", "mixed", "clustered"}[r.IntN(3)]
		return sim{
			name: name, label: label, layout: layouts[r.IntN(len(layouts))], queue: queue, inFlight: 1 + r.IntN(4),
			requests: 150 + r.IntN(100), plain: healthy(0.6*r.Float64(), 0.1*r.Float64()),
		}
	}
	for i := range 36 {
		w := walls[i%len(walls)]
		s := common(fmt.Sprintf("%s-%d", w.kind, i), "wall "+w.kind)
		if s.from = 0; w.later || r.IntN(4) > 0 {
			s.from = 30 + r.IntN(120)
		}
		if r.IntN(2) == 0 { // a host that refuses some pages anyhow
			s.plain = sometimes(0.1*r.Float64(), challenge(403, "nginx403", ""), s.plain)
		}
		s.walled, s.requests = leaking(w.reply, 0.04*float64(r.IntN(2))), s.from+40
		s.until = s.requests
		sims = append(sims, s)
	}
	closed := []reply{
		header(403, "nginx403", ""), header(401, "small", ""), header(200, "login", ""), header(429, "small", ""),
		header(403, "cloudflare", "Cf-Mitigated:challenge"), header(200, "soft404", ""), header(200, "consent", ""),
		header(402, "small", ""), header(451, "small", ""), header(200, "anubis", ""),
	}
	for i := range 28 {
		s := common(fmt.Sprintf("healthy-%d", i), "none")
		for s.layout(`a`, 1) == flat(`a`, 1) || s.layout(`a`, 1) == oneDirectory(`a`, 1) {
			s.layout = layouts[r.IntN(len(layouts))] // one with sections
		}
		switch i % 4 {
		case 0:
			s.plain = instead(closed[r.IntN(len(closed))], s.plain, sectionNames[1+r.IntN(6)])
		case 1:
			s.plain = instead(closed[r.IntN(len(closed))], s.plain, sectionNames[1], sectionNames[4])
		case 2:
			s.plain = sometimes(0.2*r.Float64(), closed[r.IntN(len(closed))], s.plain)
		case 3:
			s.plain = cycle(1+r.IntN(5), aPage, closed[r.IntN(len(closed))], aPage, challenge(200, "article", ""))
		}
		sims = append(sims, s)
	}
	return sims
}

// makers are those of challenges, by their documents.
var makers = map[string]string{
	"cloudflare": "Cloudflare", "cf-german": "Cloudflare", "anubis": "Anubis", "anubis-fr": "Anubis",
	"datadome": "DataDome", "imperva": "Imperva Incapsula", "imperva-stub": "Imperva Incapsula",
	"akamai-denied": "Akamai", "akamai-cpt": "Akamai", "aws": "AWS WAF", "kasada": "Kasada", "sgcaptcha": "SiteGround",
	"vercel": "Vercel", "human": "HUMAN (PerimeterX)", "sucuri-block": "Sucuri", "sucuri-check": "Sucuri",
	"ddg": "DDoS-Guard", "goaway": "go-away", "azure": "Azure WAF", "f5": "F5 BIG-IP", "sorry": "Google",
	"distil": "Distil",
}

// by returns the maker of the wall of a trace, as a label has it; "": none is known.
func by(lines []string) string {
	for _, l := range lines {
		if maker := makers[strings.Fields(l[1:])[4]]; l[0] == '!' && maker != "" {
			return " by " + maker
		}
	}
	return ""
}

// TestHeldOutFiles holds that the crawls make the traces in testdata. With -held it writes them.
func TestHeldOutFiles(t *testing.T) {
	for dir, sims := range map[string][]sim{"held": heldOut(), "fresh": fresh(82, 9)} {
		for i, s := range sims {
			s.Rand = rand.New(rand.NewPCG(2026, uint64(i)))
			if dir == "fresh" {
				s.Rand = rand.New(rand.NewPCG(4716, uint64(i)))
			}
			lines := s.run(7 + i%6)
			text := "# " + s.name + ": " + s.label + by(lines) + "\n" + strings.Join(lines, "\n") + "\n"
			file := fmt.Sprintf("testdata/%s/%02d-%s.txt", dir, i+1, s.name)
			if *writeHeld {
				must.Do(t, os.WriteFile(file, []byte(text), 0o600))
			}
			had, err := os.ReadFile(file)
			assert.True(t, err == nil && string(had) == text, "%s is another trace, %v", file, err)
		}
	}
}
