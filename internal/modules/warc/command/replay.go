//go:build !core

package command

import (
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/modules/warc/wacz"
	"github.com/amble-crawler/amble/internal/modules/warc/warcfiles"
	"github.com/amble-crawler/amble/internal/system"
)

// viewer is the page with ReplayWeb.page in it, and worker its script, which has to be in a file of the same site.
var viewer = template.Must(template.New("").Parse(`<!DOCTYPE html>
<meta charset="utf-8">
<title>{{.Title}}</title>
<script src="https://cdn.jsdelivr.net/npm/replaywebpage@2/ui.js"></script>
<replay-web-page source="{{.Package}}" url="{{.URL}}" style="display: block; height: 95vh"></replay-web-page>
`))

const worker = "importScripts(\"https://cdn.jsdelivr.net/npm/replaywebpage@2/sw.js\");\n"

func (p Program) replayCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "replay DIR",
		Short: "Show how to look at the stored pages as they were",
		Long: `Write the settings of pywb to DIR, and a page with ReplayWeb.page in it, and print how to use them. pywb
reads the WARC files and their indexes where they are, so it shows what a running crawl completes.
ReplayWeb.page reads one WACZ file, which amble archive wacz makes.

Exit code 0: done. 1: there is no output, nothing complete is stored, or DIR cannot be written to. 2: wrong usage or
settings.`,
		Example: `  amble archive replay replay`,
		Args:    console.Exactly(1, "one directory"),
		RunE:    func(command *cobra.Command, args []string) error { return p.replay(command, args[0]) },
	}
}

func (p Program) replay(command *cobra.Command, dir string) error {
	c, err := p.Load()
	if err != nil {
		return err
	}
	collection, output, err := p.open(c)
	if err != nil {
		return err
	}
	first, err := firstPage(command, collection)
	if err != nil {
		return console.Exit(console.ExitProblem, fmt.Errorf("%s: %w", output, err))
	}
	output, err = filepath.Abs(output)
	if err != nil {
		return console.Exit(console.ExitProblem, err)
	}
	name := c.Output.Prefix
	if err := writeReplay(dir, output, name, first); err != nil {
		return console.Exit(console.ExitProblem, err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `pywb:
  pip install pywb
  cd %[1]s && wayback -b 127.0.0.1
  then open http://127.0.0.1:8080/%[2]s/%[3]s

ReplayWeb.page:
  amble archive wacz -o %[4]s
  open https://replayweb.page/ and choose that file, which stays on this machine; or
  python3 -m http.server --bind 127.0.0.1 --directory %[1]s 8081
  then open http://127.0.0.1:8081/
`, dir, name, first, filepath.Join(dir, name+wacz.Extension))
	if c.Output.WARC == warc.FormatZstd {
		b.WriteString("\npywb does not read .warc.zst files: use the WACZ file.\n")
	}
	_, err = fmt.Fprint(command.OutOrStdout(), b.String())
	return err
}

// firstPage returns the URL of a page to begin with: the first one that was stored.
func firstPage(command *cobra.Command, c *warcfiles.Collection) (url string, err error) {
	found := errors.New("found")
	err = c.Captures(command.Context(), "", func(e *warc.Entry) error {
		if e.Status != http.StatusOK || e.Mime != "text/html" {
			return nil
		}
		url = e.URL
		return found
	})
	switch {
	case err != nil && !errors.Is(err, found):
		return "", err
	case url == "":
		return "", errors.New("no page is stored: amble archive ls lists what is there")
	}
	return url, nil
}

func writeReplay(dir, output, name, first string) error {
	settings, err := yaml.Marshal(map[string]any{"collections": map[string]any{
		name: map[string]string{"archive_paths": output + string(filepath.Separator), "index_paths": output},
	}})
	if err != nil {
		return err
	}
	var page strings.Builder
	err = viewer.Execute(&page, struct{ Title, Package, URL string }{name, name + wacz.Extension, first})
	if err == nil {
		err = os.MkdirAll(filepath.Join(dir, "replay"), 0o750)
	}
	for name, text := range map[string]string{"config.yaml": string(settings), "index.html": page.String(),
		filepath.Join("replay", "sw.js"): worker} {
		if err == nil {
			err = system.WriteFile(filepath.Join(dir, name), []byte(text))
		}
	}
	return err
}
