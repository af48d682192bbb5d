//go:build real

package main_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// notFollowed are the ways by which wget goes on and amble does not, and why that is right. A page that only wget
// fetched is explained if every way to it is one of these. That amble fetches what wget does not is never right here.
var notFollowed = map[string]string{
	"img src":                "an image is shown in a page and is none",
	"script src":             "a script is run in a page and is none",
	"link rel=stylesheet":    "a style sheet is no page",
	"link rel=icon":          "an icon is no page",
	"link rel=shortcut icon": "an icon is no page",
	"link rel=search":        "a search description is for browsers",
	"link rev=made":          "names an author; rev is obsolete",
	"object data":            "an embedded object is no page",
	"embed src":              "an embedded object is no page",
	"input src":              "an image is shown in a page and is none",
	"video src":              "media are played in a page and are none",
	"audio src":              "media are played in a page and are none",
	"source src":             "media are played in a page and are none",
	"video poster":           "an image is shown in a page and is none",
	"body background":        "an image is shown in a page and is none",
	"form action":            "a form is for people to fill in",
	"css url":                "what a style sheet names is no page",
}

// compare holds what amble fetched against what wget fetched. Every difference must have a reason.
func compare(t *testing.T, ofAmble, ofWget map[page]int, refs *references) {
	t.Helper()
	reasons := make(map[string]int)
	for _, p := range sorted(ofWget) {
		status, both := ofAmble[p]
		switch reason := explain(refs.ways[p]); {
		case both && status != ofWget[p]:
			t.Errorf("%s: status %d for amble, %d for wget", p, status, ofWget[p])
		case both:
		case reason == "":
			t.Errorf("missed: wget fetched %s and amble did not: %s", p, refs.describe(p))
		default:
			reasons[reason]++
		}
	}
	for _, p := range sorted(ofAmble) {
		if _, both := ofWget[p]; !both {
			t.Errorf("invented: amble fetched %s and wget did not: %s", p, refs.describe(p))
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		t.Logf("%4d fetched by wget alone: %s", reasons[reason], reason)
	}
}

// explain says why these ways are not followed; it says nothing if one of them should be, or if there is none.
func explain(ways map[string]page) string {
	var reasons []string
	for way := range ways {
		reason := notFollowed[way]
		if reason == "" {
			return ""
		}
		if !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	slices.Sort(reasons)
	return strings.Join(reasons, "; ")
}

// sameSet reports what one of the two sets has and the other has not.
func sameSet[A, B any](t *testing.T, nameA string, a map[page]A, nameB string, b map[page]B) {
	t.Helper()
	for _, p := range sorted(a) {
		if _, both := b[p]; !both {
			t.Errorf("%s is in %s and not in %s", p, nameA, nameB)
		}
	}
	for _, p := range sorted(b) {
		if _, both := a[p]; !both {
			t.Errorf("%s is in %s and not in %s", p, nameB, nameA)
		}
	}
}

// sorted are the pages of a set in their order.
func sorted[V any](set map[page]V) []page {
	return slices.SortedFunc(maps.Keys(set), func(a, b page) int { return strings.Compare(a.String(), b.String()) })
}

// pagesOf is the status of each page of a log, robots.txt left out.
func pagesOf(log []request) map[page]int {
	pages := make(map[page]int)
	for _, r := range log {
		if !r.page.isRobots() {
			pages[r.page] = r.status
		}
	}
	return pages
}
