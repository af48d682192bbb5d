package extract

import (
	"bytes"
	"strings"
	"testing"

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

func TestUTF8IsNotCopied(t *testing.T) {
	for _, text := range []string{"<p>plain", "<p>" + russian} {
		body := []byte(text)
		for _, contentType := range []string{"", "text/html", "text/html; charset=utf-8",
			"text/html; charset=nonsense"} {
			assert.Equal(t, &toUTF8(body, contentType)[0], &body[0], text, "as", contentType, "was copied")
		}
	}
	if body := []byte("<p>plain"); &toUTF8(body, "text/html; charset=shift_jis")[0] != &body[0] {
		t.Error("ASCII was copied for the sake of a declared encoding")
	}
}

func TestCutUTF8(t *testing.T) {
	body := []byte("<p>" + russian)
	body = body[:bytes.LastIndexByte(body, '.')-1] // in the middle of a letter
	if got := toUTF8(body, ""); !strings.HasPrefix(string(got), "<p>Поиск") ||
		!strings.HasSuffix(string(got), "\ufffd") {
		t.Errorf("text %q", got)
	}
}
