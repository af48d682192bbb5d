//go:build real

package main_test

import (
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/browser"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
)

// TestRealDashboard: axe-core finds nothing in any page of the dashboard, on a phone in the dark and on a desk in the
// light.
func TestRealDashboard(t *testing.T) {
	axe := must.Get(os.ReadFile(filepath.Join(testkit.Packages(t.Context(), t, testkit.Axe), "node_modules",
		testkit.AxeScript)))(t)
	b := browser.Open(t)
	o := startOperated(t)
	b.Show("http://"+o.address+"/", 1400, false, `document.querySelectorAll(".attention li").length > 3`)
	for _, page := range []string{"", "hosts", "hosts/wall.test", "hosts/closed.test", "urls", "urls/state=failed",
		"seeds", "fetches", "optouts", "find/good", "url/" + url.QueryEscape(o.web.URL("wall.test", "/page-1"))} {
		for _, width := range []int64{390, 1400} {
			dark := width == 390
			b.Show("http://"+o.address+"/#/"+page, width, dark,
				`document.querySelector("main").dataset.page === "#/`+page+`"`)
			assert.Equal(t, b.Judge(string(axe)), "", page, "at", width, "px, dark", dark)
		}
	}
	b.Press("Fetch now") // of the last page, which a wall refuses
	b.Wait(`document.querySelector(".panel")?.innerText.startsWith("Fetched now")`)
	assert.Equal(t, b.Judge(string(axe)), "", "of what was fetched now")
}
