package extract

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// Sentences long enough to be distinguished, one for each encoding.
const (
	russian  = "Поисковый робот обходит страницы сайта и не спешит: он ждёт столько, сколько просит сервер. После этого он снова посылает запрос и получает ответ, который записывает на диск."
	japanese = "いろはにほへとちりぬるを、わかよたれそつねならむ。うゐのおくやまけふこえて、あさきゆめみしゑひもせす。日本語の文章です。"
	chinese  = "天地玄黄，宇宙洪荒。日月盈昃，辰宿列张。寒来暑往，秋收冬藏。闰余成岁，律吕调阳。这是一个用来测试的中文网页。"
	korean   = "키스의 고유조건은 입술끼리 만나야 하고 특별한 기술은 필요치 않다. 다람쥐 헌 쳇바퀴에 타고파. 한국어 문장입니다."
	french   = "Voix ambiguë d'un cœur qui, au zéphyr, préfère les jattes de kiwis. Où çà, élève naïf ? Là-bas, près du château."
	greek    = "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία. Η γρήγορη καφέ αλεπού πηδάει πάνω από το τεμπέλικο σκυλί."
)

func encode(t *testing.T, name, text string) []byte {
	t.Helper()
	e := must.Get(htmlindex.Get(name))(t)
	return must.Get(e.NewEncoder().Bytes([]byte(text)))(t)
}

func TestCharset(t *testing.T) {
	samples := map[string]string{
		"utf-8": russian, "windows-1251": russian, "koi8-r": russian, "shift_jis": japanese, "euc-jp": japanese,
		"iso-2022-jp": japanese, "gbk": chinese, "gb18030": chinese, "big5": "天地玄黃，宇宙洪荒。日月盈昃，辰宿列張。寒來暑往，秋收冬藏。",
		"euc-kr": korean, "windows-1252": french, "iso-8859-7": greek, "utf-16le": russian, "utf-16be": japanese,
	}
	for name, text := range samples {
		wide := strings.HasPrefix(name, "utf-16")
		page := "<html><head><title>" + text + "</title></head><body><p>" + strings.Repeat(text+" ", 8) +
			"</body></html>"
		t.Run(name+" by header", func(t *testing.T) {
			check(t, encode(t, name, page), "text/html; charset="+strings.ToUpper(name), text)
		})
		t.Run(name+" by meta", func(t *testing.T) {
			if wide {
				return // a page in UTF-16 cannot say so in ASCII
			}
			check(t, encode(t, name, "<meta charset='"+name+"'>"+page), "text/html", text)
			check(t,
				encode(t, name, `<META http-equiv=Content-Type CONTENT="text/html; CHARSET=`+name+`">`+page), "", text)
		})
		t.Run(name+" by mark", func(t *testing.T) {
			if strings.HasPrefix(name, "utf-") {
				check(t, encode(t, name, "\ufeff"+page), "text/html; charset=windows-1252", text)
			}
		})
		t.Run(name+" undeclared", func(t *testing.T) {
			switch name {
			case "utf-16le", "utf-16be", "iso-2022-jp", "koi8-r": // not offered, read as ASCII, or too close to others
				return
			}
			check(t, encode(t, name, page), "text/html", text)
		})
	}
}

func check(t *testing.T, body []byte, contentType, want string) {
	t.Helper()
	p := must.Get(HTML(body, typed(contentType), mustParse(t, "http://a.test/"), nil, DefaultOptions()))(t)
	want = strings.Join(strings.Fields(want), " ")
	assert.Equal(t, p.Title, want, "title")
}

func toUTF8(body []byte, contentType string) []byte {
	text, _ := decoded(body, contentType)
	return text
}

func TestUTF8IsNotCopied(t *testing.T) {
	for _, text := range []string{"<p>plain", "<p>" + russian} {
		body := []byte(text)
		for _, contentType := range []string{"", "text/html", "text/html; charset=utf-8",
			"text/html; charset=nonsense"} {
			assert.Equal(t, &toUTF8(body, contentType)[0], &body[0], text, "as", contentType, "was copied")
		}
	}
	body := []byte("<p>plain")
	got := toUTF8(body, "text/html; charset=shift_jis")
	assert.True(t, &got[0] == &body[0], "ASCII was copied for the sake of a declared encoding")
}

func TestCutUTF8(t *testing.T) {
	body := []byte("<p>" + russian)
	body = body[:bytes.LastIndexByte(body, '.')-1] // in the middle of a letter
	got := toUTF8(body, "")
	assert.True(t, strings.HasPrefix(string(got), "<p>Поиск") && strings.HasSuffix(string(got), "\ufffd"),
		"text %q", got)
}

// TestNoDeclaration has pages with the word of a declaration, and none.
func TestNoDeclaration(t *testing.T) {
	for _, name := range []string{"utf-8", "windows-1251"} {
		check(t, encode(t, name, "<script charset=koi8-r src=x></script>"+strings.Repeat(" ", prescanBytes)+"<title>"+
			russian+"</title>"), "text/html", russian)
	}
}

// TestQuery has the cases of percent-encoding.json of the Web Platform Tests, and others. The encoders of
// golang.org/x/text differ from the standard for control characters and the overline in ISO-2022-JP, for the minus in
// Shift_JIS, and for U+E5E5.
func TestQuery(t *testing.T) {
	for _, test := range []struct{ charset, query, want string }{
		{"utf-8", "\u2020", "%E2%80%A0"}, {"big5", "\u2020", "%26%238224%3B"}, {"euc-kr", "\u2020", "%A2%D3"},
		{"windows-1252", "\u2020", "%86"}, {"utf-8", "\u000eA", "%0EA"}, {"big5", "\u000eA", "%0EA"},
		{"euc-kr", "\u000eA", "%0EA"}, {"windows-1252", "\u000eA", "%0EA"}, {"utf-8", "\u203e\\", `%E2%80%BE\`},
		{"utf-8", "\ue5e5", "%EE%97%A5"}, {"utf-8", "\u2212", "%E2%88%92"},
		{"utf-8", "á|", "%C3%A1|"}, {"windows-1252", "á|", "%E1|"}, {"iso-8859-2", "\u00a2", "%26%23162%3B"},
		{"windows-1251", "q=слово&x='é'", "q=%F1%EB%EE%E2%EE&x=%27%26%23233%3B%27"},
		{"koi8-r", "слово", "%D3%CC%CF%D7%CF"},
		{"iso-2022-jp", "Γa日本é", "%1B$B&%23%1B(Ba%1B$BF|K\\%1B(B%26%23233%3B"}, // Γ is &#
		{"shift_jis", "ソ=表", "%83\\=%95\\"}, {"gbk", "中文", "%D6%D0%CE%C4"}, {"utf-16le", "é", "%C3%A9"},
		{"replacement", "é", "%C3%A9"}, {"windows-1251", strings.Repeat("я", 400), strings.Repeat("%FF", 400)},
	} {
		var reference strings.Builder
		for _, r := range "/é?" + test.query + "#é" {
			fmt.Fprintf(&reference, "&#%d;", r)
		}
		body := []byte("<a href='" + reference.String() + "'>")
		if strings.HasPrefix(test.charset, "utf-16") {
			body = encode(t, test.charset, string(body))
		}
		p := must.Get(HTML(body, typed("text/html; charset="+test.charset), mustParse(t, "http://a.test/"), nil,
			DefaultOptions()))(t)
		if want := "http://a.test/%C3%A9?" + test.want; len(p.Links) != 1 || p.Links[0].URL.String() != want {
			t.Errorf("%q in %s: %v, want %s", test.query, test.charset, p.Links, want)
		}
	}
}

// TestQueryOfAll has the references of a page in an older encoding that a reader may follow.
func TestQueryOfAll(t *testing.T) {
	const text = `<base href="/b?я"><link rel=canonical href="?1я"><meta http-equiv=refresh content="0; url=?2я">` +
		`<link rel=alternate href="?3я"><a href="?4я#я"></a><area href="/я?5я"><iframe src="?6я"></iframe>` +
		`<form action="?7я"></form><img src="?8я" srcset="?9я 1x"><a href="mailto:a?я"></a>`
	body := must.Get(charmap.Windows1251.NewEncoder().Bytes([]byte(text)))(t)
	o := DefaultOptions()
	o.Forms, o.Media = true, true
	p := must.Get(HTML(body, typed("text/html; charset=windows-1251"), mustParse(t, "http://a.test/"), nil, o))(t)
	var got []string
	for _, l := range p.Links {
		got = append(got, strings.TrimPrefix(l.URL.String(), "http://a.test"))
	}
	slices.Sort(got)
	want := "/%D1%8F?5%FF /b?1%FF /b?2%FF /b?3%FF /b?4%FF /b?6%FF /b?7%FF /b?8%FF /b?9%FF"
	assert.True(t, strings.Join(got, " ") == want, "the links are %v, want %s", got, want)
}
