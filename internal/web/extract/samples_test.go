package extract

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// samples are the contents of the files of testdata/charset: language, title, which is also the
// path of the link, and text. Encoders that are unrelated to those of the tests wrote the files.
var samples = map[string]struct{ language, title, text string }{
	"utf-8": {"cs", "Příliš žluťoučký kůň",
		"Robot čeká tak dlouho, jak si hostitel přeje, a teprve potom se zeptá na další stránku. Šedá ťuhýk ďábel " +
			"ňouma."},
	"utf-16le": {"ru", "Вежливый робот",
		"Робот ждёт столько, сколько хочет сервер, и только потом просит следующую страницу."},
	"windows-1252": {"fr", "Un robot poli",
		"Le robot attend aussi longtemps que l’hôte le souhaite — puis il demande la page suivante. Noël, forêt, " +
			"garçon, œuvre, 5 €."},
	"iso-8859-2": {"pl", "Uprzejmy robot",
		"Robot czeka tak długo, jak życzy sobie gospodarz, i dopiero potem prosi o następną stronę. Zażółć gęślą " +
			"jaźń."},
	"iso-8859-7": {"el", "Ευγενικό ρομπότ",
		"Το ρομπότ περιμένει όσο θέλει ο διακομιστής και μετά ζητά την επόμενη σελίδα. Η γλώσσα είναι ελληνική."},
	"iso-8859-9": {"tr", "Kibar robot",
		"Robot, sunucunun istediği kadar bekler ve ancak ondan sonra bir sonraki sayfayı ister. Işığın gölgesi, çöl, " +
			"şeker, ağaç."},
	"windows-1251": {"bg", "Учтив робот",
		"Роботът чака толкова, колкото иска сървърът, и едва тогава пита за следващата страница."},
	"koi8-r": {"ru", "Терпеливый робот",
		"Робот не спешит: между двумя запросами проходит столько времени, сколько просит владелец сайта."},
	"windows-1255": {"he", "רובוט מנומס", "הרובוט ממתין כמה שהשרת רוצה, ורק אחר כך מבקש את הדף הבא."},
	"windows-1256": {"ar", "روبوت مهذب", "ينتظر الروبوت ما يشاء الخادم ثم يطلب الصفحة التالية."},
	"shift_jis":    {"ja", "礼儀正しいロボット", "ロボットはサーバーが望むだけ待ち、それから次のページを求めます。表示とソの文字も読めます。"},
	"euc-jp":       {"ja", "待つロボット", "要求と要求の間には、決められた時間が過ぎます。急ぐ理由はどこにもありません。"},
	"gb18030":      {"zh", "有礼貌的机器人", "机器人按照服务器的要求等待，然后才请求下一个页面。每个网站都有自己的规则。"},
	"big5":         {"zh-TW", "有禮貌的機器人", "機器人依照伺服器的要求等待，然後才請求下一個頁面。每個網站都有自己的規則。"},
	"euc-kr":       {"ko", "예의 바른 로봇", "로봇은 서버가 원하는 만큼 기다린 다음에야 다음 페이지를 요청한다. 모든 사이트에는 규칙이 있다."},
}

// Every file is read correctly by its own declaration or mark, by the header alone, and with a
// header that says nothing about encodings.
func TestCharsetSamples(t *testing.T) {
	files, err := filepath.Glob("testdata/charset/*.html")
	must.True(t, err == nil && len(files) == len(samples), "%v: %d files, %d samples", err, len(files), len(samples))
	for name, want := range samples {
		body := must.Get(os.ReadFile("testdata/charset/" + name + ".html"))(t)
		undeclared := []byte(strings.Replace(string(body), "<meta charset=\""+name+"\">", "", 1))
		for how, p := range map[string]Page{
			"by itself":     sample(t, body, "text/html"),
			"by its header": sample(t, undeclared, "text/html; charset="+name),
			"by its header only": sample(t,
				[]byte(strings.Replace(string(body), "charset=\""+name, "charset=\"x-unknown", 1)),
				"TEXT/HTML; Charset=\""+strings.ToUpper(name)+"\""),
		} {
			link := "http://a.test/" + url.PathEscape(want.title)
			assert.True(t, p.Language == want.language && p.Title == want.title &&
				p.Text == want.text+"\n"+want.title && len(p.Links) == 1 && p.Links[0].URL.String() == link,
				"%s %s: language %q, title %q, text %q, links %v; want %+v and %s", name, how, p.Language, p.Title,
				p.Text, p.Links, want, link)
		}
	}
}

func sample(t *testing.T, body []byte, contentType string) Page {
	t.Helper()
	o := DefaultOptions()
	o.Text = true
	return must.Get(HTML(body, typed(contentType), mustParse(t, "http://a.test/"), nil, o))(t)
}
