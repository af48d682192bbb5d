package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

const (
	testOld = `
# comment
ask, asks = fetch
renewal, renewals = recrawl
names place = host state
prose of which = another sentence
`
	testKept = `
place = API
renewal = API
ask @ kept docs/KEPT.md = a standard
`
)

func TestScan(t *testing.T) {
	cases := []struct {
		path, text string
		want       []string
	}{
		{"a.md", "It asks.\nAsk\n\nof\nwhich", []string{"1 asks", "2 ask", "4 of which"}},
		{"a.md", "The place. A task. renewal_count", nil},
		{"a.md", "`renewal`, \"renewal\" and renewal", []string{"1 renewal"}},
		{"a.md", "`asks`", []string{"1 asks"}},
		{"docs/KEPT.md", "ask, asks", []string{"1 asks"}},
		{"kept/deep/a.yaml", "ask", nil},
		{"kept.yaml", "ask", []string{"1 ask"}},
		{"a.go", "package a\n\n// Ask asks.\nfunc Ask() {}", []string{"3 ask", "3 asks", "4 ask"}},
		{
			"a.go",
			"package a\n\ntype T struct { HostPlace int }\n\nfunc (t T) _() { nextAsk := t.HostPlace; _ = nextAsk }",
			[]string{"3 place", "5 ask"},
		},
		{"a.go", "package a\n\nvar V = map[string]string{`renewal`: \"its renewals\"}", []string{"3 renewals"}},
		{"a.go", "package a\n\nfunc f(asks int) { for place := range asks { _ = place } }",
			[]string{"3 asks", "3 place"}},
		{"renewal_test.go", "package a", []string{"1 renewal"}},
		{"testdata/a.md", "ask", nil},
		{"testdata/a.txtar", "ask", []string{"1 ask"}},
		{"a.bin", "ask", nil},
		{"bin/a.md", "ask", nil},
		{".git/a.md", "ask", nil},
		{"docs/GLOSSARY.md", "ask", nil},
	}
	l := must.Get(readLists(testOld, testKept))(t)
	for _, c := range cases {
		found, err := scan(fstest.MapFS{c.path: {Data: []byte(c.text)}}, l)
		assert.NoError(t, err, c.path)
		var got []string
		for _, f := range found {
			got = append(got, fmt.Sprint(f.line, " ", f.word))
		}
		slices.Sort(got)
		assert.Slice(t, got, c.want, c.path, c.text, "found")
	}
}

func TestSplit(t *testing.T) {
	for name, want := range map[string][]string{
		"askNext": {"ask", "next"}, "HTTPAsk": {"http", "ask"}, "robots_askTest": {"robots", "ask", "test"},
		"URLs": {"ur", "ls"},
		"":     nil, "_": nil, "x": {"x"},
	} {
		assert.Slice(t, split(name), want, name)
	}
}

func TestLists(t *testing.T) {
	must.Get(readLists(oldText, keptText))(t)
	for _, bad := range [][2]string{{"ask", ""}, {"ask = fetch", "renewal = API"}} {
		assert.Fails(readLists(bad[0], bad[1]))(t, nil, bad, "no error")
	}
}

func TestRun(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "a.md"), []byte("One renewal.\nNothing shall be.\n"), 0o600))
	var out bytes.Buffer
	found, err := run(&out, dir, true)
	assert.True(t, err == nil && found == 2, "%d findings, %v", found, err)
	for _, line := range []string{"a.md:1: renewal: write recrawl\n", "a.md:2: shall: write ", "2 findings\n"} {
		assert.Contains(t, out.String(), line, "is missing in", &out)
	}
	assert.Fails(run(&out, filepath.Join(dir, "none"), false))(t, nil, "a directory that does not exist is no error")
}
