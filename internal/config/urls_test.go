package config

import (
	"reflect"
	"testing"

	"github.com/amble-crawler/amble/internal/weburl"
)

func TestURLRules(t *testing.T) {
	c, err := inFile(t, "", []string{"urls.strip_parameters=utm_*,gclid", "urls.sort_query=true", "urls.drop_empty_query=true", "urls.collapse_slashes=true",
		"urls.normalize_escapes=true", "urls.max_length=100"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	o, err := c.CrawlOptions("1")
	want := weburl.Rules{StripParameters: []string{"utm_*", "gclid"}, SortQuery: true, DropEmptyQuery: true, CollapseSlashes: true, NormalizeEscapes: true, MaxLength: 100}
	if err != nil || !reflect.DeepEqual(o.URLs, want) {
		t.Errorf("%v, %+v", err, o.URLs)
	}
	usual := Default()
	if o, err := usual.CrawlOptions("1"); err != nil || !reflect.DeepEqual(o.URLs, weburl.Rules{MaxLength: weburl.MaxLength}) {
		t.Errorf("%v, %+v", err, o.URLs)
	}
}
