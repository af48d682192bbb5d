package server

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// browser is a tab of a headless Chromium that remembers what went wrong in it and where it sent
// requests.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu        sync.Mutex
	messages  []string // errors and warnings on the console, exceptions, and what the browser refused
	requested []string // URLs
}

// findBrowser is the program; the test is skipped where there is none, and fails there when
// BROWSER_TESTS is set, as it is in continuous integration.
func findBrowser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("BROWSER_TESTS") != "" {
		t.Fatal("there is no Chromium, and BROWSER_TESTS requires it")
	}
	t.Skip("there is no Chromium on this machine: apt-get install chromium")
	return ""
}

func openBrowser(t *testing.T) *browser {
	t.Helper()
	// Chromium keeps sockets and shared files; in a home of its own they go with the test.
	allocator, closeAllocator := chromedp.NewExecAllocator(context.Background(),
		append(chromedp.DefaultExecAllocatorOptions[:],
			chromedp.ExecPath(findBrowser(t)), chromedp.Flag("no-sandbox", true), chromedp.UserDataDir(t.TempDir()),
			chromedp.WindowSize(1280, 900))...)
	tab, closeTab := chromedp.NewContext(allocator)
	ctx, cancel := context.WithTimeout(tab, 10*time.Minute)
	b := &browser{t: t, ctx: ctx}
	var watching sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		closeTab()
		closeAllocator()
		watching.Wait()
	})
	b.do(chromedp.Navigate("about:blank"))
	messages := chromedp.Console(ctx)
	watching.Go(func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			if kind := string(m.Type); m.IsException() || kind == "error" || kind == "warning" || kind == "assert" {
				b.mu.Lock()
				b.messages = append(b.messages, m.String()+" "+m.URL)
				b.mu.Unlock()
			}
		}
	})
	requests := chromedp.Events(ctx, network.RequestWillBeSent)
	watching.Go(func() {
		for e, err := range requests {
			if err != nil {
				return
			}
			b.mu.Lock()
			b.requested = append(b.requested, e.Request.URL)
			b.mu.Unlock()
		}
	})
	return b
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// show shows a page of the dashboard at a width, and waits until it is there.
func (b *browser) show(url string, width int64, dark bool, ready string) {
	b.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	b.do(chromedp.EmulateViewport(width, 900), chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia,
			emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme",
				Value: scheme}}})
		return err
	}), chromedp.Navigate(url))
	b.wait(ready)
	const hollow = `[...document.querySelectorAll("dl")].filter((d) => !d.querySelector("dt") || !d.querySelector("dd")).map((d) => d.outerHTML).join(" ")`
	if lists := b.text(hollow); lists != "" {
		b.t.Errorf("%s has lists of nothing: %s", url, lists)
	}
}

// wait waits until an expression is true in the page.
func (b *browser) wait(expression string) {
	b.t.Helper()
	if _, err := chromedp.Run(b.ctx, chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(5*time.Minute),
		chromedp.WithPollingInterval(50*time.Millisecond))); err != nil {
		page, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.body.innerText"))
		b.t.Fatalf("wait for %s: %v\nthe page says:\n%s", expression, err, page)
	}
}

// text is what an expression gives.
func (b *browser) text(expression string) string {
	b.t.Helper()
	s, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return s
}

// press presses the button of a label, and answers the dialog that it opens.
func (b *browser) press(label string) {
	b.t.Helper()
	b.text(`[...document.querySelectorAll("main button")].find((x) => x.textContent === ` + quote(label) +
		`).click() ?? ""`)
	b.wait(`document.getElementById("dialog").open`)
	b.text(`document.querySelector("#dialog button[value=yes]").click() ?? ""`)
}

func quote(s string) string { return `"` + s + `"` }

// picture writes what the page looks like after some time where PICTURES names a directory. No verdict
// depends on it.
func (b *browser) picture(name string, after time.Duration) {
	b.t.Helper()
	dir := os.Getenv("PICTURES")
	if dir == "" {
		return
	}
	time.Sleep(after)
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(dir+"/"+name+".png", png, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// clean checks that nothing went wrong in the tab, and that all its requests went to the server.
func (b *browser) clean(server string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.messages {
		b.t.Errorf("the console says %s", m)
	}
	for _, u := range b.requested {
		if !strings.HasPrefix(u, server) && !strings.HasPrefix(u, "data:") {
			b.t.Errorf("a request left for %s", u)
		}
	}
	if len(b.requested) == 0 {
		b.t.Error("no request was seen at all")
	}
}
