package server

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"time"
)

// pages are the files of the dashboard. dashboard/vendor holds third-party files with their
// licences.
//
//go:embed dashboard
var pages embed.FS

// pagePolicy lets a page of the dashboard load from and connect to this server only.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'none'; frame-ancestors 'none'; base-uri 'none'"

// dashboard serves the files, each under its own pattern.
func dashboard(mux *http.ServeMux) error {
	return fs.WalkDir(pages, "dashboard", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := pages.ReadFile(name)
		if err != nil {
			return err
		}
		pattern := "GET " + name[len("dashboard"):]
		if path.Base(name) == "index.html" {
			pattern = "GET /{$}"
		}
		mux.Handle(pattern, file(path.Base(name), content))
		return nil
	})
}

// file serves a file that does not change while the process runs.
func file(name string, content []byte) http.Handler {
	sum := sha256.Sum256(content)
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-cache")
		h.Set("Content-Security-Policy", pagePolicy)
		h.Set("ETag", tag)
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(content))
	})
}
