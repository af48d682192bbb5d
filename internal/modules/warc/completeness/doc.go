//go:build !core

// Package completeness says how much of what archived pages are made of is stored, and why the rest is missing. Which
// requisites a page names stands in its metadata record, and what became of each in the database of its host: nothing
// else is kept of it, so that it is true at any moment, also after a crash, and on the nodes of a cluster.
//
// [Scan] reads what the documents of an archive name, [Find] what some of them do; [Resolve] follows style sheets and
// redirects, and [Docs.Page] counts.
package completeness
