package consent

import (
	"reflect"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestKept has the bytes on record, and reads them back.
func TestKept(t *testing.T) {
	robots, file := statement(SourceRobots, "train-ai=n, search=y"), statement(SourceTDMFile, "tdm=n")
	robots.Line, file.Line = 3, 300
	meta := statement(SourceMeta, "ai-input=n")
	for _, test := range []struct {
		list  []Statement
		bytes string
		from  []string
	}{
		{nil, "", nil},
		{[]Statement{{Preferences: meta.Preferences, Source: SourceHeader, Terms: true}}, "\xaa",
			[]string{"ai-input=n header license"}},
		{[]Statement{meta}, "\x3a", []string{"ai-input=n meta"}},
		{[]Statement{robots, meta}, "\x48\x03\x49\x03\x3a\x43\x03", []string{"train-ai=n robots.txt line 3",
			"train-ai-images=n robots.txt line 3", "ai-input=n meta", "search=y robots.txt line 3"}},
		{[]Statement{file}, "\x58\xac\x02\x59\xac\x02\x5c\xac\x02", []string{"train-ai=n tdmrep.json rule 300",
			"train-ai-images=n tdmrep.json rule 300", "tdm=n tdmrep.json rule 300"}},
	} {
		kept := Combine(test.list).Keep(test.list)
		assert.Equal(t, kept, test.bytes, test.list, "is kept as")
		list, err := Kept(kept)
		var from []string
		for _, s := range list {
			from = append(from, s.Preferences.String()+" "+s.From())
		}
		assert.True(t, err == nil && reflect.DeepEqual(from, test.from), "%x: %v, %v; want %v", kept, from, err,
			test.from)
	}
	for _, bad := range []string{"\x48", "\x48\x00", "\x87\x80", "\x01\x00", "\x00\x00", "\x40\xff\xff\xff\xff\x01"} {
		assert.Fails(Kept(bad))(t, nil, bad, "is read as")
	}
}

// TestTDMFileEncode: the encoded rules say the same of every URL, with the same numbers.
func TestTDMFileEncode(t *testing.T) {
	f, err := ParseTDMFile([]byte(`[7, {"location": "/a&b", "tdm-reservation": 1, "tdm-policy": "https://p.test/"}, {},
		{"location": "/*.jpg$", "tdm-reservation": "0"}, 8]`))
	must.Do(t, err)
	again, err := ParseTDMFile(f.Encode())
	if err != nil || !reflect.DeepEqual(again, f) || f.Size() == 0 {
		t.Errorf("%s: %v, %v", f.Encode(), again, err)
	}
	want :=
		`[0,{"location":"/a\u0026b","tdm-policy":"https://p.test/","tdm-reservation":1},0,{"location":"/*.jpg$","tdm-reservation":0}]`
	assert.Equal(t, string(f.Encode()), want, f.Encode())
}
