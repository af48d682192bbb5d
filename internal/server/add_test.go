package server

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/amble-crawler/amble/internal/crawl"
)

// reports decodes the answer to a list.
func reports(t *testing.T, body string) (all []AddReport) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(body))
	for {
		var a AddReport
		switch err := d.Decode(&a); err {
		case nil:
			all = append(all, a)
		case io.EOF:
			return all
		default:
			t.Fatalf("%v in %s", err, body)
		}
	}
}

func TestListOfURLs(t *testing.T) {
	r := startCrawl(t)
	r.settled(t)
	list := r.web.URL("a.test", "/new") + "\nnonsense\n" + r.web.URL("a.test", "/") + "\n{\"url\":\"http://outside.test/\"}\n"
	_, body := r.read(t, "POST", "/api/v1/urls", strings.NewReader(list))
	all := reports(t, body)
	if len(all) != 1 || all[0].Lines != 4 || all[0].Added != (crawl.Added{Added: 1, Known: 1, Outside: 1}) || all[0].Bad != 1 || !all[0].Done ||
		len(all[0].Problems) != 1 || all[0].Problems[0].Line != 2 || all[0].Problems[0].Text != "nonsense" {
		t.Errorf("%+v", all)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = io.WriteString(w, list)
	_ = w.Close()
	if _, body := r.read(t, "POST", "/api/v1/urls", &packed); reports(t, body)[0].Known != 2 {
		t.Errorf("packed: %s", body)
	}
	if response, body := r.read(t, "POST", "/api/v1/urls", strings.NewReader("\x1f\x8b nothing")); response.StatusCode != 422 {
		t.Errorf("%d, %s", response.StatusCode, body)
	}
	// A page of another site, in a browser.
	for _, header := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "http://evil.test"}} {
		if response, body := r.read(t, "POST", "/api/v1/urls", strings.NewReader(list), header...); response.StatusCode != 403 {
			t.Errorf("%v: %d, %s", header, response.StatusCode, body)
		}
	}
	if response, _ := r.read(t, "POST", "/api/v1/urls", strings.NewReader(list), "Authorization", "Bearer wrong"); response.StatusCode != 401 {
		t.Errorf("without the token: %d", response.StatusCode)
	}
}

// Where it is asked for there is an answer to each line.
func TestAnswersForEachLine(t *testing.T) {
	r := startCrawl(t)
	r.settled(t)
	list := r.web.URL("a.test", "/new") + "\nnonsense\n\n# nothing\n" + r.web.URL("a.test", "/") + "\n{\"url\":\"HTTP://outside.test/\"}\n" + r.web.URL("a.test", "/new") + "\n"
	_, body := r.read(t, "POST", "/api/v1/urls?each=true", strings.NewReader(list))
	all := reports(t, body)
	if len(all) != 1 || all[0].Added != (crawl.Added{Added: 1, Known: 2, Outside: 1}) {
		t.Fatal(body)
	}
	want := []Answer{
		{1, r.web.URL("a.test", "/new"), "added", ""}, {2, "", "bad", all[0].Problems[0].Reason}, {5, r.web.URL("a.test", "/"), "known", ""},
		{6, "http://outside.test/", "outside", ""}, {7, r.web.URL("a.test", "/new"), "known", ""},
	}
	if !slices.Equal(all[0].Answers, want) {
		t.Errorf("%+v, want %+v", all[0].Answers, want)
	}
}

// TestReportsComeWhileTheListIsSent sends more than one group and reads the report of the first before the rest is sent.
func TestReportsComeWhileTheListIsSent(t *testing.T) {
	r := startCrawl(t)
	r.settled(t)
	body, list := io.Pipe()
	answered := make(chan struct{})
	go func() {
		for i := range crawl.MaxAdditions + 10 {
			if i == crawl.MaxAdditions+5 {
				<-answered
			}
			fmt.Fprintf(list, "%s%d\n", r.web.URL("a.test", "/list/"), i)
		}
		_ = list.CloseWithError(io.EOF)
	}()
	response := r.send(t, "POST", "/api/v1/urls", body)
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	var got []AddReport
	for lines.Scan() {
		if got = append(got, reports(t, lines.Text())...); len(got) == 1 {
			close(answered)
		}
	}
	if lines.Err() != nil || len(got) != 2 || got[0].Added.Added != crawl.MaxAdditions || got[0].Done || got[1].Added.Added != crawl.MaxAdditions+10 || !got[1].Done {
		t.Errorf("%+v, %v", got, lines.Err())
	}
}
