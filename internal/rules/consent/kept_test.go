package consent

import (
	"reflect"
	"testing"
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
		if kept != test.bytes {
			t.Errorf("%v is kept as %x, want %x", test.list, kept, test.bytes)
		}
		list, err := Kept(kept)
		var from []string
		for _, s := range list {
			from = append(from, s.Preferences.String()+" "+s.From())
		}
		if err != nil || !reflect.DeepEqual(from, test.from) {
			t.Errorf("%x: %v, %v; want %v", kept, from, err, test.from)
		}
	}
	for _, bad := range []string{"\x48", "\x48\x00", "\x87\x80", "\x01\x00", "\x00\x00", "\x40\xff\xff\xff\xff\x01"} {
		if list, err := Kept(bad); err == nil {
			t.Errorf("%x is read as %v", bad, list)
		}
	}
}

// TestTDMFileEncode: the encoded rules say the same of every URL, with the same numbers.
func TestTDMFileEncode(t *testing.T) {
	f, err := ParseTDMFile([]byte(`[7, {"location": "/a&b", "tdm-reservation": 1, "tdm-policy": "https://p.test/"}, {},
		{"location": "/*.jpg$", "tdm-reservation": "0"}, 8]`))
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseTDMFile(f.Encode())
	if err != nil || !reflect.DeepEqual(again, f) || f.Size() == 0 {
		t.Errorf("%s: %v, %v", f.Encode(), again, err)
	}
	want :=
		`[0,{"location":"/a\u0026b","tdm-policy":"https://p.test/","tdm-reservation":1},0,{"location":"/*.jpg$","tdm-reservation":0}]`
	if string(f.Encode()) != want {
		t.Errorf("%s\nwant %s", f.Encode(), want)
	}
}
