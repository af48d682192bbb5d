//go:build !core

// Package requisites finds what a document is made of: style sheets, scripts, images, fonts, icons and media of a page,
// imports, fonts and images of a style sheet, and the icons of a web app manifest. [Find] is what a crawl calls as
// Options.Requisites.Find.
//
// A document is read once, by a tokenizer, in time and memory that grow linearly with its size.
package requisites
