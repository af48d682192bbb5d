//go:build !core

// Package warcfiles is the output format WARC: files of requests and responses, each with a CDXJ index, as
// docs/ARCHIVE.md describes them. It also reads an output directory back, with the files of all formats: a [Collection]
// finds and verifies what is stored, an [Eraser] removes what is of some hosts.
package warcfiles
