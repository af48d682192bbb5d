package todayweb

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// todayText writes a page whose parts have the shares of real pages: see todayParts.
type todayText struct {
	testweb.Prose
	random *rand.Rand
	b      strings.Builder
	today  Web
	web    *testweb.Web
	page   int
	links  int
	tokens []string // identifiers of the scripts and styles of the page
	sizes  [5]int   // written of each part
}

// todayParts are the parts of a page with their share of its bytes. The shares are those of the
// 91 pages of more than 20 KB in the test suite of Mozilla's Readability (commit ab4027a), which
// are articles of news sites, blogs and encyclopedias as they were saved: scripts 27 %, JSON in
// scripts 2 %, styles 16 %, SVG 4 %, and the rest markup (29 %), text (8 %) and white space (13 %).
var todayParts = [5]struct {
	share float64
	write func(*todayText)
}{
	{0.27, (*todayText).script},
	{0.02, (*todayText).json},
	{0.16, (*todayText).style},
	{0.04, (*todayText).svg},
	{0.51, (*todayText).article},
}

func newTodayText(t Web, w *testweb.Web, page int, random *rand.Rand) *todayText {
	p := &todayText{Prose: testweb.NewProse(random), random: random, today: t, web: w, page: page}
	for range 150 {
		p.tokens = append(p.tokens, p.token())
	}
	return p
}

// token invents an identifier.
func (p *todayText) token() string {
	syllables := []string{"get", "Item", "ad", "Page", "view", "Load", "track", "Init", "css", "Nav", "id", "Slot", "x",
		"Ev", "data", "Ref", "Node", "on", "Cfg", "q"}
	var b strings.Builder
	for range 1 + p.random.IntN(4) {
		b.WriteString(syllables[p.random.IntN(len(syllables))])
	}
	return b.String()
}

func (p *todayText) pickToken() string { return p.tokens[p.random.IntN(len(p.tokens))] }

// render writes the page, always the part that is most behind its share.
func (p *todayText) render(size int) []byte {
	fmt.Fprintf(&p.b, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"+
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>%s</title>\n"+
		"<link rel=\"canonical\" href=\"%s\">\n<link rel=\"stylesheet\" href=\"/a.css\">\n</head>\n<body "+
		"class=\"%s\">\n",
		p.Headline(), todayPath(p.page), p.pickToken())
	for n := range p.today.Pages {
		fmt.Fprintf(&p.b, "<a href=\"%s\">%d</a>\n", todayPath(n), n)
	}
	for p.b.Len() < size {
		part, most := 0, -1.0
		for i := range todayParts {
			if behind := todayParts[i].share*float64(size) - float64(p.sizes[i]); behind > most {
				part, most = i, behind
			}
		}
		before := p.b.Len()
		todayParts[part].write(p)
		p.sizes[part] += p.b.Len() - before
	}
	p.b.WriteString("</body>\n</html>\n")
	return []byte(p.b.String())
}

func todayPath(page int) string {
	if page == 0 {
		return "/"
	}
	return fmt.Sprintf("/p/%d", page)
}

func (p *todayText) script() {
	p.b.WriteString("<script>(function(){")
	for range 20 + p.random.IntN(60) {
		fmt.Fprintf(&p.b,
			"var %s=window.%s||{};if(%s.%s<%d&&!%[1]s){%[1]s.%s(\"%s\",function(e){return e.%s+\"</div>\"})}",
			p.pickToken(), p.pickToken(), p.pickToken(), p.pickToken(), p.random.IntN(10000), p.pickToken(),
			p.pickToken(),
			p.pickToken())
	}
	p.b.WriteString("})();</script>\n")
}

func (p *todayText) json() {
	p.b.WriteString(`<script type="application/ld+json">{"@context":"https://schema.org","@graph":[`)
	for i := range 2 + p.random.IntN(6) {
		if i > 0 {
			p.b.WriteByte(',')
		}
		fmt.Fprintf(&p.b, `{"@type":"NewsArticle","@id":"%x","url":"https:\/\/%s%s","headline":%q,"wordCount":%d}`,
			p.random.Uint64(), p.today.Host(p.random.IntN(p.today.Hosts)), todayPath(p.page), p.Headline(),
			p.random.IntN(4000))
	}
	p.b.WriteString("]}</script>\n")
}

func (p *todayText) style() {
	p.b.WriteString("<style>")
	for range 30 + p.random.IntN(60) {
		fmt.Fprintf(&p.b, ".%s .%s>a:hover{color:#%06x;margin:%dpx 0 %dpx;display:flex}", p.pickToken(), p.pickToken(),
			p.random.IntN(1<<24), p.random.IntN(64), p.random.IntN(64))
	}
	p.b.WriteString("</style>\n")
}

func (p *todayText) svg() {
	fmt.Fprintf(&p.b, `<svg class="%s" viewBox="0 0 24 24" role="img"><title>%s</title><g fill="none">`, p.pickToken(),
		p.pickToken())
	for range 1 + p.random.IntN(4) {
		p.b.WriteString(`<path d="M`)
		for range 20 {
			fmt.Fprintf(&p.b, "%d.%d %d.%dc", p.random.IntN(24), p.random.IntN(100), p.random.IntN(24),
				p.random.IntN(100))
		}
		p.b.WriteString(`z"/>`)
	}
	p.b.WriteString("</g></svg>\n")
}

// article writes a card: some 1.3 KB of markup with one link, as real pages have one link and five
// elements in 1.2 KB. One link of eight leads to another host.
func (p *todayText) article() {
	target := todayPath((p.page*31 + p.links*7) % p.today.Pages)
	if p.links%8 == 7 {
		target = p.web.URL(p.today.Host((p.page*17+p.links*13)%p.today.Hosts), "/")
	}
	p.links++
	indent := strings.Repeat("\t", 3+p.random.IntN(5))
	fmt.Fprintf(&p.b,
		"%[1]s<div class=\"%[2]s %[3]s %[4]s\" id=\"%[5]x\" data-%[2]s=\"%[6]x\">\n%[1]s\t<a class=\"%[3]s "+
			"%[7]s\" href=\"%[8]s\" title=\"%[9]s\" data-track='{\"%[4]s\":\"%[6]x\",\"pos\":%[10]d}'>\n%[1]s\t\t<img "+
			"src=\"/img/%[6]x-480.jpg\" srcset=\"/img/%[6]x-480.jpg 480w, /img/%[6]x-960.jpg 960w\" "+
			"sizes=\"(max-width: 600px) 480px, 960px\" alt=\"%[9]s\" loading=\"lazy\">\n%[1]s\t\t<span "+
			"class=\"%[7]s\">%[9]s</span>\n%[1]s\t</a>\n%[1]s\t<p class=\"%[2]s\">%[11]s</p>\n%[1]s</div>\n\n",
		indent, p.pickToken(), p.pickToken(), p.pickToken(), p.random.Uint32(), p.random.Uint64(),
		p.pickToken(), target,
		p.Headline(), p.links, p.Sentence())
}
