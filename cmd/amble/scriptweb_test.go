package main

import (
	"fmt"
	"io"
	"net/http"
)

// addScriptPages adds the pages that the scripts crawl. /robots.txt disallows /private.
func addScriptPages(mux *http.ServeMux) {
	page := func(path string, links ...string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, "<!DOCTYPE html><title>"+path+"</title>")
			for _, l := range links {
				fmt.Fprintf(w, "<a href=%q>link</a>", l)
			}
		})
	}
	page("/crawl/{$}", "a", "b", "/private/c", "missing")
	page("/crawl/a", "/crawl/", "http://outside.test/")
	page("/crawl/b", "a")
	page("/private/c")
	page("/other")
	page("/many/", "1", "2", "3", "4", "5", "6", "7", "8", "9")
	page("/hanging", "/hang")
	mux.HandleFunc("/whoami", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<title>agent %s, from %s</title>", r.UserAgent(), r.Header.Get("From"))
	})
	mux.HandleFunc("/hang", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
}
