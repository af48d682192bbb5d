// Package browser drives a headless Chromium through a page, as an operator would, and remembers what went wrong in it.
package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// patience is how long one step may take, on a machine that does much else.
const patience = 5 * time.Minute

// Tab is a tab of a headless Chromium. Its methods fail the test that opened it; one goroutine calls them.
type Tab struct {
	t   *testing.T
	ctx context.Context

	mu        sync.Mutex
	messages  []string // errors and warnings on the console, exceptions, and what the browser refused
	requested []string // URLs
	failures  []string // requests without an answer, and answers that say no
}

// findChromium returns the program.
func findChromium(t *testing.T) string {
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

// Open opens a tab, which the end of the test closes. The test is skipped where there is no Chromium, and fails there
// when BROWSER_TESTS is set, as it is in continuous integration. Flags are those of Chromium.
func Open(t *testing.T, flags ...string) *Tab {
	t.Helper()
	// Chromium keeps sockets and shared files; in a home of its own they go with the test.
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(findChromium(t)), chromedp.Flag("no-sandbox", true), chromedp.UserDataDir(t.TempDir()),
		chromedp.WindowSize(1280, 900), chromedp.WSURLReadTimeout(patience))
	for _, flag := range flags {
		options = append(options, chromedp.Flag(flag, true))
	}
	allocator, closeAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, closeTab := chromedp.NewContext(allocator)
	b := &Tab{t: t, ctx: ctx}
	var watching sync.WaitGroup
	t.Cleanup(func() {
		closeTab()
		closeAllocator()
		watching.Wait()
	})
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatalf("start Chromium: %v", err)
	}
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
	watch(b, &watching, network.RequestWillBeSent, func(e network.EventRequestWillBeSent) {
		b.requested = append(b.requested, e.Request.URL)
	})
	watch(b, &watching, network.ResponseReceived, func(e network.EventResponseReceived) {
		if e.Response.Status >= 400 {
			b.failures = append(b.failures, fmt.Sprintf("%s answers %d", e.Response.URL, e.Response.Status))
		}
	})
	watch(b, &watching, network.LoadingFailed, func(e network.EventLoadingFailed) {
		if !e.Canceled {
			b.failures = append(b.failures, fmt.Sprintf("%s: %s", e.Type, e.ErrorText))
		}
	})
	return b
}

// watch calls f for each event of a kind, with the tab locked.
func watch[E any](b *Tab, watching *sync.WaitGroup, kind cdp.Event[E], f func(E)) {
	events := chromedp.Events(b.ctx, kind)
	watching.Go(func() {
		for e, err := range events {
			if err != nil {
				return
			}
			b.mu.Lock()
			f(e)
			b.mu.Unlock()
		}
	})
}

// Forget forgets the requests so far, and those that failed.
func (b *Tab) Forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requested, b.failures = nil, nil
}

// Requested returns the URLs that were requested.
func (b *Tab) Requested() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.requested)
}

// Failures returns the requests that got no response, and the responses with a status of an error.
func (b *Tab) Failures() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.failures)
}

// Screenshot returns a PNG of what the window shows.
func (b *Tab) Screenshot() []byte {
	b.t.Helper()
	picture, err := run(b, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	return picture
}

// run performs an action. The browser was started with b.ctx itself, so it outlives the limit of the action.
func run[T any](b *Tab, action chromedp.Action[T]) (T, error) {
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	return chromedp.Run(ctx, action)
}

func (b *Tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if _, err := run(b, chromedp.Steps(steps...)); err != nil {
		b.t.Fatal(err)
	}
}

// Show shows a page at a width, in the light or in the dark, and waits until the expression ready is true in it.
func (b *Tab) Show(url string, width int64, dark bool, ready string) {
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
	b.Wait(ready)
	const hollow = `[...document.querySelectorAll("dl")]` +
		`.filter((d) => !d.querySelector("dt") || !d.querySelector("dd")).map((d) => d.outerHTML).join(" ")`
	if lists := b.Text(hollow); lists != "" {
		b.t.Errorf("%s has lists of nothing: %s", url, lists)
	}
}

// Wait waits until an expression is true in the page.
func (b *Tab) Wait(expression string) {
	b.t.Helper()
	if _, err := run(b, chromedp.Poll[bool]("Boolean("+expression+")",
		chromedp.WithPollingTimeout(patience), chromedp.WithPollingInterval(50*time.Millisecond))); err != nil {
		page, _ := run(b, chromedp.Evaluate[string]("document.body.innerText"))
		b.t.Fatalf("wait for %s: %v\nthe page says:\n%s", expression, err, page)
	}
}

// Text returns the text that an expression has in the page.
func (b *Tab) Text(expression string) string {
	b.t.Helper()
	s, err := run(b, chromedp.Evaluate[string](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return s
}

// Type presses keys, one after the other, for what has the focus.
func (b *Tab) Type(keys string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(keys))
}

// Press presses the button of a label, fills in the fields of the dialog that it opens, by name and value, confirms,
// and waits until what it asks for is done.
func (b *Tab) Press(label string, fields ...string) {
	b.t.Helper()
	button := fmt.Sprintf(`[...document.querySelectorAll("main button")].find((x) => x.textContent === %q)`,
		label)
	b.Wait(`Boolean(` + button + `)`)
	b.Text(button + `.click() ?? ""`)
	const dialog = `document.getElementById("dialog")`
	b.Wait(dialog + `.open`)
	for i := 0; i < len(fields); i += 2 {
		b.Text(fmt.Sprintf(`(%s.querySelector("[name=%s]").value = %q) && ""`, dialog, fields[i], fields[i+1]))
	}
	b.Text(dialog + `.querySelector("button[value=yes]").click() ?? ""`)
	b.Wait(`!` + dialog + `.open`)
}

// Download clicks a link, and returns the file that the browser saves for it.
func (b *Tab) Download(link string) []byte {
	b.t.Helper()
	dir, announced := b.t.TempDir(), true
	progress := chromedp.Events(b.ctx, browser.DownloadProgress)
	b.do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
			Behavior: browser.SetDownloadBehaviorBehaviorAllowAndName, DownloadPath: dir, EventsEnabled: &announced})
		return err
	}))
	b.Text(fmt.Sprintf(`document.querySelector(%q).click() ?? ""`, link))
	for e, err := range progress {
		if err != nil || e.State == browser.DownloadProgressStateCanceled {
			b.t.Fatalf("the download of %s: %q, %v", link, e.State, err)
		}
		if e.State != browser.DownloadProgressStateCompleted {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, e.GUID))
		if err != nil {
			b.t.Fatal(err)
		}
		return content
	}
	b.t.Fatalf("the browser was closed before it had saved %s", link)
	return nil
}

// Judge runs axe, the script of axe-core, on the page as it is, and returns what it finds.
func (b *Tab) Judge(axe string) string {
	b.t.Helper()
	b.Text(axe + `; ""`)
	b.Text(`(window.judged = null, axe.run().then((r) => { window.judged = r; })) && ""`)
	b.Wait(`window.judged !== null`)
	return b.Text(`window.judged.passes.length === 0 ? "axe has judged nothing" : window.judged.violations` +
		`.map((v) => v.id + ": " + v.nodes.map((n) => n.target + ": " + n.failureSummary).join("; ")).join("\n")`)
}

// Picture writes what the page looks like after some time, where PICTURES names a directory. No verdict depends on it.
func (b *Tab) Picture(name string, after time.Duration) {
	b.t.Helper()
	dir := os.Getenv("PICTURES")
	if dir == "" {
		return
	}
	time.Sleep(after)
	png, err := run(b, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(dir+"/"+name+".png", png, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// Clean checks that nothing went wrong in the tab, and that all its requests went to the server with this URL.
func (b *Tab) Clean(server string) {
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
